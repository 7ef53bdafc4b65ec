"""Changes of SCRAM credentials (Kafka 4.4 ``ScramControlManager``)."""

from __future__ import annotations

import hashlib
import hmac
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from kframe.core.kraft.context import KraftContext
from kframe.core.kraft.controller_result import ControllerResult
from kframe.errors import ErrorCode
from kframe.model.kraft.ids import MetadataLevel
from kframe.model.kraft.record_versions import RecordAndVersion
from kframe.model.kraft.records import RemoveUserScramCredentialRecord, UserScramCredentialRecord

#: The hash of each mechanism, by Kafka's code.
MECHANISMS: Final = {1: "sha256", 2: "sha512"}
ITERATIONS_MIN: Final = 4_096
ITERATIONS_MAX: Final = 16_384


@dataclass(frozen=True, slots=True)
class ScramDeletion:
    """A credential to delete."""

    user: str
    mechanism: int


@dataclass(frozen=True, slots=True)
class ScramUpsertion:
    """A credential to create or replace."""

    user: str
    mechanism: int
    iterations: int
    salt: bytes
    salted_password: bytes


@dataclass(frozen=True, slots=True)
class ScramResult:
    """The result for a user."""

    user: str
    error: ErrorCode = ErrorCode.NONE
    message: str | None = None


def alter_credentials(
    context: KraftContext, deletions: Sequence[ScramDeletion], upsertions: Sequence[ScramUpsertion]
) -> ControllerResult[list[ScramResult]]:
    """Delete and write credentials. The response is a list of ScramResult, one for each user."""
    changes: list[ScramDeletion | ScramUpsertion] = [*deletions, *upsertions]
    names = Counter((change.user, change.mechanism) for change in changes)
    problems: dict[str, ScramResult] = {}
    for change in changes:
        result = _result(context, change, names[change.user, change.mechanism] > 1)
        if result.error is not ErrorCode.NONE or change.user not in problems:
            problems[change.user] = result
    valid = {user for user, result in problems.items() if result.error is ErrorCode.NONE}
    records = [
        RecordAndVersion(RemoveUserScramCredentialRecord(name=deletion.user, mechanism=deletion.mechanism), 0)
        for deletion in deletions
        if deletion.user in valid
    ]
    records += [RecordAndVersion(credential(upsertion), 0) for upsertion in upsertions if upsertion.user in valid]
    return ControllerResult(records, list(problems.values()))


def _result(context: KraftContext, change: ScramDeletion | ScramUpsertion, is_repeated: bool) -> ScramResult:
    if is_repeated:
        message = "A user credential cannot be altered twice in the same request"
        return ScramResult(change.user, ErrorCode.DUPLICATE_RESOURCE, message)
    if context.level < MetadataLevel.SCRAM:
        message = "The current metadata.version does not support SCRAM"
        return ScramResult(change.user, ErrorCode.UNSUPPORTED_VERSION, message)
    if not change.user:
        return ScramResult(change.user, ErrorCode.UNACCEPTABLE_CREDENTIAL, "Username must not be empty")
    if change.mechanism not in MECHANISMS:
        return ScramResult(change.user, ErrorCode.UNSUPPORTED_SASL_MECHANISM, "Unknown SCRAM mechanism")
    if isinstance(change, ScramUpsertion):
        if change.iterations < ITERATIONS_MIN:
            return ScramResult(change.user, ErrorCode.UNACCEPTABLE_CREDENTIAL, "Too few iterations")
        if change.iterations > ITERATIONS_MAX:
            return ScramResult(change.user, ErrorCode.UNACCEPTABLE_CREDENTIAL, "Too many iterations")
    elif (change.user, change.mechanism) not in context.metadata.scram:
        message = "Attempt to delete a user credential that does not exist"
        return ScramResult(change.user, ErrorCode.RESOURCE_NOT_FOUND, message)
    return ScramResult(change.user)


def credential(upsertion: ScramUpsertion) -> UserScramCredentialRecord:
    """The credential of a salted password (RFC 5802, section 3)."""
    algorithm = MECHANISMS[upsertion.mechanism]
    client_key = hmac.digest(upsertion.salted_password, b"Client Key", algorithm)
    return UserScramCredentialRecord(
        name=upsertion.user,
        mechanism=upsertion.mechanism,
        salt=upsertion.salt,
        stored_key=hashlib.new(algorithm, client_key).digest(),
        server_key=hmac.digest(upsertion.salted_password, b"Server Key", algorithm),
        iterations=upsertion.iterations,
    )
