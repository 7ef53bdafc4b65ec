"""The client of a connection, and the APIs by which it logs in."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from kframe_kafka_wire.records.principals import ANONYMOUS, Principal

SASL_HANDSHAKE: Final = 17
API_VERSIONS: Final = 18
SASL_AUTHENTICATE: Final = 36
#: The APIs that a client may call before its login.
BEFORE_LOGIN: Final = frozenset({API_VERSIONS, SASL_HANDSHAKE, SASL_AUTHENTICATE})


@dataclass(slots=True)
class ClientSession:
    """The authenticated client of a connection."""

    listener: str
    host: str
    principal: Principal = ANONYMOUS
    protocol: str = "PLAINTEXT"
    """The security protocol of the listener."""
    is_forwarded: bool = False
    """Whether a broker forwards the requests of the client."""
