"""HTTP pages with metrics, health and status of a running controller.

The server handles a few clients at a time, each in its own thread and for a few seconds at most. It closes connections
of further clients and of clients that do not read. So clients cannot delay the controller.
"""

from __future__ import annotations

import ipaddress
import json
import logging
import socket
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any, Final

from msgspec import Struct

from kframe.cli.output import plain
from kframe.errors import ConfigError
from kframe.model.whole_numbers import parse_whole
from kframe.runtime.exposition import exposition
from kframe.runtime.health import HealthStatus, alive, ready

if TYPE_CHECKING:
    from kframe.runtime.controller import Controller

_log = logging.getLogger("kframe.monitor")

#: Largest number of clients served at a time.
CLIENTS_MAX: Final = 8
#: Seconds for a client to send its request and to read the response.
CLIENT_TIMEOUT_S: Final = 5.0
#: Seconds until clients are accepted again after a failure.
_ACCEPT_PAUSE_S: Final = 1.0
LISTENER: Final = "METRICS"
STATUS: Final = "/status"
_METRICS_TYPE: Final = "text/plain; version=0.0.4; charset=utf-8"

#: A page: status, content type and text.
Page = tuple[HTTPStatus, str, str]
Check = Callable[[], HealthStatus]


class Monitor:
    """Implements ``kframe.ports.server.Server``: ``/metrics``, ``/healthz``, ``/readyz``, ``/status``."""

    def __init__(self, listen: str, token: str = "", selectors: Sequence[Struct] = ()) -> None:
        """``listen`` is HOST:PORT, :PORT or PORT; without a host it is the loopback address. ``token`` identifies this
        instance in ``/status``, which also has ``selectors``. Raises ConfigError."""
        self._address = parse_address(listen)
        self._token = token
        self._selectors = list(map(plain, selectors))
        self._server: _Listener | None = None

    @property
    def addresses(self) -> dict[str, str]:
        """HOST:PORT while it serves."""
        if self._server is None:
            return {}
        host, port = self._server.server_address[:2]
        return {LISTENER: f"{host!s}:{port}"}

    def start(self, controller: Controller) -> None:
        """Bind, and serve until ``stop``. Raises ConfigError if it cannot bind."""
        self.serve(
            controller.metrics,
            lambda: alive(controller),
            lambda: ready(controller),
            {STATUS: lambda: self._status(controller)},
        )

    def serve(
        self,
        metrics: Callable[[], Mapping[str, float]],
        is_alive: Check,
        is_ready: Check,
        extra_pages: Mapping[str, Callable[[], Page]] = {},
    ) -> None:
        """Like ``start``, for any source of metrics and health. Server threads call the arguments.
        ``extra_pages`` has pages by path."""
        pages: dict[str, Callable[[], Page]] = {
            "/metrics": lambda: (HTTPStatus.OK, _METRICS_TYPE, exposition(metrics()) + _process_metrics()),
            "/healthz": lambda: _health(is_alive()),
            "/readyz": lambda: _health(is_ready()),
            **extra_pages,
        }
        try:
            self._server = _Listener(self._address, pages)
        except OSError as problem:
            where = ":".join(map(str, self._address))
            raise ConfigError(
                "--metrics-listen", where, f"an address to bind ({problem.strerror or problem})"
            ) from None
        threading.Thread(target=self._server.serve_forever, args=(0.2,), name="monitor", daemon=True).start()

    def _status(self, controller: Controller) -> Page:
        """The queue length of each broker, unreadable records, consistent with the metrics, and the selectors."""
        document = {
            "token": self._token,
            "queues": {
                str(broker_id): queue.waiting for broker_id, queue in sorted(controller.transport.queues().items())
            },
            "quarantined": controller.store.quarantined(),
            "selectors": self._selectors,
        }
        return json_page(document)

    def stop(self) -> None:
        """Close the listener. Running requests are still answered."""
        server, self._server = self._server, None
        if server is not None:
            server.shutdown()
            server.server_close()


def parse_address(listen: str) -> tuple[str, int]:
    """HOST and port of HOST:PORT, [HOST]:PORT, :PORT or PORT. Raises ConfigError."""
    host, _, port = listen.strip().rpartition(":")
    number = parse_whole(port, 2**16 - 1)
    if number is None:
        raise ConfigError("--metrics-listen", repr(listen), "HOST:PORT, or PORT on this machine alone")
    return host.removeprefix("[").removesuffix("]") or "127.0.0.1", number


def is_loopback(host: str) -> bool:
    """Whether an address is reachable only from this machine."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


class _Listener(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False
    request_queue_size = CLIENTS_MAX

    def __init__(self, address: tuple[str, int], pages: Mapping[str, Callable[[], Page]]) -> None:
        self.pages = pages
        self.address_family = socket.AF_INET6 if ":" in address[0] else socket.AF_INET
        self._client_slots = threading.BoundedSemaphore(CLIENTS_MAX)
        super().__init__(address, _PageHandler)

    def get_request(self) -> tuple[Any, Any]:
        """Accept a client. Pause if there is no free descriptor, because the client then stays ready to be accepted."""
        try:
            return super().get_request()
        except OSError as problem:
            _log.warning("pages cannot be served: %s", problem)
            time.sleep(_ACCEPT_PAUSE_S)
            raise

    def process_request(self, request: Any, client_address: Any) -> None:
        """Serve the client in its own thread, or close the connection if there are too many."""
        if not self._client_slots.acquire(blocking=False):
            self.shutdown_request(request)
            return
        super().process_request(request, client_address)

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        """Serve the client in this thread."""
        try:
            super().process_request_thread(request, client_address)
        finally:
            self._client_slots.release()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Ignore a client that closes the connection."""


class _PageHandler(BaseHTTPRequestHandler):
    server: _Listener
    timeout = CLIENT_TIMEOUT_S
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
        """Do not log requests."""


def json_page(document: Mapping[str, Any], status: HTTPStatus = HTTPStatus.OK) -> Page:
    """A page of JSON."""
    return status, "application/json", json.dumps(document) + "\n"


def _health(health: HealthStatus) -> Page:
    return json_page(health.document(), HTTPStatus.OK if health.good else HTTPStatus.SERVICE_UNAVAILABLE)


def _process_metrics() -> str:
    """Memory, CPU time, open files and garbage collections of this process, if the extra ``metrics`` is installed."""
    try:
        from prometheus_client import REGISTRY, generate_latest
    except ImportError:
        return ""
    return generate_latest(REGISTRY).decode()
