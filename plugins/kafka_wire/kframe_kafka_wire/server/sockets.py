"""The listening sockets of a server: limits of connections, and the security of each listener."""

from __future__ import annotations

import asyncio
import logging
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any, Final

from kframe.plugin import ConfigError
from kframe.plugin.cluster import Endpoint
from kframe.plugin.settings import whole
from kframe_kafka_wire.listeners.security import ListenerSecurity, security_of
from kframe_kafka_wire.records.credentials import ScramLookup, TokenLookup
from kframe_kafka_wire.records.principals import name_mapper
from kframe_kafka_wire.server.application import Application
from kframe_kafka_wire.server.authenticator import Logins, logins_of
from kframe_kafka_wire.server.connection import ClientConnection, ConnectionLimits, ListenerContext
from kframe_kafka_wire.server.connection_rate import RATE_DEFAULT, RATE_KEY, ConnectionRate
from kframe_kafka_wire.server.drops import DroppedConnections, DropReason
from kframe_kafka_wire.server.frames import Budget
from kframe_kafka_wire.server.repeated import SharedResponses

_log = logging.getLogger("kframe.kafka_wire")

#: The default of queued.max.request.bytes, in frames of the maximum size.
_FRAMES_AT_ONCE: Final = 2
_HANDSHAKE_S: Final = 30.0
#: Connections that asyncio accepts for each event of a listening socket. Without a free descriptor it logs an error and
#: schedules another attempt for each of them, and each attempt does the same: the number of errors grows every second.
_ACCEPTED_AT_ONCE: Final = 1


class SocketServer:
    """Serves an application on the listeners of a node. ``listen`` and ``close`` run in an event loop, once each."""

    def __init__(self, config: Mapping[str, str], bound: Sequence[Endpoint]) -> None:
        """``bound`` are the listeners: an empty host means all addresses, port 0 any free port. Raises ConfigError."""
        self._config = dict(config)
        self._bound = tuple(bound)
        self._security = {endpoint.listener: security_of(config, endpoint.listener) for endpoint in bound}
        for security in self._security.values():
            _check(security)
        self._numbers = {
            key: whole(minimum)(f"config key {key}", config.get(key, default))
            for key, minimum, default in _INTEGER_KEYS
        }
        self._addresses: dict[str, str] = {}
        self._servers: list[asyncio.Server] = []
        self._tasks: set[asyncio.Task[None]] = set()
        self._connections_by_host: Counter[str] = Counter()
        self._drops = DroppedConnections()
        self._rate = ConnectionRate(self._numbers[RATE_KEY], time.monotonic)

    @property
    def addresses(self) -> Mapping[str, str]:
        """HOST:PORT of each listener while it is bound."""
        return dict(self._addresses)

    def metrics(self) -> dict[str, float]:
        """Connections dropped and frames refused. Callable from any thread."""
        return self._drops.metrics()

    async def listen(self, application: Application, credentials: ScramLookup, tokens: TokenLookup) -> None:
        """Bind the listeners and serve. Raises ConfigError if an address cannot be bound or a file cannot be read.

        ``credentials`` and ``tokens`` are those of logins by SCRAM.
        """
        asyncio.get_running_loop().set_exception_handler(_on_error)
        configured = self._numbers["queued.max.request.bytes"]
        budget = Budget(configured if configured > 0 else _FRAMES_AT_ONCE * self._numbers["socket.request.max.bytes"])
        for endpoint in self._bound:
            security = self._security[endpoint.listener]
            logins = self._logins(security, credentials, tokens) if security.sasl else None
            await self._bind(endpoint, security, self._listening(security, application, budget, logins))

    async def close(self) -> None:
        """Close all sockets, and wait for the end of the connections."""
        for server in self._servers:
            server.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        self._servers.clear()
        self._addresses.clear()

    async def _bind(self, endpoint: Endpoint, security: ListenerSecurity, listening: ListenerContext) -> None:
        async def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            task = asyncio.current_task()
            assert task is not None
            self._tasks.add(task)
            try:
                # Streams of Python 3.11 log a task that ends as cancelled. Only ``close`` cancels this task.
                with suppress(asyncio.CancelledError):
                    await self._serve(listening, reader, writer)
            finally:
                self._tasks.discard(task)

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
        self._servers.append(server)
        for listening_socket in server.sockets:
            with listening_socket.dup() as duplicate:
                duplicate.listen(self._numbers["socket.listen.backlog.size"])
        name = server.sockets[0].getsockname()
        self._addresses[endpoint.listener] = f"{endpoint.host or name[0]}:{name[1]}"

    async def _serve(
        self, listening: ListenerContext, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        """Serve a connection, unless there are too many."""
        peer = writer.get_extra_info("peername")
        host = str(peer[0]) if peer else ""
        self._connections_by_host[host] += 1
        try:
            if (
                len(self._tasks) > self._numbers["max.connections"]
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

    def _listening(
        self, security: ListenerSecurity, application: Application, budget: Budget, logins: Logins | None
    ) -> ListenerContext:
        number = self._numbers
        limits = ConnectionLimits(
            number["socket.request.max.bytes"],
            number["sasl.server.max.receive.size"],
            number["connections.max.idle.ms"] / 1000,
        )
        names = name_mapper(self._config.get("ssl.principal.mapping.rules", ""))
        return ListenerContext(
            security.listener,
            application,
            limits,
            budget,
            logins,
            names,
            security.protocol,
            self._drops,
            SharedResponses(),
        )

    def _logins(self, security: ListenerSecurity, credentials: ScramLookup, tokens: TokenLookup) -> Logins:
        return logins_of(
            security,
            credentials,
            tokens,
            lifetime_ms=self._numbers["connections.max.reauth.ms"],
            delay_ms=self._numbers["connection.failed.authentication.delay.ms"],
        )


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
)


def _check(security: ListenerSecurity) -> None:
    """Check that files are readable and logins are complete. Raises ConfigError."""
    if security.tls is not None:
        security.tls.server()
    if "PLAIN" in security.mechanisms():
        security.login("PLAIN")
