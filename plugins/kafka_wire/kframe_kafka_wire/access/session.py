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

    @property
    def may_request_tokens(self) -> bool:
        """Whether requests for delegation tokens are allowed (``KafkaApis.allowTokenRequests``).

        The client must be authenticated, but not by a token. A broker has authenticated a forwarded client.
        """
        is_anonymous = self.protocol == "PLAINTEXT" or (self.protocol == "SSL" and self.principal == ANONYMOUS)
        return not self.principal.by_token and (self.is_forwarded or not is_anonymous)
