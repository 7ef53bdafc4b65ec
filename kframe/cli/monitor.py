"""Pages of metrics, health and status over HTTP, for as long as a controller runs.

It serves a few callers at a time, each for a few seconds at most, in threads of its own: whoever asks for much, or asks
and does not read, is turned away, and the controller does not notice.
"""

from __future__ import annotations

import ipaddress
import json
import socket
import threading
from collections.abc import Callable, Mapping
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Final

from kframe.api.controller import Controller
from kframe.api.health import Health, alive, ready
from kframe.errors import ConfigError
from kframe.runtime.metrics import exposition

#: How many callers are served at a time.
CALLERS_MOST: Final = 8
#: Seconds for a client to send its request and to read the response.
PATIENCE_S: Final = 5.0
LISTENER: Final = "METRICS"
STATUS: Final = "/status"
_METRICS_TYPE: Final = "text/plain; version=0.0.4; charset=utf-8"

#: What one page is: status, type and text.
Page = tuple[HTTPStatus, str, str]
Check = Callable[[], Health]


class Monitor:
    """Implements ``kframe.api.serving.Server``: ``/metrics``, ``/healthz``, ``/readyz``, ``/status``."""

    def __init__(self, listen: str, token: str = "") -> None:
        """``listen`` is HOST:PORT, :PORT or PORT; without a host it is this machine alone. ``token`` is that of this
        instance, by which a reader of ``/status`` knows it. Raises ConfigError."""
        self._place = parse_address(listen)
        self._token = token
        self._server: _Listener | None = None

    @property
    def addresses(self) -> dict[str, str]:
        """HOST:PORT while it serves."""
        if self._server is None:
            return {}
        host, port = self._server.server_address[:2]
        return {LISTENER: f"{host!s}:{port}"}

    def start(self, controller: Controller) -> None:
        """Bind, and serve until ``stop``. Raises ConfigError where it cannot bind."""
        self.serve(
            controller.metrics, lambda: alive(controller), lambda: ready(controller),
            {STATUS: lambda: self._status(controller)},
        )  # fmt: skip

    def serve(
        self, metrics: Callable[[], Mapping[str, float]], is_alive: Check, is_ready: Check,
        more: Mapping[str, Callable[[], Page]] = {},
    ) -> None:  # fmt: skip
        """``start``, of anything that has metrics and health; called in threads of ours. ``more`` pages by path."""
        pages: dict[str, Callable[[], Page]] = {
            "/metrics": lambda: (HTTPStatus.OK, _METRICS_TYPE, exposition(metrics()) + _of_process()),
            "/healthz": lambda: _health(is_alive()),
            "/readyz": lambda: _health(is_ready()),
            **more,
        }
        try:
            self._server = _Listener(self._place, pages)
        except OSError as problem:
            where = ":".join(map(str, self._place))
            raise ConfigError(
                "--metrics-listen", where, f"an address to bind ({problem.strerror or problem})"
            ) from None
        threading.Thread(target=self._server.serve_forever, args=(0.2,), name="monitor", daemon=True).start()

    def _status(self, controller: Controller) -> Page:
        """Requests that wait for each broker, and what the store cannot read: as many as the metrics of the same."""
        document = {
            "token": self._token,
            "queues": {str(one): queue.waiting for one, queue in sorted(controller.transport.queues().items())},
            "quarantined": controller.store.quarantined(),
        }
        return HTTPStatus.OK, "application/json", json.dumps(document) + "\n"

    def stop(self) -> None:
        """Close the listener; callers under way get their answers."""
        server, self._server = self._server, None
        if server is not None:
            server.shutdown()
            server.server_close()


def parse_address(listen: str) -> tuple[str, int]:
    """HOST and port of HOST:PORT, [HOST]:PORT, :PORT or PORT. Raises ConfigError."""
    host, _, port = listen.strip().rpartition(":")
    if not (port.isascii() and port.isdecimal() and int(port) < 2**16):
        raise ConfigError("--metrics-listen", repr(listen), "HOST:PORT, or PORT on this machine alone")
    return host.removeprefix("[").removesuffix("]") or "127.0.0.1", int(port)


def only_here(host: str) -> bool:
    """Whether only this machine reaches an address."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


class _Listener(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False
    request_queue_size = CALLERS_MOST

    def __init__(self, place: tuple[str, int], pages: Mapping[str, Callable[[], Page]]) -> None:
        self.pages = pages
        self.address_family = socket.AF_INET6 if ":" in place[0] else socket.AF_INET
        self._room = threading.BoundedSemaphore(CALLERS_MOST)
        super().__init__(place, _Caller)

    def process_request(self, request: Any, client_address: Any) -> None:
        """Serve in a thread of its own, or hang up when there are too many."""
        if not self._room.acquire(blocking=False):
            self.shutdown_request(request)
            return
        super().process_request(request, client_address)

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        """In that thread."""
        try:
            super().process_request_thread(request, client_address)
        finally:
            self._room.release()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Ignore a client that closes the connection."""


class _Caller(BaseHTTPRequestHandler):
    server: _Listener
    timeout = PATIENCE_S
    server_version, sys_version = "kframe", ""

    def do_GET(self) -> None:
        """Answer with a page."""
        page = self.server.pages.get(self.path.partition("?")[0])
        status, kind, text = (HTTPStatus.NOT_FOUND, "text/plain", "not found\n") if page is None else page()
        body = text.encode()
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.send_header("Connection", "close")
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    do_HEAD = do_GET  # noqa: N815 - the name is Python's

    def log_message(self, format: str, *args: Any) -> None:
        """Who looks is not logged."""


def _health(health: Health) -> Page:
    status = HTTPStatus.OK if health.good else HTTPStatus.SERVICE_UNAVAILABLE
    return status, "application/json", json.dumps(health.document()) + "\n"


def _of_process() -> str:
    """Memory, processor time, open files and collections of this process, where the extra ``metrics`` is installed."""
    try:
        from prometheus_client import REGISTRY, generate_latest
    except ImportError:
        return ""
    return generate_latest(REGISTRY).decode()
