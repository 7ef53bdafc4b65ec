"""Delegation tokens: creation, renewal and expiry (Kafka 4.4 ``DelegationTokenControlManager``, KIP-48).

Times are in milliseconds since the epoch; the caller has the clock. Principals are TYPE:NAME.
"""

from __future__ import annotations

import hmac
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

from msgspec.structs import replace

from kframe.core.kraft.context import KraftContext
from kframe.core.kraft.controller_result import ControllerResult, RequestRefused
from kframe.errors import ErrorCode
from kframe.model.delegation_tokens import token_hmac
from kframe.model.kraft.ids import MetadataLevel
from kframe.model.kraft.record_versions import RecordAndVersion
from kframe.model.kraft.records import DelegationTokenRecord, RemoveDelegationTokenRecord

#: Most tokens that one run of ``remove_expired`` removes.
EXPIRED_MAX: Final = 1_000
_USER: Final = "User"
_TIMESTAMP_MAX: Final = 2**63 - 1


@dataclass(frozen=True, slots=True)
class TokenSettings:
    """The settings by Kafka's keys."""

    secret: bytes = field(default=b"", repr=False)
    """``delegation.token.secret.key``; empty: there are no tokens."""
    max_lifetime_ms: int = 7 * 24 * 3_600_000
    """``delegation.token.max.lifetime.ms``."""
    expiry_ms: int = 24 * 3_600_000
    """``delegation.token.expiry.time.ms``: how long a token is valid without renewal."""
    check_ms: int = 3_600_000
    """``delegation.token.expiry.check.interval.ms``."""


@dataclass(frozen=True, slots=True)
class RequestedToken:
    """A token of a CreateDelegationToken request. ``renewers`` have types and names."""

    owner: str
    requester: str
    renewers: Sequence[tuple[str, str]] = ()
    max_lifetime_ms: int = -1
    """0 or less: the longest lifetime."""


def create_token(
    context: KraftContext, settings: TokenSettings, requested: RequestedToken, token_id: str, now_ms: int
) -> ControllerResult[DelegationTokenRecord]:
    """Create a token; the response is its record. Raises RequestRefused."""
    _check_enabled(context, settings)
    lifetime_ms = settings.max_lifetime_ms
    if requested.max_lifetime_ms > 0:
        lifetime_ms = min(lifetime_ms, requested.max_lifetime_ms)
    for kind, name in requested.renewers:
        if kind != _USER:
            message = f"Renewer {kind}:{name}: expected a principal of type {_USER}."
            raise RequestRefused(ErrorCode.INVALID_PRINCIPAL_TYPE, message)
    max_timestamp = min(now_ms + lifetime_ms, _TIMESTAMP_MAX)
    token = DelegationTokenRecord(
        owner=requested.owner,
        requester=requested.requester,
        renewers=tuple(f"{kind}:{name}" for kind, name in requested.renewers),
        issue_timestamp=now_ms,
        max_timestamp=max_timestamp,
        expiration_timestamp=min(max_timestamp, now_ms + settings.expiry_ms),
        token_id=token_id,
    )
    return ControllerResult([RecordAndVersion(token, 0)], token, atomic=True)


def renew_token(
    context: KraftContext, settings: TokenSettings, secret: bytes, principal: str, period_ms: int, now_ms: int
) -> ControllerResult[int]:
    """Let the token with this HMAC expire later; the response is when. ``period_ms`` below 1 is the longest period.

    Raises RequestRefused.
    """
    token = _find(context, settings, secret)
    _check_unexpired(token, now_ms)
    _check_renewer(token, principal)
    if period_ms > 0:
        period_ms = min(settings.expiry_ms, period_ms)
    else:
        period_ms = settings.expiry_ms
    return _expiring(token, now_ms + period_ms)


def expire_token(
    context: KraftContext, settings: TokenSettings, secret: bytes, principal: str, period_ms: int, now_ms: int
) -> ControllerResult[int]:
    """Let the token with this HMAC expire after ``period_ms``, or remove it if that is negative; the response is when.

    Raises RequestRefused.
    """
    token = _find(context, settings, secret)
    _check_renewer(token, principal)
    if period_ms < 0:
        record = RemoveDelegationTokenRecord(token_id=token.token_id)
        return ControllerResult([RecordAndVersion(record, 0)], now_ms, atomic=True)
    _check_unexpired(token, now_ms)
    return _expiring(token, now_ms + period_ms)


def remove_expired(context: KraftContext, now_ms: int) -> ControllerResult[bool]:
    """Remove expired tokens, at most EXPIRED_MAX; the response is whether there may be more."""
    expired = [token.token_id for token in context.metadata.tokens.values() if is_expired(token, now_ms)]
    records = [RecordAndVersion(RemoveDelegationTokenRecord(token_id=each), 0) for each in expired[:EXPIRED_MAX]]
    return ControllerResult(records, len(expired) >= EXPIRED_MAX)


def is_expired(token: DelegationTokenRecord, now_ms: int) -> bool:
    """Whether a token has expired."""
    return min(token.max_timestamp, token.expiration_timestamp) < now_ms


def _expiring(token: DelegationTokenRecord, timestamp: int) -> ControllerResult[int]:
    expires = min(token.max_timestamp, timestamp)
    return ControllerResult([RecordAndVersion(replace(token, expiration_timestamp=expires), 0)], expires, atomic=True)


def _check_enabled(context: KraftContext, settings: TokenSettings) -> None:
    if not settings.secret:
        raise RequestRefused(ErrorCode.DELEGATION_TOKEN_AUTH_DISABLED, "Delegation Token feature is not enabled.")
    if context.level < MetadataLevel.DELEGATION_TOKENS:
        message = "The current metadata.version does not support delegation tokens"
        raise RequestRefused(ErrorCode.UNSUPPORTED_VERSION, message)


def _find(context: KraftContext, settings: TokenSettings, secret: bytes) -> DelegationTokenRecord:
    """The token with this HMAC. Raises RequestRefused."""
    _check_enabled(context, settings)
    for token in context.metadata.tokens.values():
        if hmac.compare_digest(token_hmac(settings.secret, token.token_id), secret):
            return token
    raise RequestRefused(ErrorCode.DELEGATION_TOKEN_NOT_FOUND, "Delegation Token is not found on server.")


def _check_unexpired(token: DelegationTokenRecord, now_ms: int) -> None:
    if is_expired(token, now_ms):
        raise RequestRefused(ErrorCode.DELEGATION_TOKEN_EXPIRED, "Delegation Token is expired.")


def _check_renewer(token: DelegationTokenRecord, principal: str) -> None:
    if principal != token.owner and principal not in token.renewers:
        message = "Specified Principal is not valid Owner/Renewer."
        raise RequestRefused(ErrorCode.DELEGATION_TOKEN_OWNER_MISMATCH, message)
