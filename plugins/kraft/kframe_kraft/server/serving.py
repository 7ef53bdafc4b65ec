"""Serves a node on its listeners, in a thread of its own."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager

from kframe_kafka_wire.records.credentials import no_tokens, scram_lookup
from kframe_kafka_wire.records.store import NoRecords
from kframe_kafka_wire.server.loop_thread import LoopThread
from kframe_kafka_wire.server.sockets import SocketServer

from kframe.plugin.cluster import Endpoint
from kframe_kraft.apis.active import ActiveController
from kframe_kraft.apis.broker_apis import BrokerApis
from kframe_kraft.apis.config_apis import ConfigApis
from kframe_kraft.apis.fetching import Fetching
from kframe_kraft.apis.partition_apis import PartitionApis
from kframe_kraft.apis.quorum_apis import NodeFacts, QuorumApis
from kframe_kraft.apis.topic_apis import TopicApis
from kframe_kraft.quorum import FetchService
from kframe_kraft.server.application import ControllerApis, KraftApplication
from kframe_kraft.server.node import VoterNode


class ServedController:
    """A controller that leads and serves from ``start`` to ``stop``."""

    def __init__(self, node: Callable[[], VoterNode], config: Mapping[str, str], bound: Sequence[Endpoint]) -> None:
        """``node`` opens the directory. ``config`` has Kafka's keys of the listeners ``bound``. Raises ConfigError."""
        self._open = node
        self._sockets = SocketServer(config, bound)
        self._listener = bound[0].listener
        self._thread = LoopThread("kframe-kraft-server")
        self.node: VoterNode | None = None

    @property
    def addresses(self) -> Mapping[str, str]:
        """HOST:PORT of each listener while the server runs."""
        return self._sockets.addresses

    def start(self) -> None:
        """Bind, become the leader, and serve. Raises ConfigError, LogError and LogWriteError."""
        self._thread.start(self._serving())

    def stop(self) -> None:
        """Resign, and close all connections. May be called again."""
        self._thread.stop()

    @asynccontextmanager
    async def _serving(self) -> AsyncIterator[None]:
        node = self.node = await asyncio.to_thread(self._open)
        try:
            loop = asyncio.get_running_loop()
            fetching = Fetching(FetchService(node.quorum, node.log), loop)
            # The port is known when the listener is bound.
            facts = NodeFacts(node.properties.cluster_id, self._endpoint, node.log.directory)
            active = ActiveController()
            apis = ControllerApis(
                QuorumApis(node.quorum, node.log, fetching, facts),
                BrokerApis(active, node.log, node.quorum.voters.kraft_version),
                TopicApis(active),
                PartitionApis(active),
                ConfigApis(active),
                node.features,
            )
            await self._sockets.listen(KraftApplication(apis), scram_lookup(NoRecords()), no_tokens)
            active.activate(await asyncio.to_thread(node.lead, fetching.progress))
            yield
        finally:
            await asyncio.to_thread(node.stop)
            await self._sockets.close()

    def _endpoint(self) -> tuple[str, int]:
        host, _, port = self.addresses[self._listener].rpartition(":")
        return host, int(port)
