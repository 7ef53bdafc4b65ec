"""The server of a controller for brokers, clients and tools, in a thread of its own."""

from __future__ import annotations

import asyncio
import logging
import threading
import time
from collections import Counter
from collections.abc import Mapping
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import replace
from typing import Any, Final

from kframe.plugin import ConfigError
from kframe.plugin.cluster import Endpoint, Registration
from kframe.plugin.server import Controller, MutationQuotas
from kframe.plugin.settings import whole
from kframe_kafka_wire.access.authorizer import AclAuthorizer, authorizer_of
from kframe_kafka_wire.apis.calls import ServerContext
from kframe_kafka_wire.apis.tokens import expire_tokens
from kframe_kafka_wire.connections.broker_settings import BrokerSettings
from kframe_kafka_wire.listeners.identity import node_of, should_register
from kframe_kafka_wire.listeners.security import ListenerSecurity, security_of
from kframe_kafka_wire.records.credentials import scram_lookup
from kframe_kafka_wire.records.principals import name_mapper
from kframe_kafka_wire.records.store import AnnouncingStore, NoRecords, Records
from kframe_kafka_wire.records.tokens import token_lookup, tokens_of
from kframe_kafka_wire.server.authenticator import Logins, logins_of
from kframe_kafka_wire.server.connection import ClientConnection, ConnectionLimits, ListenerContext
from kframe_kafka_wire.server.connection_rate import RATE_DEFAULT, RATE_KEY, ConnectionRate
from kframe_kafka_wire.server.drops import DroppedConnections, DropReason
from kframe_kafka_wire.server.frames import Budget

_log = logging.getLogger("kframe.kafka_wire")

