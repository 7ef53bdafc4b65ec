"""Refused frames and dropped connections are counted by reason, and logged at a bounded rate with the suppressed
count."""

from __future__ import annotations

import logging
import socket
import struct
from collections.abc import Callable

import pytest
from kframe_kafka_wire.server.drops import LINES_PER_SECOND, DroppedConnections, DropReason

from kframe.testing.waiting import until
from verification.kafka_wire.client import Client
from verification.kafka_wire.served import Served
from verification.support.descriptors import exhausted_descriptors

LOGGER = "kframe.kafka_wire"
DROPPED = "kframe_connections_dropped_total"


def oversized(client: Client) -> None:
    client.send(struct.pack(">i", 2**31 - 1))
    assert client.ended()


def of_no_api(client: Client) -> None:
    client.send(struct.pack(">ihhi", 8, 32_000, 0, 1))
    assert client.ended()


def silent(client: Client) -> None:
    assert client.ended()


CASES: dict[str, tuple[Callable[[Client], None], dict[str, str], DropReason]] = {
    "an oversized frame": (oversized, {}, DropReason.FRAME_REFUSED),
    "an API that is not served": (of_no_api, {}, DropReason.FRAME_REFUSED),
    "an idle connection": (silent, {"connections.max.idle.ms": "1"}, DropReason.IDLE),
    "too many connections": (silent, {"max.connections": "0"}, DropReason.TOO_MANY),
}


@pytest.mark.parametrize("name", CASES)
def test_dropped_connections_are_counted_by_reason(name: str) -> None:
    act, config, reason = CASES[name]
    with Served(config=config) as served:
        counted = [f'{DROPPED}{{reason="{reason}"}}' for reason in DropReason]
        assert [served.controller.metrics()[metric] for metric in counted] == [0] * len(counted)
        for _ in range(3):
            with served.client() as client:
                act(client)
        metrics = served.controller.metrics
        assert until(lambda: metrics()[f'{DROPPED}{{reason="{reason}"}}'] == 3)
        assert sum(metrics()[metric] for metric in counted) == 3
        assert metrics()["kframe_frames_refused_total"] == (3 if reason is DropReason.FRAME_REFUSED else 0)


def test_a_client_that_closes_between_two_requests_is_not_counted() -> None:
    with Served() as served:
        with served.client() as client:
            assert client.ask(18, 0)["error_code"] == 0
        with served.client() as client:
            oversized(client)
        assert until(lambda: served.controller.metrics()["kframe_frames_refused_total"] == 1)
        assert sum(value for name, value in served.controller.metrics().items() if name.startswith(DROPPED)) == 1


def test_log_lines_are_rate_limited_with_suppressed_count(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, LOGGER)
    now = [0.0]
    drops = DroppedConnections(lambda: now[0])
    for _ in range(100):
        drops.record(DropReason.FRAME_REFUSED, "10.0.0.1", "a frame of -1 bytes")
    drops.record(DropReason.LOGIN_FAILED, "10.0.0.1", "no such user")
    now[0] = 1.0
    drops.record(DropReason.FRAME_REFUSED, "10.0.0.2", "a frame of -1 bytes")
    line = "connection from 10.0.0.{} dropped (frame_refused): a frame of -1 bytes"
    assert caplog.messages == [
        *[line.format(1)] * LINES_PER_SECOND,
        "connection from 10.0.0.1 dropped (login_failed): no such user",
        f"{line.format(2)} ({100 - LINES_PER_SECOND} others left out of this log)",
    ]
    assert drops.metrics()["kframe_frames_refused_total"] == 101


@pytest.mark.extended
def test_server_without_descriptors_retries_once_a_second(caplog: pytest.LogCaptureFixture) -> None:
    """asyncio logs an error for each connection that it cannot accept, and more of them every second."""
    with Served() as served, socket.socket() as connection:
        host, _, port = served.server.addresses["PLAINTEXT"].rpartition(":")
        with exhausted_descriptors():
            connection.connect((host, int(port)))
            assert until(lambda: len(refusals(caplog)) > 1)
        lines = refusals(caplog)
        with served.client() as client:
            assert client.ask(18, 3, client_software_name="test", client_software_version="1")["error_code"] == 0
    assert {line.getMessage() for line in lines} == {"new connections wait: [Errno 24] Too many open files"}
    assert len(lines) <= 2 + lines[-1].created - lines[0].created


def refusals(caplog: pytest.LogCaptureFixture) -> list[logging.LogRecord]:
    return [record for record in caplog.records if record.levelno >= logging.WARNING]
