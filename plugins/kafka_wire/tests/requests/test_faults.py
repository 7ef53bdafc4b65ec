"""Control requests over faulty connections. Each request is sent again until it gets a response, in order."""

from __future__ import annotations

import socket
import struct
import threading
from collections.abc import Callable
from dataclasses import replace
from itertools import groupby

import numpy as np
import pytest
from kframe_kafka_wire.connections.broker import BrokerConnection, Target
from kframe_kafka_wire.requests.channel import retry_backoff_ms
from kframe_kafka_wire.sandbox.fake_broker import APIS, Action, FakeBroker, closed, respond, settings

from kframe.errors import ErrorCode
from kframe.model.events import (
    LeaderAndIsrResponseReceived,
    StopReplicaResponseReceived,
    UpdateMetadataResponseReceived,
)
from kframe.testing.clusters import cluster_of, healthy, requests_of
from kframe.testing.waiting import until
from verification.kafka_wire.fake_cluster import FakeCluster, delay_next_response, send_frame

MakeCluster = Callable[..., FakeCluster]


def send_half(connection: socket.socket, reply: bytes) -> None:
    connection.sendall(struct.pack(">i", len(reply)) + reply[: len(reply) // 2])
    closed(connection, reply)


def respond_to_another_request(connection: socket.socket, reply: bytes) -> None:
    respond(connection, struct.pack(">i", struct.unpack(">i", reply[:4])[0] + 1) + reply[4:])


def reset(connection: socket.socket, _: bytes) -> None:
    """Reset the connection, as the end of a process with unread data does."""
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    connection.close()


#: What the broker does with a request, and the expected log line.
FAULTS: dict[str, tuple[Action, str]] = {
    "closed before the response": (
        closed,
        "closed the connection after 0 bytes of 4: it ends, does not know the version of a request",
    ),
    "half a response": (send_half, "closed the connection after"),
    "reset": (reset, ""),
    "cut short": (lambda connection, reply: respond(connection, reply[:-1]), "is truncated, too long"),
    "bytes behind the end": (lambda connection, reply: respond(connection, reply + b"\0"), "is truncated, too long"),
    "a response to another request": (respond_to_another_request, "a response to request"),
    "no bytes at all": (send_frame(0, b""), "a reply of 0 bytes"),
    "too few bytes": (send_frame(3, b"abc"), "a response of 3 bytes"),
    "a negative length": (send_frame(-5, b"abc"), "a reply of -5 bytes"),
    "a huge length": (send_frame(2**31 - 1, b""), "a reply of 2147483647 bytes"),
    "garbage": (send_frame(64, bytes(range(64))), "a response to request 66051"),
    "a TLS alert": (lambda connection, _: connection.sendall(bytes.fromhex("15030300020228")), "speaks TLS"),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_request_is_resent_until_response_before_later_requests(
    make_cluster: MakeCluster, fault: str, caplog: pytest.LogCaptureFixture
) -> None:
    """Three failures, then one for each other kind of request. Each attempt uses a new connection (I13)."""
    caplog.set_level("INFO")
    cluster = make_cluster()
    action, message = FAULTS[fault]
    cluster.broker.script.extend([action, action, action, respond, action, respond, action, respond])
    cluster.send("t-0", "t-1")
    cluster.stop(t=True)
    cluster.send("u-0")
    cluster.await_idle()
    twice = ["UpdateMetadata", "UpdateMetadata", "StopReplica", "StopReplica"]
    assert cluster.received == [*["LeaderAndIsr"] * 4, *twice, "LeaderAndIsr", "UpdateMetadata"]
    bodies = [raw[8:] for raw in cluster.broker.raw]  # The bytes after the correlation id.
    assert bodies[:4] == [bodies[0]] * 4
    assert bodies[4:8:2] == bodies[5:8:2]
    assert cluster.broker.connections == 6
    assert [type(event) for event in cluster.events] == [
        LeaderAndIsrResponseReceived,
        UpdateMetadataResponseReceived,
        StopReplicaResponseReceived,
        LeaderAndIsrResponseReceived,
        UpdateMetadataResponseReceived,
    ]
    assert message in caplog.text


def test_a_request_after_an_idle_close_is_sent_once_over_a_new_connection(make_cluster: MakeCluster) -> None:
    """Brokers close idle connections (R28)."""
    cluster = make_cluster()

    def respond_and_close(connection: socket.socket, reply: bytes) -> None:
        respond(connection, reply)
        closed(connection, reply)

    cluster.broker.script.append(respond_and_close)
    cluster.stop(t=True)
    cluster.await_idle()
    cluster.send("t-0")
    cluster.await_idle()
    assert cluster.received == ["StopReplica", "LeaderAndIsr", "UpdateMetadata"]
    assert cluster.broker.connections == 2


def test_every_correlation_id_is_new(make_cluster: MakeCluster) -> None:
    cluster = make_cluster()
    cluster.broker.script.extend([closed] * 3)
    cluster.send("t-0")
    cluster.await_idle()
    ids = [request.correlation_id for request in cluster.broker.requests]
    assert sorted(set(ids)) == ids
    assert {request.client_id for request in cluster.broker.requests} == {"1000"}


def test_connection_is_retried_until_broker_listens(
    fakes: Callable[..., FakeBroker], make_cluster: MakeCluster, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("DEBUG", "kframe.kafka_wire")
    cluster = make_cluster()
    cluster.broker.close()
    cluster.send("t-0")
    assert until(lambda: caplog.text.count("refused") >= 2)
    later = fakes(port=cluster.broker.port)
    cluster.await_idle()
    assert [APIS[request.api_key] for request in later.requests] == ["LeaderAndIsr", "UpdateMetadata"]


def test_retry_backoff_has_upper_limit() -> None:
    pauses = [retry_backoff_ms(failures) for failures in (0, 1, 2, 3, 4, 5, 6, 10**9)]
    assert pauses == [50, 100, 200, 400, 800, 1000, 1000, 1000]


def test_a_request_timeout_resends_the_request(make_cluster: MakeCluster) -> None:
    cluster = make_cluster(settings(request_timeout_ms="200"))
    cluster.broker.script.append(lambda _connection, _reply: None)
    cluster.send("t-0")
    cluster.await_idle()
    # On a busy machine, later responses may also be late.
    assert [name for name, _ in groupby(cluster.received)] == ["LeaderAndIsr", "UpdateMetadata"]
    assert cluster.received.count("LeaderAndIsr") >= 2
    assert cluster.broker.connections == len(cluster.received) - 1


@pytest.mark.parametrize("end", ["close", "disconnect", "connect"])
def test_requests_of_an_ended_registration_are_dropped(make_cluster: MakeCluster, end: str) -> None:
    """In flight or queued, they are never sent again or to another registration (I15). Late responses are ignored."""
    cluster = make_cluster()
    release = delay_next_response(cluster.broker)
    cluster.send("t-0")
    cluster.send("u-0")
    assert cluster.broker.await_requests(1)
    (channel,) = cluster.transport.channels.values()
    registration = cluster.registration(broker_epoch=8)
    match end:
        case "close":
            cluster.transport.close()
            cluster.transport.open(cluster.events.append, lambda: True)
        case "disconnect":
            cluster.transport.disconnect(cluster.state, (0,))
    assert end == "connect" or channel.join(10.0)
    cluster.connect(registration)
    assert channel.join(10.0)
    release.set()
    cluster.send("t-1", controller_epoch=2)
    cluster.await_idle()
    assert cluster.received == ["LeaderAndIsr", "LeaderAndIsr", "UpdateMetadata"]
    assert [request.body["broker_epoch"] for request in cluster.broker.requests] == [7, 8, 8]
    assert [getattr(event, "controller_epoch", 2) for event in cluster.events] == [2, 2]


@pytest.mark.parametrize("regained", [True, False])
def test_requests_wait_while_the_role_is_uncertain(make_cluster: MakeCluster, regained: bool) -> None:
    """They are sent in order when the role is certain again. If it is lost, the transport is closed."""
    cluster = make_cluster()

    def lose_role(connection: socket.socket, reply: bytes) -> None:
        cluster.has_role = False
        closed(connection, reply)

    cluster.broker.script.append(lose_role)
    cluster.send("t-0")
    cluster.send("u-0")
    (channel,) = cluster.transport.channels.values()
    until(lambda: not cluster.has_role and cluster.role_checks > 2)
    assert cluster.received == ["LeaderAndIsr"]
    if regained:
        cluster.has_role = True
        cluster.await_idle()
        assert cluster.received == ["LeaderAndIsr", *(["LeaderAndIsr", "UpdateMetadata"] * 2)]
    else:
        cluster.transport.close()
        assert channel.join(10.0)
        assert (cluster.received, cluster.events) == (["LeaderAndIsr"], [])


def test_a_silent_broker_does_not_delay_others(make_cluster: MakeCluster) -> None:
    cluster = make_cluster(brokers=(1, 2))
    release = delay_next_response(cluster.broker)
    for _ in range(20):
        cluster.send_metadata((1, 2))
    assert cluster.brokers[2].await_requests(20)
    queues = cluster.transport.queues()
    assert (queues[1].waiting, queues[1].times.count) == (19, 1)
    assert cluster.received == ["UpdateMetadata"]
    release.set()
    cluster.await_idle()
    assert cluster.received == ["UpdateMetadata"] * 20
    assert [queue.times.count for queue in queues.values()] == [20, 20]


@pytest.mark.parametrize("protocol", ["3.9", "3.2", "2.8", "2.7", "2.4-IV1", "2.4-IV0", "2.2", "1.0", "0.10.2"])
def test_partition_errors_are_reported_by_topic_name(make_cluster: MakeCluster, protocol: str) -> None:
    """Also if the response has topic ids only. For StopReplica, errors name deleted replicas."""
    cluster = make_cluster(settings(inter_broker_protocol_version=protocol))
    for topic in range(2):
        cluster.state.topics.ids[topic] = topic + 1
    cluster.broker.errors = {(4, "t-1"): 56, (4, "u-0"): 3, (5, "t-0"): 56, (5, "u-0"): 74}
    cluster.send("t-0", "t-1", "u-0")
    cluster.stop(t=True, u=False)
    cluster.await_idle()
    led, _, stopped, *others = cluster.events
    assert isinstance(led, LeaderAndIsrResponseReceived)
    assert led.partition_errors == (
        (("t", 1), ErrorCode.KAFKA_STORAGE_ERROR),
        (("u", 0), ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
    )
    assert (led.error, led.rows.tolist()) == (ErrorCode.NONE, [0, 1, 2])
    assert isinstance(stopped, StopReplicaResponseReceived)
    assert led.broker_epoch == stopped.broker_epoch == 7
    assert stopped.partition_errors == ((("t", 0), ErrorCode.KAFKA_STORAGE_ERROR),)
    assert (stopped.rows.tolist(), others) == ([0], [])


def test_a_top_level_error_has_no_partitions(make_cluster: MakeCluster) -> None:
    """StopReplica then causes no event. The deletion waits until the broker registers again."""
    cluster = make_cluster()
    cluster.broker.top_level_errors = {4: 77, 5: 77, 6: 11}
    cluster.send("t-0")
    cluster.stop(t=True)
    cluster.await_idle()
    leaders = cluster.state.partitions.leaders_of(np.arange(len(cluster.state)))
    assert cluster.events == [
        LeaderAndIsrResponseReceived(1, ErrorCode.STALE_BROKER_EPOCH, (), 1, leaders),
        UpdateMetadataResponseReceived(1, ErrorCode.STALE_CONTROLLER_EPOCH),
    ]
    assert cluster.received == ["LeaderAndIsr", "UpdateMetadata", "StopReplica"]


@pytest.mark.extended
def test_requests_longer_than_a_socket_buffer_arrive_whole(make_cluster: MakeCluster) -> None:
    cluster = make_cluster()
    cluster.state = cluster_of({f"a-topic-with-a-name-{n}": [healthy(1)] * 100 for n in range(600)}, registered=[1])
    cluster.connect()
    batch = requests_of(cluster.state, metadata=([1], []))
    rows = np.arange(len(cluster.state), dtype=np.int32)
    cluster.transport.send(cluster.state, replace(batch, metadata_rows=rows))
    cluster.await_idle()
    (raw,), (request,) = cluster.broker.raw, cluster.broker.requests
    assert len(raw) > 1_900_000
    topics = [(topic["topic_name"], len(topic["partition_states"])) for topic in request.body["topic_states"]]
    assert topics == [(f"a-topic-with-a-name-{n}", 100) for n in range(600)]


@pytest.mark.parametrize("size", [1, 3, 5, 1000])
def test_replies_arrive_in_pieces_of_any_size(size: int) -> None:
    """Byte by byte, across the boundaries of responses, or all at once."""
    replies = [b"first", b"2", bytes(range(200))]
    stream = b"".join(struct.pack(">i", len(reply)) + reply for reply in replies)
    with socket.create_server(("127.0.0.1", 0)) as server:
        connection = BrokerConnection(Target("127.0.0.1", server.getsockname()[1], None, None, "1"))
        connection.open(10_000)
        broker, _ = server.accept()

        def send_pieces() -> None:
            broker.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            for first in range(0, len(stream), size):
                broker.sendall(stream[first : first + size])

        sender = threading.Thread(target=send_pieces)
        sender.start()
        assert [connection.exchange([b"any"], 200, 10_000) for _ in replies] == replies
        sender.join()
        connection.close()
        broker.close()
