"""Serves an application on a socket until the process is stopped, with TLS if it is set up."""

from __future__ import annotations

import asyncio
import signal
import socket
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final, cast

import h11
import uvicorn
from starlette.types import ASGIApp
from uvicorn.protocols.http.h11_impl import H11Protocol

from kframe.plugin import ConfigError
from kframe_console.security.login import CERTIFICATE

_SIGNALS: Final = (signal.SIGINT, signal.SIGTERM)
#: Connections that are served at a time; further ones are answered with 503.
_CONNECTIONS_MAX: Final = 200
#: Seconds that a connection may be idle, and that requests may take when the server stops.
_IDLE_S: Final = 30
#: Seconds for the head of a request.
HEAD_S = 10.0
_STOP_S: Final = 5
#: Longest head of a request.
_HEAD_BYTES_MAX: Final = 32 << 10


@dataclass(frozen=True, slots=True)
class TlsFiles:
    """PEM files: certificate and key of the console, and the authorities of the certificates that clients need."""

    certificate: Path
    key: Path
    client_authorities: Path | None = None


class _GuardedProtocol(H11Protocol):
    """HTTP/1.1 whose requests have the name in the client's certificate, which TLS has verified.

    A client that does not complete the head of a request within HEAD_S is disconnected: such clients would take all
    connections.
    """

    _head_timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Note the common name of the certificate's subject."""
        super().connection_made(transport)
        tls: ssl.SSLObject | None = transport.get_extra_info("ssl_object")
        certificate = None if tls is None else tls.getpeercert()
        subject = cast("tuple[tuple[tuple[str, str], ...], ...]", (certificate or {}).get("subject", ()))
        names = [value for fields in subject for name, value in fields if name == "commonName"]
        if names:
            self.app_state = {**self.app_state, CERTIFICATE: names[0]}
        self._await_head()

    def data_received(self, data: bytes) -> None:
        """Handle received bytes."""
        super().data_received(data)
        self._await_head()

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop the timer."""
        super().connection_lost(exc)
        self._cancel_timer()

    def _await_head(self) -> None:
        if self.conn.their_state is not h11.IDLE:
            self._cancel_timer()
        elif self._head_timer is None:
            self._head_timer = self.loop.call_later(HEAD_S, self.transport.close)

    def _cancel_timer(self) -> None:
        if self._head_timer is not None:
            self._head_timer.cancel()
            self._head_timer = None


class _Server(uvicorn.Server):
    """A server that a signal shuts down gracefully."""

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Stop at the first signal, without raising it again: it is the normal end."""
        if threading.current_thread() is not threading.main_thread():  # Only the main thread may set handlers.
            yield
            return
        handlers = {number: signal.signal(number, self.handle_exit) for number in _SIGNALS}
        try:
            yield
        finally:
            for number, handler in handlers.items():
                signal.signal(number, handler)


def listening_socket(host: str, port: int) -> socket.socket:
    """A listening socket. Raises ConfigError for an address that is in use or not of this machine."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        listener = socket.create_server((host, port), family=family, backlog=_CONNECTIONS_MAX)
    except (OSError, UnicodeError) as problem:
        reason = getattr(problem, "strerror", None) or str(problem)
        raise ConfigError("address", f"{host}:{port} ({reason})", "one of this machine that is free") from problem
    # Its connections inherit this; asyncio sets it only for sockets that were made for TCP by number.
    listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return listener


def server(app: ASGIApp, tls: TlsFiles | None = None) -> uvicorn.Server:
    """A server of the application. Raises ConfigError for unusable files."""
    config = uvicorn.Config(
        app,
        log_level="warning",
        access_log=False,
        server_header=False,
        proxy_headers=False,
        limit_concurrency=_CONNECTIONS_MAX,
        timeout_keep_alive=_IDLE_S,
        timeout_graceful_shutdown=_STOP_S,
        h11_max_incomplete_event_size=_HEAD_BYTES_MAX,
        http=_GuardedProtocol,
        ws="none",
    )
    if tls is not None:
        config.ssl_certfile, config.ssl_keyfile = tls.certificate, tls.key
        if tls.client_authorities is not None:
            config.ssl_ca_certs, config.ssl_cert_reqs = tls.client_authorities, ssl.CERT_REQUIRED
    try:
        config.load()
    except (OSError, ssl.SSLError) as problem:
        raise ConfigError("TLS", str(problem), "PEM files of a certificate, its key, and authorities") from problem
    return _Server(config)


def serve(app: ASGIApp, listener: socket.socket, tls: TlsFiles | None = None) -> None:
    """Serve until SIGINT or SIGTERM. Raises ConfigError as ``server``."""
    server(app, tls).run(sockets=[listener])
