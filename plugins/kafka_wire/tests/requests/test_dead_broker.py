"""The queue of a broker that fails for an hour stays within twice the size of the full state."""

from __future__ import annotations

import gc
import tracemalloc
from collections.abc import Iterator
from typing import Final

import numpy as np
import pytest
from kframe_kafka_wire.requests.channel import Channel
from kframe_kafka_wire.requests.transport import WireTransport
from kframe_kafka_wire.sandbox import fake_broker
from kframe_kafka_wire.sandbox.fake_broker import CONTROLLER_ID

from kframe.model.arrays import Int32, Ragged
from kframe.model.cluster import ClusterState
from kframe.model.requests import BrokerRows, ControlRequests
from kframe.testing.clusters import cluster_of, healthy

DEAD, OTHER = 0, 1
TOPICS: Final = 40
PARTITIONS: Final = 24
#: An hour with an event every second.
EVENTS: Final = 3_600
#: Python objects that own the bytes: requests, arrays, views.
SLACK_BYTES: Final = 128 * 1024


@pytest.fixture
def transport(monkeypatch: pytest.MonkeyPatch) -> WireTransport:
    """A transport whose channels do not send."""
    monkeypatch.setattr(Channel, "start", lambda _channel: None)
    unconnected = WireTransport(fake_broker.settings(), 0)
    unconnected.open(lambda _event: None, lambda: True)
    return unconnected


@pytest.fixture
def traced() -> Iterator[None]:
    tracemalloc.start()
    yield
    tracemalloc.stop()


class BusyHour:
    """A controller that sends every change to two brokers. One is dead, the other keeps up."""

    def __init__(self, transport: WireTransport) -> None:
        self.transport = transport
        topics = {f"t-{number}": [healthy(1, 2), healthy(2, 1)] * (PARTITIONS // 2) for number in range(TOPICS)}
        self.cluster: ClusterState = cluster_of(topics, registered=[1, 2, 3])
        self.rows = np.arange(len(self.cluster), dtype=np.int32)
        self.created = 0
        transport.connect(self.cluster, (DEAD, OTHER))

    @property
    def channel(self) -> Channel:
        return self.transport.channels[1]

    def run_event(self, number: int) -> None:
        """An event. It is an ISR or leader change, a broker (un)registration, or a topic created and deleted."""
        p = self.cluster.partitions
        if number % 300 == 0:
            index = self.cluster.brokers.find(3)
            assert index is not None
            self.cluster.brokers.registered[index] ^= 1
            self.send(self.rows[:0], self.rows)
        elif number % 10 == 0:
            self.replace_topic()
        else:
            rows = self.rows[number % 900 : number % 900 + 30]
            p.partition_epoch[rows] += 1
            leads = number % 3 == 0
            p.leader_epoch[rows] += leads
            self.send(rows if leads else rows[:0], rows)

    def replace_topic(self) -> None:
        """Create and delete a topic, with requests after each.

        The dead broker has no replica of it, because the deletion would never complete otherwise.
        """
        self.created += 1
        replicas = Ragged.of([[OTHER]] * 10)
        rows = self.cluster.add_topics([f"created-{self.created}"], np.array([10]), replicas, replicas)
        p = self.cluster.partitions
        p.leader[rows] = p.leader_epoch[rows] = p.partition_epoch[rows] = 0
        p.epoch_number[rows] = p.number_epochs(np.zeros(1, np.int32))
        self.send(rows[:0], rows)
        topic = int(p.topic[rows[0]])
        self.cluster.topics.deleting[topic] = 1
        self.send(rows[:0], rows)
        self.cluster.drop_topics(np.array([topic], np.int32))

    def send(self, led: Int32, metadata_rows: Int32) -> None:
        """Send a batch to both brokers. The live broker takes all of it."""
        none = np.empty(0, np.int32)
        self.transport.send(
            self.cluster,
            ControlRequests(
                CONTROLLER_ID,
                1,
                of_both_brokers(led),
                np.zeros(2 * len(led), np.uint8),
                np.array([DEAD, OTHER], np.int32),
                metadata_rows,
                BrokerRows.none(),
                none,
                np.empty(0, np.uint8),
            ),
        )
        self.transport.channels[2].drain()

    def queue_bytes(self) -> int:
        """Bytes that the queue references. They are encoded chunks and content."""
        buffers: dict[int, int] = {}
        for request in self.channel._queue:
            for chunk in request.chunks:
                whole = chunk.obj if isinstance(chunk, memoryview) else chunk
                buffers[id(whole)] = memoryview(whole).nbytes
            for column in (
                request.content.rows,
                request.content.topic,
                request.content.partition,
                request.content.flags,
                request.content.leader_epoch,
            ):
                if column is not None:
                    root = column.base if isinstance(column.base, np.ndarray) else column
                    buffers[id(root)] = root.nbytes
        return sum(buffers.values())

    def freed(self) -> int:
        """Bytes, traced by tracemalloc, that dropping the queue frees."""
        gc.collect()
        before = tracemalloc.get_traced_memory()[0]
        self.channel.drain()
        gc.collect()
        return before - tracemalloc.get_traced_memory()[0]


def of_both_brokers(rows: Int32) -> BrokerRows:
    if not len(rows):
        return BrokerRows.none()
    offsets = np.array([0, len(rows), 2 * len(rows)], np.int32)
    return BrokerRows(np.array([DEAD, OTHER], np.int32), offsets, np.concatenate([rows, rows]))


def test_the_queue_of_a_dead_broker_is_bounded(transport: WireTransport) -> None:
    hour = BusyHour(transport)
    hour.send(hour.rows, hour.rows)
    once, once_bytes = hour.channel.weight, hour.queue_bytes()
    assert once >= 2 * len(hour.cluster), "all metadata, and it hosts everything"
    weights, bytes_held = [], []
    for number in range(1, EVENTS + 1):
        hour.run_event(number)
        weights.append(hour.channel.weight)
        bytes_held.append(hour.queue_bytes())
    assert once < max(weights) <= 2 * once
    assert once_bytes < max(bytes_held) <= 2 * once_bytes
    early, late = max(bytes_held[: EVENTS // 2]), max(bytes_held[EVENTS // 2 :])
    assert late <= 1.01 * early, "the queue grows only by longer topic names"


def test_a_dead_broker_costs_no_memory_beyond_its_queue(transport: WireTransport, traced: None) -> None:
    """tracemalloc counts what merging allocates and the queue references."""
    hour = BusyHour(transport)
    hour.send(hour.rows, hour.rows)
    once_bytes = hour.queue_bytes()
    for number in range(1, EVENTS // 20):
        hour.run_event(number)
    assert hour.channel.merged_weight > 0
    assert hour.freed() <= 2 * once_bytes + SLACK_BYTES
