"""The controller of a cluster in ZooKeeper mode as the program behind a server."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from kframe_kafka_wire.access.session import API_VERSIONS, ClientSession
from kframe_kafka_wire.apis.calls import Call, RequestError, ServerContext
from kframe_kafka_wire.apis.table import APIS, METADATA, is_offered, offered_versions, refusal
from kframe_kafka_wire.protocol.codec import Fields, Header

_TOPICS_LARGE: Final = 500


class ControllerApplication:
    """Implements ``kframe_kafka_wire.server.application.Application``."""

    def __init__(self, context: ServerContext) -> None:
        self._context = context

    def is_offered(self, api_key: int, version: int) -> bool:
        """See ``Application``."""
        return is_offered(api_key, version)

    def versions_on_offer(self) -> Sequence[Fields]:
        """See ``Application``. As Kafka 3.9, it has ApiVersions alone."""
        return offered_versions([API_VERSIONS])

    def is_ready(self) -> bool:
        """See ``Application``."""
        return self._context.authorizer.is_ready()

    async def respond(self, header: Header, body: Fields, session: ClientSession) -> Fields | None:
        """See ``Application``."""
        call = Call(header, body, session, self._context)
        try:
            return await APIS[header.api_key].respond(call)
        except RequestError as error:
            return refusal(header.api_key, header.api_version, body, error.code, error.message)

    def is_large(self, header: Header, response: Fields) -> bool:
        """See ``Application``."""
        return header.api_key == METADATA and len(response["topics"]) > _TOPICS_LARGE
