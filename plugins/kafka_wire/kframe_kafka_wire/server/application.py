"""What a server asks of the program behind its sockets."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from kframe_kafka_wire.access.session import ClientSession
from kframe_kafka_wire.protocol.codec import Fields, Header


class Application(Protocol):
    """Answers the requests of all connections, on the event loop of the server."""

    def is_offered(self, api_key: int, version: int) -> bool:
        """Whether this version of an API is answered."""

    def versions_on_offer(self) -> Sequence[Fields]:
        """The APIs in the answer to an unknown version of ApiVersions, in its format."""

    def is_ready(self) -> bool:
        """Whether requests other than those of a login can be authorized."""

    async def respond(self, header: Header, body: Fields, session: ClientSession) -> Fields | None:
        """The body of the response. None if the client expects none. Raises Refused to end the connection."""

    def is_large(self, header: Header, response: Fields) -> bool:
        """Whether the response should be encoded outside the event loop."""
