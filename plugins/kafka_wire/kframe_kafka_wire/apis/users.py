"""DescribeUserScramCredentials and AlterUserScramCredentials (Kafka 3.9 ``ZkAdminManager``, KIP-554)."""

from __future__ import annotations

from collections import Counter
from typing import Final

from kframe.plugin import ErrorCode, KframeError, counted
from kframe.plugin.server import AclOperation
from kframe_kafka_wire.apis.calls import Call, RequestError, reason
from kframe_kafka_wire.protocol.codec import Fields
from kframe_kafka_wire.records.credentials import (
    ITERATIONS_MAX,
    ITERATIONS_MIN,
    credential_of,
    credential_text,
    parse_credential,
)
from kframe_kafka_wire.records.store import Records, change_settings, desanitized, sanitized, settings_of_user

MECHANISMS: Final = {1: "SCRAM-SHA-256", 2: "SCRAM-SHA-512"}


async def alter_credentials(call: Call) -> Fields:
    """Change credentials. All changes of a user succeed or fail together."""
    changes: dict[str, list[Fields]] = {}
    for change in (*call.body["deletions"], *call.body["upsertions"]):
        changes.setdefault(change["name"], []).append(change)
    results = []
    for user, user_changes in changes.items():
        code, message = _refusal(call, user, user_changes)
        if not code:
            code, message = await _alter(call, user, user_changes)
        results.append({"user": user, "error_code": code, "error_message": message})
    return {"results": results}


def _refusal(call: Call, user: str, changes: list[Fields]) -> tuple[int, str | None]:
    if not call.is_authorized(AclOperation.ALTER):
        code = ErrorCode.CLUSTER_AUTHORIZATION_FAILED
        return code, reason(call, code, user)
    if not call.context.controller.status().active:
        return ErrorCode.NOT_CONTROLLER, reason(call, ErrorCode.NOT_CONTROLLER, user)
    if not user:
        return ErrorCode.UNACCEPTABLE_CREDENTIAL, "Username must not be empty"
    if any(count > 1 for count in Counter(change["mechanism"] for change in changes).values()):
        return ErrorCode.DUPLICATE_RESOURCE, "A user credential cannot be altered twice in the same request"
    for requested in changes:
        if requested["mechanism"] not in MECHANISMS:
            return ErrorCode.UNSUPPORTED_SASL_MECHANISM, f"Unknown SCRAM mechanism {requested['mechanism']}"
        if "iterations" in requested and not ITERATIONS_MIN <= requested["iterations"] <= ITERATIONS_MAX:
            message = f"{counted(requested['iterations'], 'iteration')}, expected {ITERATIONS_MIN} to {ITERATIONS_MAX}"
            return ErrorCode.UNACCEPTABLE_CREDENTIAL, message
        if "iterations" in requested and not (requested["salt"] and requested["salted_password"]):
            return ErrorCode.UNACCEPTABLE_CREDENTIAL, "neither salt nor salted password may be empty"
    return ErrorCode.NONE, None


async def _alter(call: Call, user: str, changes: list[Fields]) -> tuple[int, str | None]:
    def change(settings: dict[str, str]) -> dict[str, str]:
        for entry in changes:
            mechanism = MECHANISMS[entry["mechanism"]]
            if "iterations" not in entry and mechanism not in settings:
                message = "Attempt to delete a user credential that does not exist"
                raise RequestError(ErrorCode.RESOURCE_NOT_FOUND, message)
            settings.pop(mechanism, None)
            if "iterations" in entry:
                credential = credential_of(mechanism, entry["salted_password"], entry["salt"], entry["iterations"])
                settings[mechanism] = credential_text(credential)
        return settings

    try:
        await call.context.write(lambda writer: change_settings(writer, f"users/{sanitized(user)}", change))
    except RequestError as error:
        return error.code, error.message
    except KframeError:
        return ErrorCode.UNKNOWN_SERVER_ERROR, reason(call, ErrorCode.UNKNOWN_SERVER_ERROR, user)
    return ErrorCode.NONE, None


async def describe_credentials(call: Call) -> Fields:
    """The mechanisms and iterations of users. Without a list, of all users with credentials."""
    if not call.is_authorized(AclOperation.DESCRIBE):
        raise RequestError(ErrorCode.CLUSTER_AUTHORIZATION_FAILED, "Cluster authorization failed.")
    users = [entry["name"] for entry in call.body["users"] or ()]
    if not users:
        names = await call.context.read(lambda records: records.read_record_names("/config/users"))
        users = sorted(user for name in names if (user := desanitized(name)) is not None)
        described = await call.context.read(lambda records: [_credentials(records, user) for user in users])
        return {
            "results": [
                entry for entry in described if "credential_infos" in entry or entry.get("error_code") == _UNREADABLE
            ]
        }
    counts = Counter(users)
    return {"results": [await _described_user(call, user, count) for user, count in counts.items()]}


async def _described_user(call: Call, user: str, count: int) -> Fields:
    if not user:
        return _no_user(user, ErrorCode.RESOURCE_NOT_FOUND, "Username must not be empty")
    if count > 1:
        message = f"Cannot describe SCRAM credentials for the same user twice in a single request: {user}"
        return _no_user(user, ErrorCode.DUPLICATE_RESOURCE, message)
    return await call.context.read(lambda records: _credentials(records, user))


def _credentials(records: Records, user: str) -> Fields:
    """The credentials of one user. A user without any is an error."""
    settings = settings_of_user(records, user)
    texts = {number: settings[name] for number, name in MECHANISMS.items() if name in settings}
    if not texts:
        message = f"Attempt to describe a user credential that does not exist: {user}"
        return _no_user(user, ErrorCode.RESOURCE_NOT_FOUND, message)
    infos = []
    for number, text in texts.items():
        credential = parse_credential(text)
        if credential is None:
            return _no_user(user, _UNREADABLE, f"the credential of {user} for {MECHANISMS[number]} cannot be read")
        infos.append({"mechanism": number, "iterations": credential.iterations})
    return {"user": user, "credential_infos": infos}


def _no_user(user: str, code: int, message: str) -> Fields:
    return {"user": user, "error_code": code, "error_message": message}


_UNREADABLE: Final = ErrorCode.UNKNOWN_SERVER_ERROR
