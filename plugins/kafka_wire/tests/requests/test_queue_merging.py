"""A merged queue has the effect on a broker that its single requests would have."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from kframe_kafka_wire.requests.channel import Channel
from kframe_kafka_wire.requests.content import UPDATE_METADATA
from kframe_kafka_wire.requests.queued import QueuedRequest
from kframe_kafka_wire.requests.transport import WireTransport
from kframe_kafka_wire.sandbox import fake_broker
from kframe_kafka_wire.sandbox.fake_broker import APIS, CONTROLLER_ID, decode

from kframe.model.arrays import Int32, Ragged
from kframe.model.cluster import ClusterState
from kframe.model.requests import BrokerRows, ControlRequests
from kframe.testing.clusters import registration
from kframe.wire import header_version, request_header
from verification.support.properties import examples

pytestmark = pytest.mark.kernel

SLOW = 1
TOPICS = "ab"


class Stuck(WireTransport):
    """A transport whose channels do not send."""

    def __init__(self, protocol: str, queue_partitions: int) -> None:
        super().__init__(fake_broker.settings(inter_broker_protocol_version=protocol), queue_partitions)
        self.open(lambda _event: None, lambda: True)

    @property
    def channel(self) -> Channel:
        return self.channels[SLOW]

    def taken(self) -> list[Any]:
        """What the broker would be sent, decoded by kio."""
        return [decode(frame_of(request)) for request in self.channel.drain()]


@pytest.fixture(autouse=True, scope="module")
def _stuck() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Channel, "start", lambda _channel: None)
        yield


def frame_of(request: QueuedRequest) -> bytes:
    version = header_version(request.api_key, request.api_version)
    return request_header(version, request.api_key, request.api_version, 1, "x") + b"".join(request.chunks)


@dataclass
class Model:
    """A broker's state after control requests, as far as merging could change it."""

    live: tuple[int, ...] = ()
    metadata: dict[str, Any] = field(default_factory=dict)
    serving: dict[str, Any] = field(default_factory=dict)
    """Leader and leader epoch of the replicas that serve."""
    old_data: set[str] = field(default_factory=lambda: {f"{t}-{p}" for t in TOPICS for p in range(2)})
    """Replicas whose data is from before the queue began."""

    def apply(self, requests: list[Any]) -> Model:
        for request in requests:
            trace = request.trace
            if trace["api"] == "UpdateMetadata":
                self.live = tuple(trace["live_brokers"])
            for name, state in trace["partitions"].items():
                self.apply_partition(trace["api"], name, state)
        return self

    def apply_partition(self, api: str, name: str, state: Any) -> None:
        if api == "LeaderAndIsr":
            self.serving[name] = state["leader"], state["leader_epoch"]
        elif api == "StopReplica":
            _, leader_epoch = self.serving.get(name, (None, -1))
            if state["leader_epoch"] is not None and -2 < state["leader_epoch"] < leader_epoch:
                return  # fenced by the broker's last LeaderAndIsr
            self.serving.pop(name, None)
            if state["delete_partition"]:
                self.old_data.discard(name)
        elif state["leader"] == -2:
            self.metadata.pop(name, None)
        else:
            self.metadata[name] = state


