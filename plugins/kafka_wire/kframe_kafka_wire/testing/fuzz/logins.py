"""Fuzz SASL logins: the server's tokens at the client, and the client's tokens at the server."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from kframe_kafka_wire.answers import WireError
from kframe_kafka_wire.sasl import authenticate
from kframe_kafka_wire.sasl_server import PlainExchange, SaslError, ScramExchange, make_credential
from kframe_kafka_wire.security import Credentials
from kframe_kafka_wire.testing.fuzz.frames import FrameTarget
from kframe_simulator.fuzz import Batch, Outcome

_PLAIN: Final = "PLAIN"
_CREDENTIAL: Final = make_credential("SCRAM-SHA-256", "p", b"salt")
_NONCE: Final = "x"


class ClientLogins(FrameTarget):
    """Responses to a client that logs in, each after a byte with its length. The kind is a mechanism."""

    def evaluate(self, batch: Batch) -> list[Outcome]:
        """Whether the login succeeds."""
        return [_client(batch[i], batch.kinds[i]) for i in range(len(batch))]


class ServerLogins(FrameTarget):
    """Tokens of a client that logs in, in the same format."""

    def evaluate(self, batch: Batch) -> list[Outcome]:
        """Whether the login succeeds."""
        return [_server(batch[i], batch.kinds[i]) for i in range(len(batch))]


def _parts(raw: bytes) -> Iterator[bytes]:
    """The messages, then endless empty messages."""
    offset = 0
    while True:
        length = raw[offset] if offset < len(raw) else 0
        yield raw[offset + 1 : offset + 1 + length]
        offset += 1 + length


def _client(raw: bytes, mechanism: str) -> Outcome:
    replies = _parts(raw)
    try:
        authenticate(Credentials(mechanism, "u", "p"), "client", lambda _: next(replies))
    except WireError as error:
        return str(error)
    return None


def _server(raw: bytes, mechanism: str) -> Outcome:
    tokens = _parts(raw)
    exchange: PlainExchange | ScramExchange
    if mechanism == _PLAIN:
        exchange = PlainExchange({"user_u": "p"})
    else:
        exchange = ScramExchange(mechanism, lambda _, user: _CREDENTIAL if user == "u" else None, nonce=lambda: _NONCE)
    try:
        while exchange.principal is None:
            exchange.answer(next(tokens))
    except SaslError as error:
        return str(error)
    return None
