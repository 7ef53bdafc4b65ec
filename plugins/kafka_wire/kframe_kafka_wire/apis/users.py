"""AlterUserScramCredentials: what is kept of users' passwords (Kafka 3.9 ``ZkAdminManager``, KIP-554)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any, Final

from kframe import ClusterState, ErrorCode, KframeError
from kframe_kafka_wire.authorizer import Operation
from kframe_kafka_wire.calls import Call, reason
from kframe_kafka_wire.records import UserWriter, sanitized, settings_of_user
from kframe_kafka_wire.sasl_server import ITERATIONS_LEAST, ITERATIONS_MOST, credential_of, credential_text

Fields = Mapping[str, Any]
_MECHANISMS: Final = {1: "SCRAM-SHA-256", 2: "SCRAM-SHA-512"}


async def alter_credentials(call: Call) -> Fields:
    """Each user fares by itself, all of its changes together."""
    changes: dict[str, list[Fields]] = {}
    for one in (*call.body["deletions"], *call.body["upsertions"]):
        changes.setdefault(one["name"], []).append(one)
    results = []
    for user, wanted in changes.items():
        code, message = _refusal(call, user, wanted)
        if not code:
            code, message = await _alter(call, user, wanted)
        results.append({"user": user, "error_code": code, "error_message": message})
    return {"results": results}


def _refusal(call: Call, user: str, changes: list[Fields]) -> tuple[int, str | None]:
    if not call.may(Operation.ALTER):
        code = ErrorCode.CLUSTER_AUTHORIZATION_FAILED
        return code, reason(call, code, user)
    if not call.desk.controller.status().active:
        return ErrorCode.NOT_CONTROLLER, reason(call, ErrorCode.NOT_CONTROLLER, user)
    if not user:
        return ErrorCode.UNACCEPTABLE_CREDENTIAL, "Username must not be empty"
    if any(count > 1 for count in Counter(one["mechanism"] for one in changes).values()):
        return ErrorCode.DUPLICATE_RESOURCE, "A user credential cannot be altered twice in the same request"
    for one in changes:
        if one["mechanism"] not in _MECHANISMS:
            return ErrorCode.UNSUPPORTED_SASL_MECHANISM, f"Unknown SCRAM mechanism {one['mechanism']}"
        if "iterations" in one and not ITERATIONS_LEAST <= one["iterations"] <= ITERATIONS_MOST:
            message = f"{one['iterations']} iterations, expected {ITERATIONS_LEAST} to {ITERATIONS_MOST}"
            return ErrorCode.UNACCEPTABLE_CREDENTIAL, message
        if "iterations" in one and not (one["salt"] and one["salted_password"]):
            return ErrorCode.UNACCEPTABLE_CREDENTIAL, "neither salt nor salted password may be empty"
    return ErrorCode.NONE, None


async def _alter(call: Call, user: str, changes: list[Fields]) -> tuple[int, str | None]:
    """In the controller's thread, so that nobody else of ours writes meanwhile."""
    desk = call.desk
    store: object = desk.controller.store
    if not isinstance(store, UserWriter):
        return ErrorCode.UNSUPPORTED_VERSION, "the store keeps no users"
    writer = store

    def write(cluster: ClusterState | None) -> int:
        if cluster is None:
            return ErrorCode.NOT_CONTROLLER
        config = settings_of_user(desk.records, user)
        for one in changes:
            mechanism = _MECHANISMS[one["mechanism"]]
            if "iterations" not in one and mechanism not in config:
                return ErrorCode.RESOURCE_NOT_FOUND
            config.pop(mechanism, None)
            if "iterations" in one:
                made = credential_of(mechanism, one["salted_password"], one["salt"], one["iterations"])
                config[mechanism] = credential_text(made)
        writer.write_user(sanitized(user), config)
        return ErrorCode.NONE

    try:
        code = await desk.look(write)
    except KframeError:
        code = ErrorCode.UNKNOWN_SERVER_ERROR
    if code == ErrorCode.RESOURCE_NOT_FOUND:
        return code, "Attempt to delete a user credential that does not exist"
    return code, reason(call, code, user)
