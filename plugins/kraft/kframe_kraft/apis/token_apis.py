"""CreateDelegationToken, RenewDelegationToken and ExpireDelegationToken (KIP-48).

Handlers raise RequestRefused and NotController.
"""

from __future__ import annotations

import time

from kframe_kafka_wire.access.access import Access
from kframe_kafka_wire.access.authorizer import OperationAuthorizer
from kframe_kafka_wire.access.session import ClientSession
from kframe_kafka_wire.protocol.codec import Fields, Header
from kframe_kafka_wire.records.principals import Principal

from kframe.plugin import ErrorCode
from kframe.plugin.kraft import uuid_text
from kframe.plugin.kraft_controller import RequestRefused, tokens
from kframe.plugin.server import AclOperation, AclResourceType, token_hmac
from kframe_kraft.apis.active import ActiveController
from kframe_kraft.uuids import random_uuid


class TokenApis:
    """Answers for the active controller. Clients may create tokens for others as ``authorizer`` allows."""

    def __init__(
        self, controller: ActiveController, authorizer: OperationAuthorizer, settings: tokens.TokenSettings
    ) -> None:
        self._controller = controller
        self._authorizer = authorizer
        self._settings = settings

    async def create_token(self, header: Header, body: Fields, session: ClientSession) -> Fields:
        """CreateDelegationToken, for the client itself or another principal."""
        requester, name = session.principal, body.get("owner_principal_name")
        owner = Principal(name, body["owner_principal_type"] or "") if name else requester
        principals = _principals(owner, requester)
        renewers = tuple((each["principal_type"], each["principal_name"]) for each in body["renewers"])
        requested = tokens.RequestedToken(str(owner), str(requester), renewers, body["max_lifetime"])
        try:
            self._check_creation(owner, session)
            token = await self._controller.ask(
                lambda context: tokens.create_token(
                    context, self._settings, requested, uuid_text(random_uuid()), now_ms()
                )
            )
        except RequestRefused as refusal:
            timestamps = {"issue_timestamp": -1, "expiry_timestamp": -1, "max_timestamp": -1}
            return {"throttle_time": 0, "error_code": refusal.error, **principals, **timestamps}
        return {
            "throttle_time": 0,
            "error_code": ErrorCode.NONE,
            **principals,
            "issue_timestamp": token.issue_timestamp,
            "expiry_timestamp": token.expiration_timestamp,
            "max_timestamp": token.max_timestamp,
            "token_id": token.token_id,
            "hmac": token_hmac(self._settings.secret, token.token_id),
        }

    async def renew_token(self, header: Header, body: Fields, session: ClientSession) -> Fields:
        """RenewDelegationToken."""
        _check_session(session)
        secret, principal, period_ms = body["hmac"], str(session.principal), body["renew_period"]
        expires = await self._controller.ask(
            lambda context: tokens.renew_token(context, self._settings, secret, principal, period_ms, now_ms())
        )
        return {"throttle_time": 0, "error_code": ErrorCode.NONE, "expiry_timestamp": expires}

    async def expire_token(self, header: Header, body: Fields, session: ClientSession) -> Fields:
        """ExpireDelegationToken."""
        _check_session(session)
        secret, principal, period_ms = body["hmac"], str(session.principal), body["expiry_time_period"]
        expires = await self._controller.ask(
            lambda context: tokens.expire_token(context, self._settings, secret, principal, period_ms, now_ms())
        )
        return {"throttle_time": 0, "error_code": ErrorCode.NONE, "expiry_timestamp": expires}

    def _check_creation(self, owner: Principal, session: ClientSession) -> None:
        """Raises RequestRefused. A client needs no permission for tokens of its own."""
        _check_session(session)
        access, operation = Access(self._authorizer, session), AclOperation.CREATE_TOKENS
        if owner != session.principal and not access.is_authorized(operation, AclResourceType.USER, str(owner)):
            message = f"{session.principal} may not create tokens of {owner}."
            raise RequestRefused(ErrorCode.DELEGATION_TOKEN_AUTHORIZATION_FAILED, message)


def now_ms() -> int:
    """The time since the epoch in milliseconds, as in tokens."""
    return time.time_ns() // 1_000_000


def _check_session(session: ClientSession) -> None:
    if not session.may_request_tokens:
        message = "Delegation Token requests are not allowed on PLAINTEXT/1-way SSL channels and on delegation token"
        message += " authenticated channels."
        raise RequestRefused(ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED, message)


def _principals(owner: Principal, requester: Principal) -> Fields:
    return {
        "principal_type": owner.kind,
        "principal_name": owner.name,
        "token_requester_principal_type": requester.kind,
        "token_requester_principal_name": requester.name,
    }
