"""Create, renew, expire and describe delegation tokens, from and to ZooKeeper (Kafka 3.9 ``KafkaApis``, KIP-48)."""

from __future__ import annotations

import asyncio
import logging
from typing import Final

from kframe.plugin import ErrorCode, KframeError
from kframe.plugin.server import AclOperation, AclResourceType
from kframe_kafka_wire.apis.calls import Call, RequestError, ServerContext
from kframe_kafka_wire.protocol.codec import Fields
from kframe_kafka_wire.records.principals import Principal
from kframe_kafka_wire.records.store import RecordWriter
from kframe_kafka_wire.records.tokens import Token, Tokens

_log = logging.getLogger("kframe.kafka_wire")
_USER: Final = "User"
#: Kafka's default of ``delegation.token.expiry.check.interval.ms``.
_CHECK_MS: Final = 3_600_000


async def create_token(call: Call) -> Fields:
    """Create a token for the requester, or for another principal if the requester may do so."""
    requester, body = call.session.principal, call.body
    name = body.get("owner_principal_name")
    owner = Principal(name, body["owner_principal_type"] or "") if name else requester
    renewers = tuple(Principal(each["principal_name"], each["principal_type"]) for each in body["renewers"])
    involved = _principals(owner, requester)
    tokens = call.context.tokens
    if not call.session.may_request_tokens:
        return _refused(ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED, involved)
    if owner != requester and not call.is_authorized(AclOperation.CREATE_TOKENS, AclResourceType.USER, str(owner)):
        return _refused(ErrorCode.DELEGATION_TOKEN_AUTHORIZATION_FAILED, involved)
    if any(renewer.kind != _USER for renewer in renewers):
        return _refused(ErrorCode.INVALID_PRINCIPAL_TYPE, involved)
    if tokens is None:
        return _refused(ErrorCode.DELEGATION_TOKEN_AUTH_DISABLED, involved)
    max_lifetime_ms = body["max_lifetime"]
    token = await call.context.write(lambda writer: tokens.create(writer, owner, requester, renewers, max_lifetime_ms))
    return _described(token, tokens)


async def renew_token(call: Call) -> Fields:
    """Extend the expiry time of a token."""
    tokens, token = await _authorized_token(call)
    if token.is_expired(tokens.now_ms()):
        raise RequestError(ErrorCode.DELEGATION_TOKEN_EXPIRED)
    period_ms = call.body["renew_period"]
    expires_ms = await call.context.write(lambda writer: tokens.extend(writer, token, period_ms, renewed=True))
    return {"expiry_timestamp": expires_ms}


async def expire_token(call: Call) -> Fields:
    """Let a token expire after some time, or delete it at once."""
    tokens, token = await _authorized_token(call)
    period_ms, now_ms = call.body["expiry_time_period"], tokens.now_ms()
    if period_ms < 0:
        await call.context.write(lambda writer: tokens.delete(writer, token))
        return {"expiry_timestamp": now_ms}
    if token.is_expired(now_ms):
        raise RequestError(ErrorCode.DELEGATION_TOKEN_EXPIRED)

    def extend(writer: RecordWriter) -> int:
        return tokens.extend(writer, token, period_ms, renewed=False)

    return {"expiry_timestamp": await call.context.write(extend)}


async def describe_tokens(call: Call) -> Fields:
    """The tokens of these owners, or all, that the requester may see (``DelegationTokenManager.filterToken``)."""
    tokens = _allowed_tokens(call)
    listed = call.body["owners"]
    if listed is not None and not listed:
        return {"tokens": ()}
    owners = None if listed is None else [Principal(each["principal_name"], each["principal_type"]) for each in listed]
    stored = await call.context.read(lambda records: list(tokens.read_all(records)))
    return {
        "tokens": [
            {**_described(token, tokens), "renewers": [_principal(renewer) for renewer in token.renewers]}
            for token in stored
            if _is_selected(token, owners) and _is_visible(call, token)
        ]
    }


async def expire_tokens(context: ServerContext, tokens: Tokens) -> None:
    """Delete expired tokens periodically while this is the active controller, until cancelled.

    Brokers leave this to the controller (Kafka 3.9 ``KafkaController.processTokenExpiry``).
    """
    interval_ms = context.number("delegation.token.expiry.check.interval.ms", _CHECK_MS)
    while True:
        if context.controller.status().active:
            try:
                count = await context.write(lambda writer: tokens.delete_expired(context.records, writer))
                if count:
                    _log.info("deleted %d expired delegation tokens", count)
            except (KframeError, RequestError) as error:
                _log.warning("expired delegation tokens cannot be deleted: %s", error)
        await asyncio.sleep(interval_ms / 1000)


def _is_selected(token: Token, owners: list[Principal] | None) -> bool:
    return owners is None or any(token.belongs_to(owner) for owner in owners)


def _is_visible(call: Call, token: Token) -> bool:
    return (
        token.belongs_to(call.session.principal)
        or call.is_authorized(AclOperation.DESCRIBE, AclResourceType.DELEGATION_TOKEN, token.token_id)
        or call.is_authorized(AclOperation.DESCRIBE_TOKENS, AclResourceType.USER, str(token.owner))
    )


def _allowed_tokens(call: Call) -> Tokens:
    """The tokens, for a request that is allowed. Raises RequestError."""
    if not call.session.may_request_tokens:
        raise RequestError(ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED)
    if call.context.tokens is None:
        raise RequestError(ErrorCode.DELEGATION_TOKEN_AUTH_DISABLED)
    return call.context.tokens


async def _authorized_token(call: Call) -> tuple[Tokens, Token]:
    """The token of a request, which the requester may renew. Raises RequestError."""
    tokens = _allowed_tokens(call)
    token = await call.context.read(lambda records: tokens.find(records, call.body["hmac"]))
    if token is None:
        raise RequestError(ErrorCode.DELEGATION_TOKEN_NOT_FOUND)
    if call.session.principal not in (token.owner, *token.renewers):
        raise RequestError(ErrorCode.DELEGATION_TOKEN_OWNER_MISMATCH)
    return tokens, token


def _refused(code: int, involved: Fields) -> Fields:
    return {"error_code": code, **involved, "issue_timestamp": -1, "expiry_timestamp": -1, "max_timestamp": -1}


def _described(token: Token, tokens: Tokens) -> Fields:
    return {
        **_principals(token.owner, token.requester),
        "issue_timestamp": token.issued_ms,
        "expiry_timestamp": token.expires_ms,
        "max_timestamp": token.latest_ms,
        "token_id": token.token_id,
        "hmac": tokens.hmac_of(token.token_id),
    }


def _principals(owner: Principal, requester: Principal) -> Fields:
    of_requester = {f"token_requester_{key}": value for key, value in _principal(requester).items()}
    return {**_principal(owner), **of_requester}


def _principal(principal: Principal) -> Fields:
    return {"principal_type": principal.kind, "principal_name": principal.name}
