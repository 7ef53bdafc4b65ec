"""Log lines of a channel: connections cut and healed, and registrations that lead to brokers of other clusters."""

from __future__ import annotations

import json
import re
import socket
import threading
from collections.abc import Callable
from typing import Any

import pytest
from kframe_kafka_wire.requests import channel
from kframe_kafka_wire.sandbox.fake_broker import METADATA, closed

from kframe.errors import StoreError
from kframe.testing.waiting import until
from verification.kafka_wire.fake_cluster import FakeCluster, send_frame
from verification.kafka_wire.served import FakeRecords

LOGGER = "kframe.kafka_wire"
CONTROLLER_ID, OTHER = "4L6g3nShT-eMCtK--X86sw", "MkU3OEVBNTcwNTJENDM2Qk"
MakeCluster = Callable[..., FakeCluster]


class UnreadableRecords(FakeRecords):
    """Records of a store without a connection."""

    def read_record(self, path: str) -> bytes | None:
        raise StoreError("no connection")


def records(cluster_id: str) -> FakeRecords:
    return FakeRecords({"/cluster/id": json.dumps({"version": "1", "id": cluster_id})})


def channel_lines(caplog: pytest.LogCaptureFixture) -> list[tuple[str, str]]:
    """Level and text of the channels' log lines, without durations and sizes."""
    return [
        (record.levelname, re.sub(r"at most \d+", "at most N", re.sub(r"\d+\.\d{3} s", "T s", record.getMessage())))
        for record in caplog.records
        if record.name == LOGGER
    ]


@pytest.fixture
def info_log(caplog: pytest.LogCaptureFixture) -> pytest.LogCaptureFixture:
    caplog.set_level("INFO", LOGGER)
    return caplog


def test_connection_loss_and_recovery_are_logged_once(
    make_cluster: MakeCluster, info_log: pytest.LogCaptureFixture
) -> None:
    cluster = make_cluster()
    release = threading.Event()

    def cut(connection: socket.socket, reply: bytes) -> None:
        release.wait(30)
        send_frame(0, b"")(connection, reply)

    cluster.broker.script.extend([cut, closed, closed, closed, closed])
    for _ in range(3):
        cluster.stop(t=True)
    assert cluster.broker.await_requests(1)
    release.set()
    cluster.await_idle()
    node = f"127.0.0.1:{cluster.broker.port} (id: 1)"
    controller = "[RequestSendThread controllerId=1000] Controller 1000"
    cut_line = (
        f"{controller}'s connection to broker {node} is cut: a reply of 0 bytes, where at most N make sense "
        "(WireError); 3 requests wait"
    )
    healed_line = f"{controller} connected to {node} again for sending state change requests, after T s"
    assert channel_lines(info_log) == [("WARNING", cut_line), ("INFO", f"{healed_line}; 2 requests wait")]


def test_connection_loss_ends_with_the_registration(
    make_cluster: MakeCluster, info_log: pytest.LogCaptureFixture
) -> None:
    cluster = make_cluster()
    cluster.broker.close()
    cluster.stop(t=True)
    cluster.stop(u=True)
    assert until(lambda: len(channel_lines(info_log)) == 1)
    cluster.transport.disconnect(cluster.state, (0,))
    line = (
        "[RequestSendThread controllerId=1000] Controller 1000 gives up its connection to broker "
        f"127.0.0.1:{cluster.broker.port} (id: 1), T s after it was cut: 2 requests are dropped"
    )
    assert channel_lines(info_log)[1:] == [("INFO", line)]


def test_idle_close_by_broker_is_not_logged_as_connection_loss(
    make_cluster: MakeCluster, info_log: pytest.LogCaptureFixture
) -> None:
    cluster = make_cluster()
    cluster.stop(t=True)
    cluster.await_idle()
    cluster.broker.script.append(closed)
    cluster.stop(t=True)
    cluster.await_idle()
    assert len(cluster.broker.requests) == 3
    assert channel_lines(info_log) == []


@pytest.mark.parametrize("kraft", [True, False])
def test_broker_in_kraft_mode_is_logged(
    make_cluster: MakeCluster, kraft: bool, caplog: pytest.LogCaptureFixture
) -> None:
    """A broker that closes connections for another reason is not."""
    cluster = make_cluster()
    cluster.broker.kraft = kraft
    cluster.broker.script.extend([closed] * 5)
    cluster.send("t-0")
    assert cluster.broker.await_requests(6)
    start = f"broker 1 at 127.0.0.1:{cluster.broker.port} is in KRaft mode"
    levels = [level for level, message in channel_lines(caplog) if start in message]
    assert levels == (["WARNING"] if kraft else [])
    if kraft:
        assert "expected a ZooKeeper-mode broker of this cluster; another process has" in caplog.text
        assert cluster.events == []