class Controller:
    """Changes a small cluster and sends to two transports: one merges always, the other never."""

    def __init__(self, protocol: str) -> None:
        self.cluster = ClusterState()
        self.cluster.brokers.register([registration(broker_id) for broker_id in (1, 2, 3)])
        self.merging, self.keeping = Stuck(protocol, 0), Stuck(protocol, 10**9)
        self.served: list[Any] = []
        self.batch = 0
        self.stopped: set[int] = set()
        for transport in (self.merging, self.keeping):
            transport.connect(self.cluster, (0,))
        self.recreate(0, 0)
        self.recreate(1, 0)

    # -- steps; their arguments are drawn by Hypothesis

    def create(self, name: str, replicas: list[list[int]]) -> None:
        if name in self.cluster.topics:
            return
        indexes = Ragged.of([(self.cluster.brokers.index_of(replica) + 0).tolist() for replica in replicas])
        topic_id = bytes([len(self.cluster.topics) + 1]) * 16
        rows = self.cluster.add_topics([name], np.array([len(replicas)]), indexes, indexes, ids=[topic_id])
        p = self.cluster.partitions
        p.leader[rows] = [replica_list[0] for replica_list in (indexes[i] for i in range(len(replicas)))]
        p.leader_epoch[rows] = p.partition_epoch[rows] = 0
        p.epoch_number[rows] = p.number_epochs(np.zeros(1, np.int32))
        self.send(lead=rows, metadata=rows, is_new=1)

    def recreate(self, topic: int, _: int) -> None:
        self.create(TOPICS[topic], [[1, 2], [3, 1]])

    def serve(self, _: int, __: int) -> None:
        """The broker takes one request."""
        if self.merging.channel.waiting:
            taken = self.merging.channel._next()
            assert taken is not None
            self.served.append(decode(frame_of(taken)))

    def change_leader(self, topic: int, partition: int) -> None:
        rows = self.row(topic, partition)
        p = self.cluster.partitions
        for row in rows.tolist():
            p.leader_epoch[row] += 1
            p.partition_epoch[row] += 1
            p.leader[row] = p.replicas_of(row)[int(p.leader_epoch[row]) % int(p.replica_count[row])]
        self.send(lead=rows, metadata=rows)

    def change_isr(self, topic: int, partition: int) -> None:
        """As a leader does by AlterPartition: only UpdateMetadata is sent."""
        rows = self.row(topic, partition)
        self.cluster.partitions.partition_epoch[rows] += 1
        self.send(metadata=rows)

    def stop(self, topic: int, partition: int) -> None:
        self.send(stop=self.row(topic, partition), delete=0)

    def remove(self, topic: int, partition: int) -> None:
        """As at the end of a reassignment."""
        self.send(stop=self.row(topic, partition), delete=1)

    def change_elsewhere(self, topic: int, partition: int) -> None:
        """Change the leader of a partition whose replica on the slow broker is stopped: it receives metadata only."""
        rows = self.row(topic, partition)
        if self.stopped.issuperset(rows.tolist()):
            self.cluster.partitions.leader_epoch[rows] += 1
            self.send(metadata=rows)

    def delete(self, topic: int, _: int) -> None:
        index = self.cluster.topics.find(TOPICS[topic])
        if index is not None:
            self.cluster.topics.deleting[index] = 1
            rows = self.cluster.topics.rows_of(index)
            self.send(stop=rows, metadata=rows, delete=1)

    def forget(self, topic: int, _: int) -> None:
        """A deletion is complete."""
        index = self.cluster.topics.find(TOPICS[topic])
        if index is not None and self.cluster.topics.deleting[index]:
            self.cluster.drop_topics(np.array([index], np.int32))

    def vanish(self, topic: int, _: int) -> None:
        """A topic disappears from storage: Kafka's controller sends no requests."""
        index = self.cluster.topics.find(TOPICS[topic])
        if index is not None:
            self.cluster.drop_topics(np.array([index], np.int32))

    def bounce(self, broker: int, _: int) -> None:
        index = self.cluster.brokers.find(2 + broker % 2)
        assert index is not None
        self.cluster.brokers.registered[index] ^= 1
        self.send(metadata=np.flatnonzero(self.cluster.partitions.topic >= 0).astype(np.int32))

    # -- in short

    def row(self, topic: int, partition: int) -> Int32:
        row = self.cluster.row(TOPICS[topic], partition)
        return np.array([] if row is None else [row], np.int32)

    def send(
        self,
        *,
        lead: Int32 | None = None,
        stop: Int32 | None = None,
        metadata: Int32 | None = None,
        delete: int = 0,
        is_new: int = 0,
    ) -> None:
        none, p = np.empty(0, np.int32), self.cluster.partitions
        lead, stop = (none if rows is None else rows[self.hosted(rows)] for rows in (lead, stop))
        self.stopped = (self.stopped - set(lead.tolist())) | set(stop.tolist())
        epochs = np.where(self.cluster.topics.deleting[p.topic[stop]] != 0, -2, p.leader_epoch[stop]).astype(np.int32)
        self.batch += 1
        batch = ControlRequests(
            CONTROLLER_ID,
            1,
            rows_for(lead),
            np.full(len(lead), is_new, np.uint8),
            np.zeros(1, np.int32),
            none if metadata is None else metadata,
            rows_for(stop),
            epochs,
            np.full(len(stop), delete, np.uint8),
            batch=self.batch,
        )
        self.merging.send(self.cluster, batch)
        self.keeping.send(self.cluster, batch)

    def hosted(self, rows: Int32) -> Any:
        return [0 in self.cluster.partitions.replicas_of(row) for row in rows.tolist()]


