"""The login of a connection by SaslHandshake and SaslAuthenticate, and its renewal before the session expires
(KIP-368)."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from kframe.plugin import ErrorCode
from kframe_kafka_wire.apis.table import BEFORE_LOGIN, SASL_AUTHENTICATE, SASL_HANDSHAKE
from kframe_kafka_wire.calls import ClientSession
from kframe_kafka_wire.codec import Header
from kframe_kafka_wire.frames import Refused
from kframe_kafka_wire.principals import Principal
from kframe_kafka_wire.sasl_server import (
    HASHES,
    Exchange,
    PlainExchange,
    SaslError,
    ScramExchange,
    ScramLookup,
    TokenLookup,
)
from kframe_kafka_wire.security import ListenerSecurity

Fields = Mapping[str, Any]
#: Characters of a mechanism's name that are logged.
_SHOWN: Final = 40


@dataclass(frozen=True, slots=True)
class Logins:
    """A listener's logins."""

    mechanisms: tuple[str, ...]
    begin: Callable[[str], Exchange]
    """Start an exchange for a mechanism."""
    lasts_ms: int
    """Lifetime of a login (connections.max.reauth.ms). 0 for no limit."""
    delay_s: float
    """Delay of the response to a failed login."""


def logins_of(
    security: ListenerSecurity, lookup: ScramLookup, tokens: TokenLookup, *, lasts_ms: int, delay_ms: int
) -> Logins:
    """The login configuration of a listener by Kafka's keys. Raises ConfigError."""
    mechanisms = security.mechanisms()
    options = security.login("PLAIN").options if "PLAIN" in mechanisms else {}

    def begin(mechanism: str) -> Exchange:
        return ScramExchange(mechanism, lookup, tokens) if mechanism in HASHES else PlainExchange(options)

    return Logins(mechanisms, begin, lasts_ms, delay_ms / 1000)


class Gate:
    """Blocks the requests of a connection until its client has logged in."""

    def __init__(self, logins: Logins, session: ClientSession) -> None:
        self._logins = logins
        self._session = session
        self._mechanism = ""
        self._exchange: Exchange | None = None
        self._passed: tuple[str, Principal] | None = None
        self._ends_s = float("inf")
        self.raw = False
        """Whether the next frame is a bare token, as after a handshake of version 0."""
        self.failure: SaslError | None = None
        """Why the connection ends after the next response."""

    @property
    def passed(self) -> bool:
        """Whether the client has logged in."""
        return self._passed is not None

    def check(self, header: Header) -> bool:
        """Whether the gate handles this request. Raises Refused for a request that is not allowed before login."""
        busy = self._exchange is not None
        login = header.api_key in (SASL_HANDSHAKE, SASL_AUTHENTICATE)
        if self._passed is None or busy:
            if header.api_key not in BEFORE_LOGIN or (busy and header.api_key != SASL_AUTHENTICATE):
                raise Refused("a request before the login")
            return login
        if not login and asyncio.get_running_loop().time() > self._ends_s:
            raise Refused("the login has expired (connections.max.reauth.ms)")
        return login

    def handshake(self, version: int, body: Fields) -> Fields:
        """Select a mechanism."""
        if self._passed is not None and not self._logins.lasts_ms:
            return {"error_code": ErrorCode.ILLEGAL_SASL_STATE, "mechanisms": self._logins.mechanisms}
        mechanism = body["mechanism"]
        changed = self._passed is not None and self._passed[0] != mechanism
        if mechanism not in self._logins.mechanisms or changed:
            self.failure = SaslError(f"mechanism {mechanism[:_SHOWN]!r} is not enabled")
            return {"error_code": ErrorCode.UNSUPPORTED_SASL_MECHANISM, "mechanisms": self._logins.mechanisms}
        self._mechanism, self._exchange = mechanism, self._logins.begin(mechanism)
        self.raw = version == 0
        return {"error_code": 0, "mechanisms": self._logins.mechanisms}

    async def authenticate(self, body: Fields) -> Fields:
        """Process the token of a SaslAuthenticate request."""
        if self._exchange is None:
            if self._passed is None:
                self.failure = SaslError("SaslAuthenticate before SaslHandshake")
            return {"error_code": ErrorCode.ILLEGAL_SASL_STATE, "error_message": "SaslHandshake comes first"}
        try:
            token = await self.take(body["auth_bytes"])
        except SaslError as error:
            return {"error_code": ErrorCode.SASL_AUTHENTICATION_FAILED, "error_message": str(error)}
        return {"auth_bytes": token, "session_lifetime": self._lifetime_ms()}

    async def take(self, token: bytes) -> bytes:
        """Process a token, and return the server's token. Raises SaslError after the delay; then the connection must
        end."""
        assert self._exchange is not None
        try:
            # The exchange may read credentials from the store.
            answer = await asyncio.to_thread(self._exchange.answer, token)
            if self._exchange.principal is not None:
                self._pass(self._exchange.principal)
        except SaslError as error:
            self.failure = error
            await asyncio.sleep(self._logins.delay_s)
            raise
        return answer

    def _lifetime_ms(self) -> int:
        """The lifetime of this login after its completion."""
        return self._logins.lasts_ms if self._exchange is None else 0

    def _pass(self, principal: Principal) -> None:
        if self._passed is not None and self._passed[1] != principal:
            raise SaslError("Cannot change principals during re-authentication")
        self._passed, self._exchange, self.raw = (self._mechanism, principal), None, False
        self._session.principal = principal
        if self._logins.lasts_ms:
            self._ends_s = asyncio.get_running_loop().time() + self._logins.lasts_ms / 1000
