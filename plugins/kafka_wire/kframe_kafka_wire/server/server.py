"""The server of a controller for brokers, clients and tools, in a thread of its own."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Final

from kframe.plugin.cluster import Registration
from kframe.plugin.controller import Controller
from kframe.plugin.server import MutationQuotas
from kframe.plugin.settings import whole
from kframe_kafka_wire.access.authorizer import AclAuthorizer, authorizer_of
from kframe_kafka_wire.apis.application import ControllerApplication
from kframe_kafka_wire.apis.calls import ServerContext
from kframe_kafka_wire.apis.tokens import expire_tokens
from kframe_kafka_wire.connections.broker_settings import BrokerSettings
from kframe_kafka_wire.listeners.identity import node_of, should_register
from kframe_kafka_wire.records.credentials import scram_lookup
from kframe_kafka_wire.records.store import AnnouncingStore, NoRecords, Records
from kframe_kafka_wire.records.tokens import token_lookup, tokens_of
from kframe_kafka_wire.server.loop_thread import LoopThread
from kframe_kafka_wire.server.sockets import SocketServer


def make_server(url: str, config: Mapping[str, str]) -> WireServer:
    """The server for ``kafka:``, configured by Kafka's keys in ``config``. Raises ConfigError."""
    return WireServer(config)


class WireServer:
    """Implements ``kframe.ports.server.Server`` on Kafka's protocol."""

    def __init__(self, config: Mapping[str, str], records: Records | None = None) -> None:
        """``records`` has credentials and ACLs; by default those of the controller's store. Raises ConfigError."""
        self._config = dict(config)
        self._records = records
        self._node = node_of(config)
        self._sockets = SocketServer(config, self._node.bound)
        self._numbers = {
            key: whole(minimum)(f"config key {key}", config.get(key, default))
            for key, minimum, default in _INTEGER_KEYS
        }
        self._tokens = tokens_of(config)
        self._thread = LoopThread("kframe-server")

    @property
    def addresses(self) -> Mapping[str, str]:
        """HOST:PORT of each listener while the server runs."""
        return self._sockets.addresses

    def metrics(self) -> dict[str, float]:
        """Connections dropped and frames refused. Callable from any thread."""
        return self._sockets.metrics()

    def start(self, controller: Controller) -> None:
        """Bind and serve until ``stop``. Raises ConfigError if an address cannot be bound or a file cannot be read."""
        self._thread.start(self._serving(controller))

    def stop(self) -> None:
        """Close all connections. May be called again."""
        self._thread.stop()

    @asynccontextmanager
    async def _serving(self, controller: Controller) -> AsyncIterator[None]:
        context = self._context(controller)
        authorizer = context.authorizer if isinstance(context.authorizer, AclAuthorizer) else None
        expiring: asyncio.Task[None] | None = None
        try:
            lookups = scram_lookup(context.records), token_lookup(context.tokens, context.records)
            await self._sockets.listen(ControllerApplication(context), *lookups)
            context.node = self._advertised()
            store: object = controller.store
            if should_register(self._config) and isinstance(store, AnnouncingStore):
                store.announce(context.node)
            if authorizer is not None:
                await asyncio.to_thread(authorizer.start)
            if context.tokens is not None:
                expiring = asyncio.create_task(expire_tokens(context, context.tokens))
            yield
        finally:
            await self._sockets.close()
            if expiring is not None:
                expiring.cancel()
                await asyncio.gather(expiring, return_exceptions=True)
            if authorizer is not None:
                await asyncio.to_thread(authorizer.stop)

    def _context(self, controller: Controller) -> ServerContext:
        store: object = controller.store
        records = self._records
        if records is None:
            records = store if isinstance(store, Records) else NoRecords()
        window_s = self._numbers["controller.quota.window.num"] * self._numbers["controller.quota.window.size.seconds"]
        return ServerContext(
            controller,
            self._node.registration,
            self._config,
            authorizer_of(self._config, records),
            records,
            tokens=self._tokens,
            settings_reader=BrokerSettings(self._config, str(self._node.registration.broker_id)),
            mutations=MutationQuotas(window_s),
        )

    def _advertised(self) -> Registration:
        """The registration. Listeners with port 0 have their actual ports."""
        node = self._node.registration
        ports = {listener: int(address.rpartition(":")[2]) for listener, address in self.addresses.items()}
        endpoints = (
            endpoint if endpoint.port else replace(endpoint, port=ports.get(endpoint.listener, 0))
            for endpoint in node.endpoints
        )
        return replace(node, endpoints=tuple(endpoints))


#: Keys, minimum values, and defaults: Kafka's for Kafka's keys.
_INTEGER_KEYS: Final = (
    ("request.timeout.ms", 1, "30000"),
    ("controller.quota.window.num", 1, "11"),
    ("controller.quota.window.size.seconds", 1, "1"),
)