def rows_for(rows: Int32) -> BrokerRows:
    return (
        BrokerRows(np.zeros(1, np.int32), np.array([0, len(rows)], np.int32), rows) if len(rows) else BrokerRows.none()
    )


STEPS: list[Callable[[Controller, int, int], None]] = [
    Controller.serve,
    Controller.recreate,
    Controller.change_leader,
    Controller.change_isr,
    Controller.stop,
    Controller.change_elsewhere,
    Controller.remove,
    Controller.delete,
    Controller.forget,
    Controller.vanish,
    Controller.bounce,
]


@examples(1.2)
@given(
    st.sampled_from(["3.9", "2.8", "2.4-IV1", "2.4-IV0", "1.0"]),
    st.lists(st.tuples(st.sampled_from(STEPS), st.integers(0, 1), st.integers(0, 1)), min_size=15, max_size=40),
)
def test_merged_queue_has_effect_of_single_requests(protocol: str, steps: list[Any]) -> None:
    """Whenever the broker takes a request, and however often the rest is merged."""
    controller = Controller(protocol)
    for step, *arguments in steps:
        step(controller, *arguments)
    compare_effects(controller)


def compare_effects(controller: Controller) -> None:
    """Compare a broker's state after the merged requests with that after the single requests."""
    merged = Model().apply([*controller.served, *controller.merging.taken()])
    single = Model().apply(controller.keeping.taken())
    existing = [f"{topic}-{n}" for topic in TOPICS for n in range(2) if controller.cluster.row(topic, n) is not None]
    assert merged.live == single.live
    for of_merged, of_single in ((merged.metadata, single.metadata), (merged.serving, single.serving)):
        for name in existing:
            assert of_merged.get(name) == of_single.get(name), name
        assert of_merged.keys() <= of_single.keys()  # a broker may know less of deleted topics, never more
    assert merged.old_data == single.old_data


@pytest.mark.parametrize("changes", [0, 3])
def test_deletion_is_sent_after_topic_is_recreated_and_deleted(changes: int) -> None:
    """Two deleted topics of the same name stop the same replica. Brokers know replicas by name only."""
    controller = Controller("3.9")
    for _ in range(changes):
        controller.change_leader(1, 0)
    controller.delete(1, 0)
    controller.forget(1, 0)
    controller.recreate(1, 0)
    controller.stop(1, 0)
    controller.vanish(1, 0)
    controller.recreate(1, 0)
    compare_effects(controller)


def test_merging_keeps_is_new_and_the_newest_state() -> None:
    controller = Controller("3.9")
    for _ in range(30):
        controller.change_leader(0, 0)
    requests = controller.merging.taken()
    assert len(requests) < 31
    states = [request.trace["partitions"]["a-0"] for request in requests if "a-0" in request.trace["partitions"]]
    assert next(state["is_new"] for state in states if "is_new" in state) is True
    assert states[-1]["leader_epoch"] == 30
    assert APIS[requests[0].api_key] == "UpdateMetadata"


def test_last_update_metadata_of_merged_queue_acknowledges_newest_batch() -> None:
    controller = Controller("3.9")
    for _ in range(30):
        controller.change_leader(0, 0)
    controller.remove(1, 0)
    controller.forget(1, 0)
    waiting = controller.merging.channel.drain()
    metadata = [request.content.batch for request in waiting if request.api_key == UPDATE_METADATA]
    assert len(metadata) < controller.batch
    assert metadata[-1] == controller.batch
    assert set(metadata[:-1]) <= {0}
