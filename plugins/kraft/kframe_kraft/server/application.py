"""The controller as the program behind a server (``kframe_kafka_wire.server.application.Application``)."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

from kframe_kafka_wire.access.session import API_VERSIONS, ClientSession
from kframe_kafka_wire.protocol.codec import Fields, Header

from kframe_kraft.apis import broker_apis, quorum_apis
from kframe_kraft.apis.broker_apis import BrokerApis
from kframe_kraft.apis.quorum_apis import QuorumApis

Handler: TypeAlias = Callable[[Header, Fields], Awaitable[Fields]]
#: Responses with more bytes of records are encoded outside the event loop.
_LARGE_BYTES: Final = 1 << 18
_API_VERSIONS_NEWEST: Final = 4


@dataclass(frozen=True, slots=True)
class OfferedApi:
    """An API in the versions from ``oldest`` to ``newest``."""

    oldest: int
    newest: int
    handler: Handler


class KraftApplication:
    """Answers the requests of brokers, clients and other controllers."""

    def __init__(self, quorum: QuorumApis, brokers: BrokerApis, features: Callable[[], Fields]) -> None:
        """``features`` returns the fields of ApiVersions about features."""
        self._features = features
        versions = {**quorum_apis.VERSIONS, **broker_apis.VERSIONS}
        handlers: Mapping[int, Handler] = {
            quorum_apis.FETCH: quorum.fetch,
            quorum_apis.VOTE: quorum.vote,
            quorum_apis.BEGIN_QUORUM_EPOCH: quorum.begin_or_end_epoch,
            quorum_apis.END_QUORUM_EPOCH: quorum.begin_or_end_epoch,
            quorum_apis.DESCRIBE_QUORUM: quorum.describe_quorum,
            quorum_apis.FETCH_SNAPSHOT: quorum.fetch_snapshot,
            broker_apis.ALTER_PARTITION: brokers.alter_partition,
            broker_apis.BROKER_REGISTRATION: brokers.register,
            broker_apis.BROKER_HEARTBEAT: brokers.heartbeat,
            broker_apis.UNREGISTER_BROKER: brokers.unregister,
            broker_apis.ALLOCATE_PRODUCER_IDS: brokers.allocate_producer_ids,
            broker_apis.CONTROLLER_REGISTRATION: brokers.register_controller,
            broker_apis.ASSIGN_REPLICAS_TO_DIRS: brokers.assign_directories,
        }
        self._apis = {key: OfferedApi(*versions[key], handler) for key, handler in handlers.items()}
        self._apis[API_VERSIONS] = OfferedApi(0, _API_VERSIONS_NEWEST, self._api_versions)

    def is_offered(self, api_key: int, version: int) -> bool:
        """See ``Application``."""
        api = self._apis.get(api_key)
        return api is not None and api.oldest <= version <= api.newest

    def versions_on_offer(self) -> Sequence[Fields]:
        """See ``Application``."""
        return [
            {"api_key": key, "min_version": api.oldest, "max_version": api.newest}
            for key, api in sorted(self._apis.items())
        ]

    def is_ready(self) -> bool:
        """See ``Application``."""
        return True

    async def respond(self, header: Header, body: Fields, session: ClientSession) -> Fields | None:
        """See ``Application``."""
        return await self._apis[header.api_key].handler(header, body)

    def is_large(self, header: Header, response: Fields) -> bool:
        """See ``Application``."""
        if header.api_key == quorum_apis.FETCH:
            return any(len(topic["partitions"][0]["records"]) > _LARGE_BYTES for topic in response["responses"])
        return header.api_key == quorum_apis.FETCH_SNAPSHOT

    async def _api_versions(self, header: Header, body: Fields) -> Fields:
        return {"error_code": 0, "api_keys": self.versions_on_offer(), "throttle_time": 0, **self._features()}
