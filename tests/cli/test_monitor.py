"""The HTTP endpoints of ``kframe controller run``, read over loopback sockets."""

from __future__ import annotations

import json
import logging
import socket
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from http.client import HTTPConnection, HTTPResponse
from logging.handlers import QueueHandler
from queue import SimpleQueue

import pytest

from kframe.cli.monitor import CLIENTS_MAX, LISTENER, Monitor, is_loopback, parse_address
from kframe.embedded import MemoryEnsemble, RecordingTransport
from kframe.errors import ConfigError
from kframe.runtime.builder import ControllerBuilder
from kframe.runtime.controller import Controller
from kframe.testing.clusters import cluster_of, healthy
from verification.support.descriptors import exhausted_descriptors

ID = 1000


@contextmanager
def running(ensemble: MemoryEnsemble, controller_id: int = ID) -> Iterator[tuple[Controller, str]]:
    """Run a controller with a monitor. Yield both the controller and the address."""
    monitor = Monitor("0")
    builder = ControllerBuilder(controller_id, ensemble.connect(), RecordingTransport(), servers=[monitor])
    with builder.build() as controller:
        controller.inspect(lambda _cluster: None).result(timeout=30)  # startup events have been handled
        yield controller, monitor.addresses[LISTENER]


@pytest.fixture
def ensemble() -> MemoryEnsemble:
    return MemoryEnsemble.from_cluster(cluster_of({"t": [healthy(1, 2)]}, (1, 2)))


def get(address: str, path: str, method: str = "GET") -> tuple[int, str, str]:
    """Return status, content type and body of a page."""
    connection = HTTPConnection(address, timeout=30)
    connection.request(method, path)
    response: HTTPResponse = connection.getresponse()
    body = response.read().decode()
    connection.close()
    return response.status, response.headers["Content-Type"], body


def test_metrics_have_kafka_and_process_names(ensemble: MemoryEnsemble) -> None:
    with running(ensemble) as (_, endpoint):
        status, kind, text = get(endpoint, "/metrics?name=x")
    assert (status, kind) == (200, "text/plain; version=0.0.4; charset=utf-8")
    lines = text.splitlines()
    assert "kafka_controller_kafkacontroller_activecontrollercount 1" in lines
    assert "kafka_controller_kafkacontroller_globalpartitioncount 1" in lines
    assert any(line.startswith("python_info{") for line in lines)
    families = [line.split()[2] for line in lines if line.startswith("# TYPE")]
    assert len(families) == len(set(families))


