"""A KRaft controller that a program embeds: the requests of administrators, and brokers that register and fail."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest

import kframe
from kframe.errors import ConfigError, PluginError, StoreError
from kframe.model.admin import ConfigChange, ConfigOperation
from kframe.plugin import CommittedDecision, ElectionBatch, Int32
from kframe.plugin.kraft import ClusterMetadata, partition_record
from kframe.plugin.kraft_controller import RequestRefused, registration
from verification.kraft.served_controller import formatted

WAIT_S = 30
NONE = kframe.ErrorCode.NONE


@pytest.fixture
def controller() -> Iterator[kframe.KraftController]:
    builder = kframe.KraftControllerBuilder(7, "kraft-memory:", {"min.insync.replicas": "1"})
    with builder.build() as started:
        for broker_id, rack in ((1, "a"), (2, "b"), (3, "a")):
            started.register_broker(broker_id, rack).result(WAIT_S)
        yield started


def leaders(controller: kframe.KraftController, topic: str) -> list[tuple[int, tuple[int, ...]]]:
    """Leader and ISR of each partition of a topic."""

    def read(metadata: ClusterMetadata) -> list[tuple[int, tuple[int, ...]]]:
        rows = metadata.topics.rows_of(metadata.topics.index_by_name[topic])
        return [(record.leader, record.isr) for record in (partition_record(metadata, row) for row in rows)]

    return controller.inspect(read).result(WAIT_S)


def test_topics_are_created_grown_and_deleted(controller: kframe.KraftController) -> None:
    created = controller.create_topics([kframe.NewTopic("orders", 4, 3), kframe.NewTopic("bad", 1, 9)])
    assert created.result(WAIT_S) == {"orders": NONE, "bad": kframe.ErrorCode.INVALID_REPLICATION_FACTOR}
    assert "replication factor" in created.result().messages["bad"]
    assert controller.create_partitions([kframe.NewPartitions("orders", 6)]).result(WAIT_S) == {"orders": NONE}
    assert len(leaders(controller, "orders")) == 6
    assert controller.create_topics([kframe.NewTopic("no", 1, 1)], validate_only=True).result(WAIT_S) == {"no": NONE}
    assert controller.delete_topics(["orders", "no"]).result(WAIT_S) == {
        "orders": NONE,
        "no": kframe.ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    }
    assert controller.inspect(lambda metadata: [*metadata.topics.index_by_name]).result(WAIT_S) == []


class Recorder:
    """An observer that notes what is committed, and fails if it is asked to."""

    name = "recorder"

    def __init__(self) -> None:
        self.seen: list[tuple[int, list[str]]] = []
        self.fails = False

    def committed(self, offset: int, decision: CommittedDecision) -> None:
        if self.fails:
            raise ValueError("observer")
        self.seen.append((offset, [type(each.record).__name__ for each in decision.records]))


def test_observers_see_committed_decisions_before_their_responses() -> None:
    recorder = Recorder()
    builder = kframe.KraftControllerBuilder(7, "kraft-memory:", {"min.insync.replicas": "1"}, observers=[recorder])
    with builder.build() as controller:
        controller.register_broker(1).result(WAIT_S)
        before = len(recorder.seen)
        controller.create_topics([kframe.NewTopic("a", 1, 1)]).result(WAIT_S)
        controller.create_topics([kframe.NewTopic("a", 1, 1)]).result(WAIT_S)
        assert [names for _, names in recorder.seen[before:]] == [["TopicRecord", "PartitionRecord"]]
        recorder.fails = True
        assert controller.delete_topics(["a"]).result(WAIT_S) == {"a": NONE}
        assert controller.metrics()['kframe_observer_failures_total{observer="recorder"}'] == 1
    offsets = [offset for offset, _ in recorder.seen]
    assert offsets == sorted(set(offsets))


def test_observer_of_zookeeper_mode_is_refused() -> None:
    observer = SimpleNamespace(name="steps", stepped=lambda cause, effects: None)
    builder = kframe.KraftControllerBuilder(7, "kraft-memory:", observers=[observer])
    with pytest.raises(PluginError, match="observer 'steps' is for controllers of the other mode"):
        builder.build()


def test_brokers_fail_and_return(controller: kframe.KraftController) -> None:
    topic = kframe.NewTopic("orders", assignments=((0, (1, 2)), (1, (2, 1))))
    controller.create_topics([topic]).result(WAIT_S)
    controller.fence_broker(1).result(WAIT_S)
    assert leaders(controller, "orders") == [(2, (2,)), (2, (2,))]
    controller.fence_broker(1).result(WAIT_S)
    controller.fence_broker(2).result(WAIT_S)
    assert leaders(controller, "orders") == [(-1, ()), (-1, ())]
    controller.register_broker(1, "a").result(WAIT_S)
    elected = controller.elect_leaders(kframe.ElectionType.UNCLEAN, [("orders", 0)])
    assert elected.result(WAIT_S) == {("orders", 0): NONE}
    assert leaders(controller, "orders") == [(1, (1,)), (-1, ())]
    assert controller.metrics()["kafka_controller_kafkacontroller_offlinepartitionscount"] == 1


def test_reassignments_and_settings(controller: kframe.KraftController) -> None:
    controller.create_topics([kframe.NewTopic("orders", assignments=((0, (1, 2)),))]).result(WAIT_S)
    moved = controller.reassign({("orders", 0): [3, 2], ("orders", 9): [3, 2]})
    assert moved.result(WAIT_S)["orders", 0] is NONE
    assert moved.result()["orders", 9] is kframe.ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    row = controller.inspect(lambda metadata: partition_record(metadata, metadata.row("orders", 0) or 0))
    assert (row.result(WAIT_S).adding_replicas, row.result().removing_replicas) == ((3,), (1,))
    assert controller.reassign({("orders", 0): None}).result(WAIT_S) == {("orders", 0): NONE}
    operations = ((ConfigOperation.SET, "retention.ms", "7"),)
    changes = [ConfigChange("orders", operations), ConfigChange(None, ((ConfigOperation.SET, "unknown.key", "1"),))]
    altered = controller.alter_configs(changes).result(WAIT_S)
    assert altered["orders"] is NONE
    assert controller.inspect(lambda metadata: dict(metadata.configs[2, "orders"])).result(WAIT_S) == {
        "retention.ms": "7"
    }


class LastReplica:
    """Elects the last replica that may lead."""

    name = "last-replica"

    def elect(self, batch: ElectionBatch, leader: Int32) -> None:
        for position in range(len(batch)):
            span = slice(batch.candidates.offsets[position], batch.candidates.offsets[position + 1])
            leader[position] = batch.candidates.values[span][batch.may_lead[span] != 0][-1]


def test_selector_decides() -> None:
    builder = kframe.KraftControllerBuilder(7, "kraft-memory:", selectors={kframe.ElectionKind.OFFLINE: LastReplica()})
    with builder.build() as controller:
        for broker_id in (1, 2, 3):
            controller.register_broker(broker_id).result(WAIT_S)
        controller.create_topics([kframe.NewTopic("orders", assignments=((0, (1, 2, 3)),))]).result(WAIT_S)
        controller.fence_broker(1).result(WAIT_S)
        assert leaders(controller, "orders") == [(3, (2, 3))]


def test_refused_and_stopped(controller: kframe.KraftController) -> None:
    with pytest.raises(RequestRefused, match="BROKER_ID_NOT_REGISTERED"):
        controller.submit(lambda context: registration.unregister_broker(context, 9)).result(WAIT_S)
    controller.stop()
    with pytest.raises(kframe.KframeError, match="the controller has stopped"):
        controller.delete_topics(["orders"]).result(WAIT_S)


@pytest.mark.parametrize(
    ("builder", "error", "problem"),
    [
        (kframe.KraftControllerBuilder(-1, "kraft-memory:"), ConfigError, "node.id"),
        (kframe.KraftControllerBuilder(7, "other:"), PluginError, "other"),
        (kframe.KraftControllerBuilder(7, "kraft-memory:", {"num.partitions": "0"}), ConfigError, "num.partitions"),
        (kframe.KraftControllerBuilder(7, "kraft-memory:", selectors=["other"]), PluginError, "other"),
    ],
)
def test_wrong_parts_are_refused(builder: kframe.KraftControllerBuilder, error: type[Exception], problem: str) -> None:
    with pytest.raises(error, match=problem):
        builder.build()


def test_requests_before_the_start_are_refused() -> None:
    with pytest.raises(StoreError, match="node 7 does not lead"):
        kframe.KraftControllerBuilder(7, "kraft-memory:").build().delete_topics(["orders"])


def test_directory_is_led(tmp_path: Path) -> None:
    """The same requests, beside brokers that come over the listener."""
    keys = {
        "process.roles": "controller",
        "controller.listener.names": "CONTROLLER",
        "listeners": "CONTROLLER://127.0.0.1:0",
        "advertised.listeners": "CONTROLLER://127.0.0.1:9093",
        "controller.quorum.voters": "9@127.0.0.1:9093",
        "log.dirs": str(formatted(tmp_path / "data")),
    }
    with kframe.KraftControllerBuilder(9, "kraft:", keys).build() as controller:
        assert controller.quorum.addresses.keys() == {"CONTROLLER"}
        created = controller.create_topics([kframe.NewTopic("orders", 1, 1)]).result(WAIT_S)
        assert created == {"orders": kframe.ErrorCode.INVALID_REPLICATION_FACTOR}
