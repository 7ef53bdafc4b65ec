"""A broker that never answers for an hour of a busy cluster's life: what waits for it stays within twice what there is
to be told once, in partitions and in bytes."""

from __future__ import annotations

import gc
import tracemalloc
from collections.abc import Iterator
from typing import Final

import numpy as np
import pytest
from kframe_kafka_wire.channel import Channel
from kframe_kafka_wire.testing import fake_broker
from kframe_kafka_wire.testing.fake_broker import US
from kframe_kafka_wire.transport import WireTransport

from kframe.model.cluster import ClusterState
from kframe.model.columns import Int32, Ragged
from kframe.model.requests import BrokerRows, ControlRequests
from kframe.testing.clusters import cluster_of, healthy

DEAD, OTHER = 0, 1
TOPICS: Final = 40
PARTITIONS: Final = 24
#: An hour in which something happens every second.
EVENTS: Final = 3_600
#: Objects about the bytes: requests, arrays, views.
SLACK_BYTES: Final = 128 * 1024


@pytest.fixture
def transport(monkeypatch: pytest.MonkeyPatch) -> WireTransport:
    """Its channels never begin to send."""
    monkeypatch.setattr(Channel, "start", lambda _channel: None)
    made = WireTransport(fake_broker.settings(), 0)
    made.open(lambda _event: None, lambda: True)
    return made


@pytest.fixture
def traced() -> Iterator[None]:
    tracemalloc.start()
    yield
    tracemalloc.stop()


class Hour:
    """A controller that tells two brokers of all that happens; one of them is dead, the other keeps up."""

    def __init__(self, transport: WireTransport) -> None:
        self.transport = transport
        topics = {f"t-{number}": [healthy(1, 2), healthy(2, 1)] * (PARTITIONS // 2) for number in range(TOPICS)}
        self.cluster: ClusterState = cluster_of(topics, registered=[1, 2, 3])
        self.standing = np.arange(len(self.cluster), dtype=np.int32)
        self.passing = 0
        transport.connect(self.cluster, (DEAD, OTHER))

    @property
    def channel(self) -> Channel:
        return self.transport.channels[1]

    def happen(self, number: int) -> None:
        """One event of the hour, by turns: ISRs change, leaders change, a broker goes or comes, topics come and go."""
        p = self.cluster.partitions
        if number % 300 == 0:
            index = self.cluster.brokers.find(3)
            assert index is not None
            self.cluster.brokers.registered[index] ^= 1
            self.tell(self.standing[:0], self.standing)
        elif number % 10 == 0:
            self.replace_topic()
        else:
            rows = self.standing[number % 900 : number % 900 + 30]
            p.partition_epoch[rows] += 1
            leads = number % 3 == 0
            p.leader_epoch[rows] += leads
            self.tell(rows if leads else rows[:0], rows)

    def replace_topic(self) -> None:
        """One is created, told of, deleted, told of, and forgotten. The dead broker has none of it: else it would stay,
        since its deletion would never be answered."""
        self.passing += 1
        replicas = Ragged.of([[OTHER]] * 10)
        rows = self.cluster.add_topics([f"passing-{self.passing}"], np.array([10]), replicas, replicas)
        p = self.cluster.partitions
        p.leader[rows] = p.leader_epoch[rows] = p.partition_epoch[rows] = p.controller_epoch[rows] = 0
        self.tell(rows[:0], rows)
        topic = int(p.topic[rows[0]])
        self.cluster.topics.deleting[topic] = 1
        self.tell(rows[:0], rows)
        self.cluster.drop_topics(np.array([topic], np.int32))

    def tell(self, led: Int32, told: Int32) -> None:
        """Both brokers by one batch; the other one has taken all before the next."""
        none = np.empty(0, np.int32)
        self.transport.send(self.cluster, ControlRequests(
            US, 1, both(led), np.zeros(2 * len(led), np.uint8), np.array([DEAD, OTHER], np.int32), told,
            BrokerRows.none(), none, np.empty(0, np.uint8),
        ))  # fmt: skip
        self.transport.channels[2].take_back()

    def held(self) -> int:
        """Bytes that the queue holds on to, whoever shares them: encoded chunks, and what they tell."""
        buffers: dict[int, int] = {}
        for one in self.channel._waiting:
            for chunk in one.chunks:
                whole = chunk.obj if isinstance(chunk, memoryview) else chunk
                buffers[id(whole)] = memoryview(whole).nbytes
            for column in (one.told.rows, one.told.topic, one.told.partition, one.told.flags, one.told.leader_epoch):
                if column is not None:
                    root = column.base if isinstance(column.base, np.ndarray) else column
                    buffers[id(root)] = root.nbytes
        return sum(buffers.values())

    def freed(self) -> int:
        """Bytes that are given back when the queue is dropped, of those that were taken under tracemalloc."""
        gc.collect()
        before = tracemalloc.get_traced_memory()[0]
        self.channel.take_back()
        gc.collect()
        return before - tracemalloc.get_traced_memory()[0]


def both(rows: Int32) -> BrokerRows:
    if not len(rows):
        return BrokerRows.none()
    offsets = np.array([0, len(rows), 2 * len(rows)], np.int32)
    return BrokerRows(np.array([DEAD, OTHER], np.int32), offsets, np.concatenate([rows, rows]))


def test_what_waits_for_a_dead_broker_is_bounded(transport: WireTransport) -> None:
    hour = Hour(transport)
    hour.tell(hour.standing, hour.standing)
    once, once_bytes = hour.channel.weight, hour.held()
    assert once >= 2 * len(hour.cluster), "all metadata, and it hosts everything"
    weights, bytes_held = [], []
    for number in range(1, EVENTS + 1):
        hour.happen(number)
        weights.append(hour.channel.weight)
        bytes_held.append(hour.held())
    assert once < max(weights) <= 2 * once
    assert once_bytes < max(bytes_held) <= 2 * once_bytes
    early, late = max(bytes_held[: EVENTS // 2]), max(bytes_held[EVENTS // 2 :])
    assert late <= 1.01 * early, "it does not creep, but for longer numbers in names"


def test_a_queue_is_all_that_a_dead_broker_costs(transport: WireTransport, traced: None) -> None:
    """Counted by the interpreter: what merging makes is what is held, and nothing is held twice."""
    hour = Hour(transport)
    hour.tell(hour.standing, hour.standing)
    once_bytes = hour.held()
    for number in range(1, EVENTS // 20):
        hour.happen(number)
    assert hour.channel.merged_weight > 0
    assert hour.freed() <= 2 * once_bytes + SLACK_BYTES