@pytest.mark.extended
def test_pages_without_descriptors_are_tried_once_a_second(
    ensemble: MemoryEnsemble, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A client that cannot be accepted leaves the port readable, so a loop would use a core."""
    lines: SimpleQueue[logging.LogRecord] = SimpleQueue()
    monkeypatch.setattr(logging.getLogger("kframe.monitor"), "handlers", [QueueHandler(lines)])
    with running(ensemble) as (_, endpoint), socket.socket() as client:
        host, _, port = endpoint.rpartition(":")
        with exhausted_descriptors():
            client.connect((host, int(port)))
            first, second = (lines.get(timeout=60) for _ in range(2))
        assert get(endpoint, "/healthz")[0] == 200
    assert first.message == second.message == "pages cannot be served: [Errno 24] Too many open files"
    assert second.created - first.created > 0.5


def test_controller_and_standby_are_ready(ensemble: MemoryEnsemble) -> None:
    with running(ensemble) as (_, first), running(ensemble, 1001) as (_, second):
        for endpoint, active in ((first, True), (second, False)):
            for path in ("/healthz", "/readyz"):
                status, kind, text = get(endpoint, path)
                parsed = json.loads(text)
                assert (status, kind, parsed["status"], parsed["reasons"]) == (200, "application/json", "ok", [])
                assert (parsed["active"], parsed["active_controller"]) == (active, ID)


def test_lost_session_or_missing_controller_makes_not_ready(ensemble: MemoryEnsemble) -> None:
    """The controller is still alive. A restart would not help."""
    with running(ensemble) as (controller, endpoint):
        controller.submit(lambda token: _closed(controller, token)).result(timeout=30)
        status, _, text = get(endpoint, "/readyz")
        assert (status, json.loads(text)["reasons"]) == (503, ["no live session with storage"])
        assert get(endpoint, "/healthz")[0] == 200


def _closed(controller: Controller, token: int):  # type: ignore[no-untyped-def]
    from kframe.model.events import InspectionRequested

    controller.store.close()
    return InspectionRequested(token)


def test_stopped_controller_is_not_alive(ensemble: MemoryEnsemble) -> None:
    monitor = Monitor("127.0.0.1:0")
    controller = ControllerBuilder(ID, ensemble.connect(), RecordingTransport()).build()
    monitor.start(controller)
    status, _, text = get(monitor.addresses[LISTENER], "/healthz")
    assert (status, json.loads(text)["reasons"]) == (503, ["the thread that handles events has ended"])
    assert "no known controller" in json.loads(get(monitor.addresses[LISTENER], "/readyz")[2])["reasons"]
    endpoint = monitor.addresses[LISTENER]
    monitor.stop()
    monitor.stop()
    with pytest.raises(ConnectionRefusedError):
        get(endpoint, "/healthz")


@pytest.mark.parametrize(
    ("method", "path", "status", "body"),
    [
        ("GET", "/", 404, "not found\n"),
        ("GET", "/../etc/passwd", 404, "not found\n"),
        ("HEAD", "/healthz", 200, ""),
        ("POST", "/metrics", 501, None),
    ],
)
def test_other_requests(ensemble: MemoryEnsemble, method: str, path: str, status: int, body: str | None) -> None:
    with running(ensemble) as (_, endpoint):
        response = get(endpoint, path, method)
    assert response[0] == status
    assert body is None or response[2] == body


def test_silent_clients_cannot_exceed_connection_limit(ensemble: MemoryEnsemble) -> None:
    """A connection above the limit is closed. When another connection ends, a new one is accepted."""
    with running(ensemble) as (_, endpoint), ExitStack() as open_:
        address = (endpoint.partition(":")[0], int(endpoint.rpartition(":")[2]))
        silent = []
        for _ in range(CLIENTS_MAX):
            silent.append(open_.enter_context(socket.create_connection(address, timeout=30)))
            silent[-1].sendall(b"GET /heal")
        late = open_.enter_context(socket.create_connection(address, timeout=30))
        assert late.recv(1) == b""
        silent[0].sendall(b"thz HTTP/1.0\r\n\r\n")
        assert silent[0].makefile("rb").readline().startswith(b"HTTP/1.0 200")


def test_malformed_requests_are_ignored(ensemble: MemoryEnsemble) -> None:
    with running(ensemble) as (_, endpoint):
        address = (endpoint.partition(":")[0], int(endpoint.rpartition(":")[2]))
        for junk in (b"\x00\x00\x00\x10\x00\x12\x00\x03", b"G" * 70_000 + b"\r\n\r\n", b"\r\n\r\n", b"GET\r\n\r\n"):
            with socket.create_connection(address, timeout=30) as connection:
                connection.sendall(junk)
                connection.shutdown(socket.SHUT_WR)
        assert get(endpoint, "/healthz")[0] == 200


@pytest.mark.parametrize(
    ("listen", "address"),
    [
        ("9108", ("127.0.0.1", 9108)),
        (":9108", ("127.0.0.1", 9108)),
        ("0.0.0.0:9108", ("0.0.0.0", 9108)),
        ("[::1]:9108", ("::1", 9108)),
        ("localhost:0", ("localhost", 0)),
    ],
)
def test_addresses(listen: str, address: tuple[str, int]) -> None:
    assert parse_address(listen) == address


@pytest.mark.parametrize("listen", ["", "localhost", "localhost:", "localhost:x", "1:65536", "1:-1"])
def test_missing_addresses(listen: str) -> None:
    with pytest.raises(ConfigError):
        parse_address(listen)


def test_address_in_use_is_refused(ensemble: MemoryEnsemble) -> None:
    with running(ensemble) as (controller, endpoint), pytest.raises(ConfigError, match="in use"):
        Monitor(endpoint).start(controller)


@pytest.mark.parametrize(
    ("host", "expected"), [("127.0.0.1", True), ("::1", True), ("localhost", True), ("0.0.0.0", False), ("a.b", False)]
)
def test_loopback_addresses_are_recognized(host: str, expected: bool) -> None:
    assert is_loopback(host) is expected