def test_mode_of_a_broker_is_logged_once_when_it_responds(
    make_cluster: MakeCluster, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """A broker that is starting does not respond to ApiVersions yet."""
    modes = [None, None, False]
    monkeypatch.setattr(channel, "serves_a_controller", lambda _target, _timeout_ms: modes.pop(0))
    cluster = make_cluster()
    cluster.broker.script.extend([closed] * 7)
    cluster.send("t-0")
    assert cluster.broker.await_requests(8)
    assert [level for level, message in channel_lines(caplog) if "is in KRaft mode" in message] == ["WARNING"]
    assert modes == []


def cluster_with_id(make_cluster: MakeCluster, store: object, response: dict[str, Any] | None) -> FakeCluster:
    """A cluster with one broker that is not connected yet. ``response`` is the broker's response to Metadata."""
    cluster = make_cluster(connected=False)
    cluster.transport.attach_store(store)
    if response is not None:
        cluster.broker.responses[METADATA] = response
    return cluster


@pytest.mark.parametrize("expected", [False, True], ids=["registered", "expected"])
def test_broker_of_another_cluster_receives_nothing_until_it_registers_again(
    make_cluster: MakeCluster, expected: bool, info_log: pytest.LogCaptureFixture
) -> None:
    """The cluster id of an expected broker is checked before ``connect``."""
    cluster = cluster_with_id(make_cluster, records(CONTROLLER_ID), {"cluster_id": OTHER})
    if expected:
        cluster.transport.expect([cluster.registration()])
        assert until(lambda: OTHER in info_log.text)
    cluster.connect()
    (channel,) = cluster.transport.channels.values()
    cluster.send("t-0")
    assert channel.join(10.0)
    cluster.send("u-0")
    assert (cluster.received, cluster.events, cluster.broker.connections) == ([], [], 1)
    assert cluster.transport.queues() == {}
    errors = [message for level, message in channel_lines(info_log) if level == "ERROR"]
    line = (
        f"no requests are sent to broker 1 at 127.0.0.1:{cluster.broker.port} until it registers again: "
        f"found cluster {OTHER}, expected cluster {CONTROLLER_ID} (/cluster/id)"
    )
    assert errors == [line]
    assert "requests to broker 1 dropped: not connected" in info_log.text

    cluster.broker.responses[METADATA] = {"cluster_id": CONTROLLER_ID}
    cluster.connect(cluster.registration(broker_epoch=8))
    cluster.send("t-0")
    cluster.await_idle()
    assert cluster.received == ["LeaderAndIsr", "UpdateMetadata"]


def test_address_taken_over_by_another_cluster_receives_nothing(
    make_cluster: MakeCluster, info_log: pytest.LogCaptureFixture
) -> None:
    """Every connection of a registration is checked. The first is no exception."""
    cluster = cluster_with_id(make_cluster, records(CONTROLLER_ID), {"cluster_id": CONTROLLER_ID})
    cluster.connect()
    cluster.send("t-0")
    cluster.await_idle()
    cluster.broker.responses[METADATA] = {"cluster_id": OTHER}
    cluster.broker.script.append(closed)
    cluster.send("u-0")
    (channel,) = cluster.transport.channels.values()
    assert channel.join(10.0)
    assert cluster.received == ["LeaderAndIsr", "UpdateMetadata", "LeaderAndIsr"]
    assert info_log.text.count(OTHER) == 1


@pytest.mark.parametrize(
    ("store", "response"),
    [
        (records(CONTROLLER_ID), {"cluster_id": CONTROLLER_ID}),
        (records(CONTROLLER_ID), {"cluster_id": None}),
        (FakeRecords({}), None),
        (FakeRecords({"/cluster/id": "{}"}), None),
        (UnreadableRecords({}), None),
        (object(), None),
    ],
    ids=["same id", "broker names none", "no record", "no id in it", "storage fails", "store shows no records"],
)
def test_broker_is_accepted_if_cluster_id_is_unknown(
    make_cluster: MakeCluster, store: object, response: dict[str, Any] | None, info_log: pytest.LogCaptureFixture
) -> None:
    """Without an own cluster id, brokers receive no Metadata request."""
    cluster = cluster_with_id(make_cluster, store, response)
    cluster.connect()
    cluster.send("t-0")
    cluster.await_idle()
    assert cluster.received == ["LeaderAndIsr", "UpdateMetadata"]
    assert channel_lines(info_log) == []
