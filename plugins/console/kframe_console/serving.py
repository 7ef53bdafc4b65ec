"""Serves an application on a socket until the process is stopped."""

from __future__ import annotations

import signal
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

import uvicorn
from starlette.types import ASGIApp

from kframe.plugin import ConfigError

_SIGNALS: Final = (signal.SIGINT, signal.SIGTERM)
#: Connections that are served at a time; further ones are answered with 503.
_CONNECTIONS_MAX: Final = 200
#: Seconds that a connection may be idle, and that requests may take when the server stops.
_IDLE_S: Final = 30
_STOP_S: Final = 5
#: Longest head of a request.
_HEAD_BYTES_MAX: Final = 32 << 10


class _Server(uvicorn.Server):
    """A server that a signal stops in order."""

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Stop at the first signal, without raising it again afterwards: it is the usual end."""
        handlers = {number: signal.signal(number, self.handle_exit) for number in _SIGNALS}
        try:
            yield
        finally:
            for number, handler in handlers.items():
                signal.signal(number, handler)


def listening_socket(host: str, port: int) -> socket.socket:
    """A socket that listens. Raises ConfigError for an address that is taken or is none of this machine."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        return socket.create_server((host, port), family=family, backlog=_CONNECTIONS_MAX)
    except (OSError, UnicodeError) as problem:
        reason = getattr(problem, "strerror", None) or str(problem)
        raise ConfigError("--port", f"{host}:{port} ({reason})", "an address of this machine that is free") from problem


def serve(app: ASGIApp, listener: socket.socket) -> None:
    """Serve until SIGINT or SIGTERM."""
    config = uvicorn.Config(
        app,
        log_level="warning",
        access_log=False,
        server_header=False,
        limit_concurrency=_CONNECTIONS_MAX,
        timeout_keep_alive=_IDLE_S,
        timeout_graceful_shutdown=_STOP_S,
        h11_max_incomplete_event_size=_HEAD_BYTES_MAX,
        http="h11",
        ws="none",
    )
    _Server(config).run(sockets=[listener])