#: The default of queued.max.request.bytes, in frames of the maximum size.
_FRAMES_AT_ONCE: Final = 2
_HANDSHAKE_S: Final = 30.0
#: Connections that asyncio accepts for each event of a listening socket. Without a free descriptor it logs an error and
#: schedules another attempt for each of them, and each attempt does the same: the number of errors grows every second.
_ACCEPTED_AT_ONCE: Final = 1


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
        self._security = {endpoint.listener: security_of(config, endpoint.listener) for endpoint in self._node.bound}
        for security in self._security.values():
            _check(security)
        self._numbers = {
            key: whole(minimum)(f"config key {key}", config.get(key, default))
            for key, minimum, default in _INTEGER_KEYS
        }
        self._tokens = tokens_of(config)
        self._addresses: dict[str, str] = {}
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None
        self._stopping: asyncio.Event | None = None
        self._authorizer: AclAuthorizer | None = None
        self._connections_by_host: Counter[str] = Counter()
        self._drops = DroppedConnections()
        self._rate = ConnectionRate(self._numbers[RATE_KEY], time.monotonic)

    @property
    def addresses(self) -> Mapping[str, str]:
        """HOST:PORT of each listener while the server runs."""
        return dict(self._addresses)

    def metrics(self) -> dict[str, float]:
        """Connections dropped and frames refused. Callable from any thread."""
        return self._drops.metrics()

    def start(self, controller: Controller) -> None:
        """Bind and serve until ``stop``. Raises ConfigError if an address cannot be bound or a file cannot be read."""
        started: Future[None] = Future()
        self._thread = threading.Thread(
            target=lambda: asyncio.run(self._main(controller, started)), name="kframe-server", daemon=True
        )
        self._thread.start()
        try:
            started.result()
        except BaseException:
            self._thread.join()
            self._thread = None
            raise

    def stop(self) -> None:
        """Close all connections. May be called again."""
        thread, self._thread = self._thread, None
        if thread is None:
            return
        loop, stopping = self._loop, self._stopping
        if loop is not None and stopping is not None:
            with suppress(RuntimeError):  # The event loop has ended already.
                loop.call_soon_threadsafe(stopping.set)
        thread.join()
        self._addresses.clear()

    async def _main(self, controller: Controller, started: Future[None]) -> None:
        self._loop, self._stopping = asyncio.get_running_loop(), asyncio.Event()
        self._loop.set_exception_handler(_on_error)
        servers: list[asyncio.Server] = []
        tasks: set[asyncio.Task[None]] = set()
        try:
            context = self._context(controller)
            configured = self._numbers["queued.max.request.bytes"]
            budget = Budget(
                configured if configured > 0 else _FRAMES_AT_ONCE * self._numbers["socket.request.max.bytes"]
            )
            for endpoint in self._node.bound:
                servers.append(await self._listen(endpoint, context, budget, tasks))
            context.node = self._advertised()
            store: object = controller.store
            if should_register(self._config) and isinstance(store, AnnouncingStore):
                store.announce(context.node)
            if isinstance(self._authorizer, AclAuthorizer):
                await asyncio.to_thread(self._authorizer.start)
            if context.tokens is not None:
                expiring = asyncio.create_task(expire_tokens(context, context.tokens))
                tasks.add(expiring)
            started.set_result(None)
            await self._stopping.wait()
        except BaseException as error:
            if started.done():
                raise
            started.set_exception(error)
        finally:
            for server in servers:
                server.close()
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            if self._authorizer is not None:
                await asyncio.to_thread(self._authorizer.stop)

    def _context(self, controller: Controller) -> ServerContext:
        store: object = controller.store
        records = self._records
        if records is None:
            records = store if isinstance(store, Records) else NoRecords()
        authorizer = authorizer_of(self._config, records)
        self._authorizer = authorizer if isinstance(authorizer, AclAuthorizer) else None
        broker_settings = BrokerSettings(self._config, str(self._node.registration.broker_id))
        window_s = self._numbers["controller.quota.window.num"] * self._numbers["controller.quota.window.size.seconds"]
        return ServerContext(
            controller,
            self._node.registration,
            self._config,
            authorizer,
            records,
            tokens=self._tokens,
            settings_reader=broker_settings,
            mutations=MutationQuotas(window_s),
        )

    async def _listen(
        self, endpoint: Endpoint, context: ServerContext, budget: Budget, tasks: set[asyncio.Task[None]]
    ) -> asyncio.Server:
        security = self._security[endpoint.listener]
        listening = self._listening(security, context, budget)

        async def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            task = asyncio.current_task()
            assert task is not None
            tasks.add(task)
            try:
                # Streams of Python 3.11 log a task that ends as cancelled. Only ``stop`` cancels this task.
                with suppress(asyncio.CancelledError):
                    await self._serve(listening, reader, writer, len(tasks))
            finally:
                tasks.discard(task)

        # A free port must be the same for all addresses.
        host = endpoint.host or (None if endpoint.port else "0.0.0.0")
        ssl_context = None if security.tls is None else security.tls.reloading_server()
        try:
            server = await asyncio.start_server(
                connected,
                host,
                endpoint.port,
                ssl=ssl_context,
                backlog=_ACCEPTED_AT_ONCE,
                ssl_handshake_timeout=_HANDSHAKE_S if ssl_context is not None else None,
            )
        except OSError as error:
            raise ConfigError(
                "config key listeners",
                f"{endpoint.listener}://{endpoint.host}:{endpoint.port}",
                f"an address that can be bound ({error})",
            ) from error
        for listening_socket in server.sockets:
            with listening_socket.dup() as duplicate:
                duplicate.listen(self._numbers["socket.listen.backlog.size"])
        name = server.sockets[0].getsockname()
        self._addresses[endpoint.listener] = f"{endpoint.host or name[0]}:{name[1]}"
        return server

    async def _serve(
        self, listening: ListenerContext, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, count: int
    ) -> None:
        """Serve a connection, unless there are too many."""
        peer = writer.get_extra_info("peername")
        host = str(peer[0]) if peer else ""
        self._connections_by_host[host] += 1
        try:
            if (
                count > self._numbers["max.connections"]
                or self._connections_by_host[host] > self._numbers["max.connections.per.ip"]
            ):
                self._drops.record(DropReason.TOO_MANY, host, "there are as many as there may be")
                writer.close()
                return
            connection = ClientConnection(listening, reader, writer, lambda: self._rate.give_back(host))
            if not connection.has_certificate and not self._rate.take(host):
                self._drops.record(DropReason.TOO_MANY, host, f"too many a second without a login ({RATE_KEY})")
                writer.close()
                return
            await connection.serve()
        finally:
            self._connections_by_host[host] -= 1
            if not self._connections_by_host[host]:
                del self._connections_by_host[host]

    def _listening(self, security: ListenerSecurity, context: ServerContext, budget: Budget) -> ListenerContext:
        number = self._numbers
        limits = ConnectionLimits(
            number["socket.request.max.bytes"],
            number["sasl.server.max.receive.size"],
            number["connections.max.idle.ms"] / 1000,
        )
        names = name_mapper(self._config.get("ssl.principal.mapping.rules", ""))
        logins = self._logins(security, context)
        return ListenerContext(
            security.listener, context, limits, budget, logins, names, security.protocol, self._drops
        )

    def _logins(self, security: ListenerSecurity, context: ServerContext) -> Logins | None:
        if not security.sasl:
            return None
        return logins_of(
            security,
            scram_lookup(context.records),
            token_lookup(context.tokens, context.records),
            lifetime_ms=self._numbers["connections.max.reauth.ms"],
            delay_ms=self._numbers["connection.failed.authentication.delay.ms"],
        )

    def _advertised(self) -> Registration:
        """The registration. Listeners with port 0 have their actual ports."""
        node = self._node.registration
        ports = {listener: int(address.rpartition(":")[2]) for listener, address in self._addresses.items()}
        endpoints = (
            endpoint if endpoint.port else replace(endpoint, port=ports.get(endpoint.listener, 0))
            for endpoint in node.endpoints
        )
        return replace(node, endpoints=tuple(endpoints))


def _on_error(loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
    """Log an error of the event loop. asyncio accepts connections again one second after a failure."""
    if isinstance(context.get("exception"), OSError) and "socket" in context:
        _log.warning("new connections wait: %s", context["exception"])
    else:
        loop.default_exception_handler(context)


#: Keys, minimum values, and defaults: Kafka's for Kafka's keys.
_INTEGER_KEYS: Final = (
    ("socket.request.max.bytes", 1, "104857600"),
    ("sasl.server.max.receive.size", 1, "524288"),
    ("queued.max.request.bytes", -1, "-1"),
    ("connections.max.idle.ms", 1, "600000"),
    ("connections.max.reauth.ms", 0, "0"),
    ("connection.failed.authentication.delay.ms", 0, "100"),
    ("max.connections", 0, "2147483647"),
    ("max.connections.per.ip", 0, "2147483647"),
    ("socket.listen.backlog.size", 1, "50"),
    (RATE_KEY, 0, str(RATE_DEFAULT)),
    ("request.timeout.ms", 1, "30000"),
    ("controller.quota.window.num", 1, "11"),
    ("controller.quota.window.size.seconds", 1, "1"),
)


def _check(security: ListenerSecurity) -> None:
    """Check that files are readable and logins are complete. Raises ConfigError."""
    if security.tls is not None:
        security.tls.server()
    if "PLAIN" in security.mechanisms():
        security.login("PLAIN")
