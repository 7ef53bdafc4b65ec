"""Serves a node on its listeners, in a thread of its own."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from concurrent.futures import Future
from contextlib import asynccontextmanager
from typing import Any, TypeVar

from kframe_kafka_wire.server.loop_thread import LoopThread
from kframe_kafka_wire.server.sockets import SocketServer

from kframe.plugin import CommitObserver, ElectionKind, LeaderSelector, StoreError
from kframe_kraft.apis.acl_apis import AclApis
from kframe_kraft.apis.active import ActiveController
from kframe_kraft.apis.broker_apis import BrokerApis
from kframe_kraft.apis.cluster_apis import ClusterApis
from kframe_kraft.apis.config_apis import ConfigApis
from kframe_kraft.apis.fetching import Fetching
from kframe_kraft.apis.partition_apis import PartitionApis
from kframe_kraft.apis.quorum_apis import NodeFacts, QuorumApis
from kframe_kraft.apis.quota_apis import QuotaApis
from kframe_kraft.apis.token_apis import TokenApis
from kframe_kraft.apis.topic_apis import TopicApis
from kframe_kraft.apis.user_apis import UserApis
from kframe_kraft.controller import Event
from kframe_kraft.errors import LogError
from kframe_kraft.quorum import FetchService
from kframe_kraft.server.application import ControllerApis, KraftApplication
from kframe_kraft.server.authorizer import authorizer_of, authorizer_settings
from kframe_kraft.server.leading import role_details
from kframe_kraft.server.logins import (
    check_controller_mechanism,
    scram_credentials,
    token_credentials,
    token_settings,
    token_tasks,
)
from kframe_kraft.server.metrics import measure
from kframe_kraft.server.node import VoterNode
from kframe_kraft.server.node_config import NodeConfig, node_config

T = TypeVar("T")


def make_controller(url: str, config: Mapping[str, str]) -> ServedController:
    """The controller for ``kraft:``, configured by Kafka's keys in ``config``. Raises ConfigError."""
    return ServedController(node_config(config))


class ServedController:
    """Implements ``kframe.ports.quorum_controller.QuorumController``."""

    def __init__(self, config: NodeConfig) -> None:
        """``start`` opens the directory. Raises ConfigError."""
        self._config = config
        self._sockets = SocketServer(config.config, config.bound)
        self._authorizer = authorizer_settings(config.config)
        self._tokens = token_settings(config.config)
        check_controller_mechanism(config.config, config.bound)
        self._thread = LoopThread("kframe-kraft-server")
        self.node: VoterNode | None = None

    @property
    def node_id(self) -> int:
        """See ``QuorumController``."""
        return self._config.node_id

    @property
    def failure(self) -> str | None:
        """See ``QuorumController``."""
        return None if self.node is None or self.node.loop is None else self.node.loop.failure

    @property
    def log_end(self) -> int:
        """See ``QuorumController``."""
        return -1 if self.node is None else self.node.log.end

    def submit(self, event: Event[T]) -> Future[T]:
        """See ``QuorumController``."""
        loop = None if self.node is None else self.node.loop
        if loop is None:
            raise StoreError(f"node {self.node_id} does not lead")
        return loop.submit(event)

    def summary(self) -> str:
        """See ``QuorumController``."""
        node = self.node
        if node is None:
            return f"node {self.node_id} has not started"
        listeners = ", ".join(f"{name}://{address}" for name, address in self.addresses.items())
        kind = "dynamic" if node.quorum.voters.kraft_version else "static"
        return (
            f"node {self.node_id} leads cluster {node.properties.cluster_id} in epoch {node.quorum.epoch}"
            f" as the only voter of a {kind} quorum, on {listeners}"
        )

    def problems(self) -> Sequence[str]:
        """See ``QuorumController``."""
        leadership = None if self.node is None else self.node.quorum.leadership
        if self.failure is not None:
            return (self.failure,)
        if leadership is None:
            return ("this node does not lead",)
        return () if leadership.high_watermark is not None else ("no record of this epoch is committed yet",)

    def details(self) -> Mapping[str, Any]:
        """See ``QuorumController``."""
        node = self.node
        loop = None if node is None else node.loop
        is_active = loop is not None and self.failure is None
        epoch = -1 if node is None else node.quorum.epoch
        return role_details(self.node_id, epoch, loop, self.log_end, is_active=is_active)

    def metrics(self) -> Mapping[str, float]:
        """See ``QuorumController``."""
        return {**({} if self.node is None else measure(self.node)), **self._sockets.metrics()}

    @property
    def addresses(self) -> Mapping[str, str]:
        """HOST:PORT of each listener while the server runs."""
        return self._sockets.addresses

    def start(
        self, selectors: Mapping[ElectionKind, LeaderSelector] = {}, observer: CommitObserver | None = None
    ) -> None:
        """See ``QuorumController``. Raises ConfigError, LogError and LogWriteError."""
        self._thread.start(self._serving(selectors, observer))

    def stop(self) -> None:
        """Resign, and close all connections. May be called again."""
        self._thread.stop()

    @asynccontextmanager
    async def _serving(
        self, selectors: Mapping[ElectionKind, LeaderSelector], observer: CommitObserver | None
    ) -> AsyncIterator[None]:
        node = self.node = await asyncio.to_thread(self._opened)
        try:
            loop = asyncio.get_running_loop()
            fetching = Fetching(FetchService(node.quorum, node.log), loop)
            # The port is known when the listener is bound.
            facts = NodeFacts(node.properties.cluster_id, self._endpoint, node.log.directory)
            active, kraft_version = ActiveController(), node.quorum.voters.kraft_version
            authorizer = authorizer_of(self._authorizer, node.metadata)
            apis = ControllerApis(
                QuorumApis(node.quorum, node.log, fetching, facts),
                BrokerApis(active, node.log, kraft_version),
                TopicApis(active, authorizer),
                PartitionApis(active),
                ConfigApis(active, authorizer),
                QuotaApis(active),
                ClusterApis(active, self.node_id, facts, kraft_version, node.register_itself, authorizer),
                node.features,
                AclApis(active, has_authorizer=self._authorizer is not None),
                UserApis(active),
                TokenApis(active, authorizer, self._tokens),
            )
            logins = scram_credentials(node.metadata), token_credentials(node.metadata, self._tokens)
            await self._sockets.listen(KraftApplication(apis, authorizer), *logins)
            tasks = token_tasks(self._tokens)
            active.activate(await asyncio.to_thread(node.lead, fetching.progress, selectors, tasks, observer))
            yield
        finally:
            await asyncio.to_thread(node.stop)
            await self._sockets.close()

    def _opened(self) -> VoterNode:
        config = self._config
        node = VoterNode(config.directory, config.settings, config.kraft)
        if node.properties.node_id != config.node_id:
            node.stop()
            where = f"{config.directory}, meta.properties"
            raise LogError(where, f"node.id {node.properties.node_id}", f"{config.node_id}, that of the configuration")
        return node

    def _endpoint(self) -> tuple[str, int]:
        """Host and port as brokers are to reach them: those advertised, with the port that was bound."""
        advertised = self._config.settings.endpoints[0]
        return advertised.host, advertised.port or int(self.addresses[advertised.name].rpartition(":")[2])
