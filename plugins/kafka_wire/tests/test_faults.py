"""What brokers may do to a request, and what becomes of it: the same one again, nothing before it, nothing lost."""

from __future__ import annotations

import re
import socket
import struct
import threading
from collections.abc import Callable
from dataclasses import replace
from itertools import groupby
from typing import Any

import numpy as np
import pytest
from kframe_kafka_wire.channel import pause_ms
from kframe_kafka_wire.connection import Connection, Target
from kframe_kafka_wire.testing.fake_broker import APIS, Deed, FakeBroker, answered, settings
from kframe_kafka_wire.transport import WireTransport
from kframe_zookeeper.testing.process import until

from kframe.errors import ErrorCode
from kframe.model.events import Event, LeaderAndIsrAnswered, StopReplicaAnswered, UpdateMetadataAnswered
from kframe.testing.clusters import cluster_of, healthy, registration, requests_of

CHANNEL = "kframe.kafka_wire"


def frame(length: int, content: bytes) -> Deed:
    """Answers with these bytes, whatever was asked."""
    return lambda connection, _: connection.sendall(struct.pack(">i", length) + content)


def closed(connection: socket.socket, _: bytes) -> None:
    connection.shutdown(socket.SHUT_RDWR)


def half(connection: socket.socket, reply: bytes) -> None:
    connection.sendall(struct.pack(">i", len(reply)) + reply[: len(reply) // 2])
    closed(connection, reply)


def cut_short(connection: socket.socket, reply: bytes) -> None:
    answered(connection, reply[:-1])


def too_long(connection: socket.socket, reply: bytes) -> None:
    answered(connection, reply + b"\0")


def of_another(connection: socket.socket, reply: bytes) -> None:
    answered(connection, struct.pack(">i", struct.unpack(">i", reply[:4])[0] + 1) + reply[4:])


def reset(connection: socket.socket, _: bytes) -> None:
    """As a process that ends with data unread."""
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    connection.close()


FAULTS: dict[str, tuple[Deed, str]] = {
    "closed before the answer": (
        closed,
        "closed the connection after 0 bytes of 4: it ends, does not know the version of a request",
    ),
    "half an answer": (half, "closed the connection after"),
    "reset": (reset, ""),
    "cut short": (cut_short, "breaks off"),
    "bytes behind the end": (too_long, "breaks off"),
    "an answer to another request": (of_another, "an answer to request"),
    "no bytes at all": (frame(0, b""), "a reply of 0 bytes"),
    "too few bytes": (frame(3, b"abc"), "an answer of 3 bytes"),
    "a negative length": (frame(-5, b"abc"), "a reply of -5 bytes"),
    "a huge length": (frame(2**31 - 1, b""), "a reply of 2147483647 bytes"),
    "garbage": (frame(64, bytes(range(64))), "an answer to request 66051"),
    "a TLS alert": (lambda connection, _: connection.sendall(bytes.fromhex("15030300020228")), "speaks TLS"),
}


class World:
    """A transport to one broker, and what it notifies of."""

    def __init__(self, transport: WireTransport, broker: FakeBroker) -> None:
        self.transport, self.broker = transport, broker
        self.heard: list[Event] = []
        self.cluster = cluster_of({"t": [healthy(1), healthy(1, 2)], "u": [healthy(1)]}, registered=[1])
        self.register(7)
        self.role = True
        self.asked_for_role = 0
        transport.open(self.heard.append, self._may_act)
        self.connect()

    def _may_act(self) -> bool:
        self.asked_for_role += 1
        return self.role

    def register(self, broker_epoch: int) -> None:
        known = registration(1, broker_epoch=broker_epoch)
        there = replace(known.endpoints[0], port=self.broker.port)
        self.cluster.brokers.register([replace(known, endpoints=(there,))])

    def connect(self) -> None:
        self.transport.connect(self.cluster, (0,))

    def send(self, *names: str, controller_epoch: int = 1) -> None:
        """LeaderAndIsr and UpdateMetadata of these partitions."""
        self.transport.send(
            self.cluster,
            requests_of(self.cluster, leader_and_isr={1: names} if names else None, metadata=([1], names),
                        controller_epoch=controller_epoch),
        )  # fmt: skip

    def stop(self, **deletions: bool) -> None:
        """StopReplica of partitions 0 of these topics."""
        told = {1: {f"{topic}-0": (0, delete) for topic, delete in deletions.items()}}
        self.transport.send(self.cluster, requests_of(self.cluster, stop_replica=told))

    def settle(self) -> None:
        assert until(lambda: all(one.idle for one in self.transport.channels.values()))

    @property
    def came(self) -> list[str]:
        return [APIS[one.api_key] for one in self.broker.requests]


@pytest.fixture
def make_world(fakes: Callable[..., FakeBroker], transports: Callable[..., WireTransport]) -> Callable[..., World]:
    def make(config: dict[str, str] | None = None, **more: Any) -> World:
        return World(transports(config, **more), fakes())

    return make


@pytest.mark.parametrize("fault", FAULTS)
def test_the_same_request_again(make_world: Callable[..., World], fault: str, caplog: pytest.LogCaptureFixture) -> None:
    """Three times, and once of each other kind, on a connection of its own each time, before any later one (I13)."""
    caplog.set_level("INFO")
    world = make_world()
    deed, said = FAULTS[fault]
    world.broker.script.extend([deed, deed, deed, answered, deed, answered, deed, answered])
    world.send("t-0", "t-1")
    world.stop(t=True)
    world.send("u-0")
    world.settle()
    twice = ["UpdateMetadata", "UpdateMetadata", "StopReplica", "StopReplica"]
    assert world.came == [*["LeaderAndIsr"] * 4, *twice, "LeaderAndIsr", "UpdateMetadata"]
    bodies = [raw[8:] for raw in world.broker.raw]  # what follows the correlation id
    assert bodies[:4] == [bodies[0]] * 4
    assert bodies[4:8:2] == bodies[5:8:2]
    assert world.broker.connections == 6
    led, stopped, told = LeaderAndIsrAnswered, StopReplicaAnswered, UpdateMetadataAnswered
    assert [type(one) for one in world.heard] == [led, told, stopped, led, told]
    assert said in caplog.text


@pytest.mark.parametrize("kraft", [True, False])
def test_a_broker_in_kraft_mode_is_named(
    make_world: Callable[..., World], kraft: bool, caplog: pytest.LogCaptureFixture
) -> None:
    """One that merely closes connections is not."""
    world = make_world()
    world.broker.kraft = kraft
    world.broker.script.extend([closed] * 5)
    world.send("t-0")
    assert world.broker.await_requests(6)
    said = [
        record.levelname for record in caplog.records
        if f"broker 1 at 127.0.0.1:{world.broker.port} is in KRaft mode" in record.message
    ]  # fmt: skip
    assert said == (["WARNING"] if kraft else [])
    if kraft:
        assert "expected a ZooKeeper-mode broker of this cluster; the registration /brokers/ids/1" in caplog.text
        assert world.heard == []


def test_a_connection_that_was_idle_for_too_long(make_world: Callable[..., World]) -> None:
    """Brokers close it; what is sent next goes over another one, once (R28)."""
    world = make_world()

    def answered_and_closed(connection: socket.socket, reply: bytes) -> None:
        answered(connection, reply)
        closed(connection, reply)

    world.broker.script.append(answered_and_closed)
    world.stop(t=True)
    world.settle()
    world.send("t-0")
    world.settle()
    assert world.came == ["StopReplica", "LeaderAndIsr", "UpdateMetadata"]
    assert world.broker.connections == 2


def test_every_correlation_id_is_new(make_world: Callable[..., World]) -> None:
    world = make_world()
    world.broker.script.extend([closed] * 3)
    world.send("t-0")
    world.settle()
    ids = [one.correlation_id for one in world.broker.requests]
    assert sorted(set(ids)) == ids
    assert {one.client_id for one in world.broker.requests} == {"1000"}


def test_a_broker_that_does_not_listen_yet(
    fakes: Callable[..., FakeBroker], make_world: Callable[..., World], caplog: pytest.LogCaptureFixture
) -> None:
    """It is tried until it does."""
    caplog.set_level("DEBUG", CHANNEL)
    world = make_world()
    world.broker.close()
    world.send("t-0")
    assert until(lambda: caplog.text.count("refused") >= 2)
    later = fakes(port=world.broker.port)
    world.settle()
    assert [APIS[one.api_key] for one in later.requests] == ["LeaderAndIsr", "UpdateMetadata"]


def channel_lines(caplog: pytest.LogCaptureFixture) -> list[tuple[str, str]]:
    """Level and text of the channels' lines, without durations and sizes."""
    return [
        (record.levelname, re.sub(r"at most \d+", "at most N", re.sub(r"\d+\.\d{3} s", "T s", record.getMessage())))
        for record in caplog.records
        if record.name == CHANNEL
    ]


def test_a_cut_is_logged_once_with_its_queue_and_once_when_it_heals(
    make_world: Callable[..., World], caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO", CHANNEL)
    world = make_world()
    release = threading.Event()

    def cut(connection: socket.socket, reply: bytes) -> None:
        release.wait(30)
        frame(0, b"")(connection, reply)

    world.broker.script.extend([cut, closed, closed, closed, closed])
    for _ in range(3):
        world.stop(t=True)
    assert world.broker.await_requests(1)
    release.set()
    world.settle()
    node = f"127.0.0.1:{world.broker.port} (id: 1)"
    own = "[RequestSendThread controllerId=1000] Controller 1000"
    assert channel_lines(caplog) == [
        (
            "WARNING",
            (
                f"{own}'s connection to broker {node} is cut: a reply of 0 bytes, where at most N make sense "
                "(WireError); 3 requests wait"
            ),
        ),
        ("INFO", f"{own} connected to {node} again for sending state change requests, after T s; 2 requests wait"),
    ]


def test_a_cut_that_never_heals_ends_with_the_registration(
    make_world: Callable[..., World], caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO", CHANNEL)
    world = make_world()
    world.broker.close()
    world.stop(t=True)
    world.stop(u=True)
    assert until(lambda: len(channel_lines(caplog)) == 1)
    world.transport.disconnect(world.cluster, (0,))
    node = f"127.0.0.1:{world.broker.port} (id: 1)"
    assert channel_lines(caplog)[1:] == [
        (
            "INFO",
            (
                f"[RequestSendThread controllerId=1000] Controller 1000 gives up its connection to broker {node}, "
                "T s after it was cut: 2 requests are dropped"
            ),
        )
    ]


def test_a_connection_that_was_idle_is_no_cut(
    make_world: Callable[..., World], caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO", CHANNEL)
    world = make_world()
    world.stop(t=True)
    world.settle()
    world.broker.script.append(closed)
    world.stop(t=True)
    world.settle()
    assert len(world.broker.requests) == 3
    assert channel_lines(caplog) == []


def test_pauses_grow_to_a_second() -> None:
    assert [pause_ms(failures) for failures in (0, 1, 2, 3, 4, 5, 6, 10**9)] == [
        50,
        100,
        200,
        400,
        800,
        1000,
        1000,
        1000,
    ]


def test_no_answer_in_time_is_as_good_as_none(make_world: Callable[..., World]) -> None:
    world = make_world(settings(request_timeout_ms="200"))
    world.broker.script.append(lambda _connection, _reply: None)
    world.send("t-0")
    world.settle()
    # On a busy machine later answers may take too long as well.
    assert [name for name, _ in groupby(world.came)] == ["LeaderAndIsr", "UpdateMetadata"]
    assert world.came.count("LeaderAndIsr") >= 2
    assert world.broker.connections == len(world.came) - 1


def held(world: World) -> threading.Event:
    """The broker holds back its next answer until the event is set."""
    release = threading.Event()

    def hold(connection: socket.socket, reply: bytes) -> None:
        release.wait(30)
        answered(connection, reply)

    world.broker.script.append(hold)
    return release


@pytest.mark.parametrize("end", ["close", "disconnect", "connect"])
def test_what_a_registration_has_left_undone_is_dropped(make_world: Callable[..., World], end: str) -> None:
    """In flight or waiting: never sent again, never to another registration (I15), and its answer is told to nobody."""
    world = make_world()
    release = held(world)
    world.send("t-0")
    world.send("u-0")
    assert world.broker.await_requests(1)
    (channel,) = world.transport.channels.values()
    world.register(8)
    match end:
        case "close":
            world.transport.close()
            world.transport.open(world.heard.append, lambda: True)
        case "disconnect":
            world.transport.disconnect(world.cluster, (0,))
    assert end == "connect" or channel.join(10.0)
    world.connect()
    assert channel.join(10.0)
    release.set()
    world.send("t-1", controller_epoch=2)
    world.settle()
    assert world.came == ["LeaderAndIsr", "LeaderAndIsr", "UpdateMetadata"]
    assert [one.body.broker_epoch for one in world.broker.requests] == [7, 8, 8]
    assert [getattr(one, "controller_epoch", 2) for one in world.heard] == [2, 2]


@pytest.mark.parametrize("regained", [True, False])
def test_who_may_not_act_any_more_is_silent(make_world: Callable[..., World], regained: bool) -> None:
    """What waits leaves in order when the role is certain again. Where the role is lost the transport is closed."""
    world = make_world()

    def lost(connection: socket.socket, reply: bytes) -> None:
        world.role = False
        closed(connection, reply)

    world.broker.script.append(lost)
    world.send("t-0")
    world.send("u-0")
    (channel,) = world.transport.channels.values()
    until(lambda: not world.role and world.asked_for_role > 2)
    assert world.came == ["LeaderAndIsr"]
    if regained:
        world.role = True
        world.settle()
        assert world.came == ["LeaderAndIsr", *(["LeaderAndIsr", "UpdateMetadata"] * 2)]
    else:
        world.transport.close()
        assert channel.join(10.0)
        assert (world.came, world.heard) == (["LeaderAndIsr"], [])


def test_a_silent_broker_delays_nobody(fakes: Callable[..., FakeBroker], make_world: Callable[..., World]) -> None:
    world, other = make_world(), fakes()
    release = held(world)
    known = registration(2)
    world.cluster.brokers.register([replace(known, endpoints=(replace(known.endpoints[0], port=other.port),))])
    index = world.cluster.brokers.find(2)
    assert index is not None
    world.transport.connect(world.cluster, (index,))
    for _ in range(20):
        world.transport.send(world.cluster, requests_of(world.cluster, metadata=([1, 2], ["t-0"])))
    assert other.await_requests(20)
    queues = world.transport.queues()
    assert (queues[1].waiting, queues[1].times.count) == (19, 1)
    assert world.came == ["UpdateMetadata"]
    release.set()
    world.settle()
    assert world.came == ["UpdateMetadata"] * 20
    assert [queue.times.count for queue in queues.values()] == [20, 20]


@pytest.mark.parametrize("protocol", ["3.9", "3.2", "2.8", "2.7", "2.4-IV1", "2.4-IV0", "2.2", "1.0", "0.10.2"])
def test_errors_are_told_by_name_in_every_version(make_world: Callable[..., World], protocol: str) -> None:
    """By topic id where the answer has no names. Of StopReplica those partitions that were to be deleted."""
    world = make_world(settings(inter_broker_protocol_version=protocol))
    for topic in range(2):
        world.cluster.topics.ids[topic] = topic + 1
    world.broker.errors = {(4, "t-1"): 56, (4, "u-0"): 3, (5, "t-0"): 56, (5, "u-0"): 74}
    world.send("t-0", "t-1", "u-0")
    world.stop(t=True, u=False)
    world.settle()
    led, _, stopped, *others = world.heard
    assert isinstance(led, LeaderAndIsrAnswered)
    assert led.partition_errors == (
        (("t", 1), ErrorCode.KAFKA_STORAGE_ERROR), (("u", 0), ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
    )  # fmt: skip
    assert (led.error, led.rows.tolist()) == (ErrorCode.NONE, [0, 1, 2])
    assert isinstance(stopped, StopReplicaAnswered)
    assert stopped.partition_errors == ((("t", 0), ErrorCode.KAFKA_STORAGE_ERROR),)
    assert (stopped.rows.tolist(), others) == ([0], [])


def test_an_error_for_the_whole_comes_without_partitions(make_world: Callable[..., World]) -> None:
    """Then StopReplica tells a controller nothing: the replica waits until its broker registers anew."""
    world = make_world()
    world.broker.top = {4: 77, 5: 77, 6: 11}
    world.send("t-0")
    world.stop(t=True)
    world.settle()
    assert world.heard == [
        LeaderAndIsrAnswered(
            1, ErrorCode.STALE_BROKER_EPOCH, (), 1, world.cluster.partitions.leaders_of(np.arange(len(world.cluster)))
        ),
        UpdateMetadataAnswered(1, ErrorCode.STALE_CONTROLLER_EPOCH),
    ]
    assert world.came == ["LeaderAndIsr", "UpdateMetadata", "StopReplica"]


def test_requests_longer_than_a_socket_takes_at_once(make_world: Callable[..., World]) -> None:
    """Some megabytes of UpdateMetadata, in many pieces, come out as they went in."""
    world = make_world()
    world.cluster = cluster_of({f"a-topic-with-a-name-{n}": [healthy(1)] * 100 for n in range(600)}, registered=[1])
    world.register(9)
    world.connect()
    batch = requests_of(world.cluster, metadata=([1], []))
    rows = np.arange(len(world.cluster), dtype=np.int32)
    world.transport.send(world.cluster, replace(batch, metadata_rows=rows))
    world.settle()
    (raw,), (request,) = world.broker.raw, world.broker.requests
    assert len(raw) > 1_900_000
    told = [(topic.topic_name, len(topic.partition_states)) for topic in request.body.topic_states]
    assert told == [(f"a-topic-with-a-name-{n}", 100) for n in range(600)]


@pytest.mark.parametrize("size", [1, 3, 5, 1000])
def test_replies_are_read_in_whatever_pieces_they_come(size: int) -> None:
    """Byte by byte, across the borders of replies, or all of them with the first."""
    replies = [b"first", b"2", bytes(range(200))]
    sent = b"".join(struct.pack(">i", len(one)) + one for one in replies)
    with socket.create_server(("127.0.0.1", 0)) as server:
        connection = Connection(Target("127.0.0.1", server.getsockname()[1], None, None, "1"))
        connection.open(10_000)
        broker, _ = server.accept()

        def tell() -> None:
            broker.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            for first in range(0, len(sent), size):
                broker.sendall(sent[first : first + size])

        teller = threading.Thread(target=tell)
        teller.start()
        assert [connection.exchange([b"any"], 200, 10_000) for _ in replies] == replies
        teller.join()
        connection.close()
        broker.close()
