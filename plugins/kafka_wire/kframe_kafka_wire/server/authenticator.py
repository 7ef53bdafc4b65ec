"""The login of a connection by SaslHandshake and SaslAuthenticate, and its renewal before the session expires
(KIP-368)."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from kframe.plugin import ErrorCode
from kframe_kafka_wire.access.sasl import Exchange, PlainExchange, SaslError, ScramExchange
from kframe_kafka_wire.access.session import BEFORE_LOGIN, SASL_AUTHENTICATE, SASL_HANDSHAKE, ClientSession
from kframe_kafka_wire.listeners.security import ListenerSecurity
from kframe_kafka_wire.protocol.codec import Fields, Header
from kframe_kafka_wire.protocol.errors import Refused
from kframe_kafka_wire.records.credentials import HASHES, ScramLookup, TokenLookup
from kframe_kafka_wire.records.principals import Principal

#: Characters of a mechanism's name that are logged.
_MECHANISM_CHARS_MAX: Final = 40


@dataclass(frozen=True, slots=True)
class Logins:
    """A listener's logins."""

    mechanisms: tuple[str, ...]
    start_exchange: Callable[[str], Exchange]
    """Start an exchange for a mechanism."""
    lifetime_ms: int
    """Lifetime of a login (connections.max.reauth.ms). 0 for no limit."""
    delay_s: float
    """Delay of the response to a failed login."""


def logins_of(
    security: ListenerSecurity, lookup: ScramLookup, tokens: TokenLookup, *, lifetime_ms: int, delay_ms: int
) -> Logins:
    """The login configuration of a listener by Kafka's keys. Raises ConfigError."""
    mechanisms = security.mechanisms()
    options = security.login("PLAIN").options if "PLAIN" in mechanisms else {}

    def start_exchange(mechanism: str) -> Exchange:
        return ScramExchange(mechanism, lookup, tokens) if mechanism in HASHES else PlainExchange(options)

    return Logins(mechanisms, start_exchange, lifetime_ms, delay_ms / 1000)


class SaslAuthenticator:
    """Blocks the requests of a connection until its client has logged in."""

    def __init__(self, logins: Logins, session: ClientSession) -> None:
        self._logins = logins
        self._session = session
        self._mechanism = ""
        self._exchange: Exchange | None = None
        self._login: tuple[str, Principal] | None = None
        self._expires_s = float("inf")
        self.expects_token = False
        """Whether the next frame is a bare token, as after a handshake of version 0."""
        self.failure: SaslError | None = None
        """Why the connection ends after the next response."""

    @property
    def is_authenticated(self) -> bool:
        """Whether the client has logged in."""
        return self._login is not None

    def check(self, header: Header) -> bool:
        """Whether this object handles the request. Raises Refused for a request that is not allowed before login."""
        in_progress = self._exchange is not None
        is_login = header.api_key in (SASL_HANDSHAKE, SASL_AUTHENTICATE)
        if self._login is None or in_progress:
            if header.api_key not in BEFORE_LOGIN or (in_progress and header.api_key != SASL_AUTHENTICATE):
                raise Refused("a request before the login")
            return is_login
        if not is_login and asyncio.get_running_loop().time() > self._expires_s:
            raise Refused("the login has expired (connections.max.reauth.ms)")
        return is_login

    def handshake(self, version: int, body: Fields) -> Fields:
        """Select a mechanism."""
        if self._login is not None and not self._logins.lifetime_ms:
            return {"error_code": ErrorCode.ILLEGAL_SASL_STATE, "mechanisms": self._logins.mechanisms}
        mechanism = body["mechanism"]
        changed = self._login is not None and self._login[0] != mechanism
        if mechanism not in self._logins.mechanisms or changed:
            self.failure = SaslError(f"mechanism {mechanism[:_MECHANISM_CHARS_MAX]!r} is not enabled")
            return {"error_code": ErrorCode.UNSUPPORTED_SASL_MECHANISM, "mechanisms": self._logins.mechanisms}
        self._mechanism, self._exchange = mechanism, self._logins.start_exchange(mechanism)
        self.expects_token = version == 0
        return {"error_code": 0, "mechanisms": self._logins.mechanisms}

    async def authenticate(self, body: Fields) -> Fields:
        """Process the token of a SaslAuthenticate request."""
        if self._exchange is None:
            if self._login is None:
                self.failure = SaslError("SaslAuthenticate before SaslHandshake")
            return {"error_code": ErrorCode.ILLEGAL_SASL_STATE, "error_message": "SaslHandshake comes first"}
        try:
            token = await self.process_token(body["auth_bytes"])
        except SaslError as error:
            return {"error_code": ErrorCode.SASL_AUTHENTICATION_FAILED, "error_message": str(error)}
        return {"auth_bytes": token, "session_lifetime": self._lifetime_ms()}

    async def process_token(self, token: bytes) -> bytes:
        """Process a token, and return the server's token. Raises SaslError after the delay; then the connection must
        end."""
        assert self._exchange is not None
        try:
            # The exchange may read credentials from the store.
            response = await asyncio.to_thread(self._exchange.evaluate_response, token)
            if self._exchange.principal is not None:
                self._complete(self._exchange.principal)
        except SaslError as error:
            self.failure = error
            await asyncio.sleep(self._logins.delay_s)
            raise
        return response

    def _lifetime_ms(self) -> int:
        """The lifetime of this login after its completion."""
        return self._logins.lifetime_ms if self._exchange is None else 0

    def _complete(self, principal: Principal) -> None:
        if self._login is not None and self._login[1] != principal:
            raise SaslError("Cannot change principals during re-authentication")
        self._login, self._exchange, self.expects_token = (self._mechanism, principal), None, False
        self._session.principal = principal
        if self._logins.lifetime_ms:
            self._expires_s = asyncio.get_running_loop().time() + self._logins.lifetime_ms / 1000
