"""Plans executed through an admin API of an embedded controller; snapshot stamps and rollback plans."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path

import numpy as np
import pytest

from kframe.api.builder import ControllerBuilder
from kframe.embedded import CountingTransport, MemoryEnsemble, VirtualClock
from kframe.errors import ErrorCode, SnapshotError
from kframe.model.events import ElectionType, TopicPartition
from kframe.model.plan import Plan
from kframe.model.tables import Targets
from kframe.plans.check.resolve import resolve_plan
from kframe.plans.execute.batches import (
    PlanExecution,
    cancel,
    reassignments_to_cancel,
    rollback_document,
    unassigned_partitions,
)
from kframe.plans.file.read import Stamp, load_plan
from kframe.plans.file.write import plan_document, read_stamp
from kframe.snapshot import Snapshot
from kframe.snapshot.administration import Administration, ConfigResource, LogDirReplica, PartitionReassignment
from kframe.snapshot.metadata import ClusterDescription, DescribedPartition, snapshot_of
from kframe.testing.clusters import cluster_of, healthy

NONE = ErrorCode.NONE


class EmbeddedAdmin:
    """An admin client of a controller in this process. New replicas catch up on request."""

    def __init__(self) -> None:
        self.ensemble = MemoryEnsemble.from_cluster(
            cluster_of({"t": [healthy(1, 2), healthy(2, 3), healthy(3, 1)], "u": [healthy(1)]}, (1, 2, 3, 4))
        )
        self.controller = ControllerBuilder(
            1000, self.ensemble.connect(), CountingTransport(), {"auto.leader.rebalance.enable": "false"},
            clock=VirtualClock(),
        ).build()  # fmt: skip
        self.controller.open()
        self.controller.run_until_idle()
        self.configs: dict[ConfigResource, dict[str, str]] = {}

    def capture(self) -> Snapshot:
        return snapshot_of(self._description())

    def describe(self) -> ClusterDescription:
        self.catch_up(*self.reassignments())
        return self._description()

    def read_configs(self, resources: Mapping[ConfigResource, Sequence[str]]) -> dict[ConfigResource, dict[str, str]]:
        return {
            resource: {name: value for name, value in self.configs.get(resource, {}).items() if name in names}
            for resource, names in resources.items()
        }

    def change_configs(
        self, changes: Mapping[ConfigResource, Mapping[str, str | None]]
    ) -> dict[ConfigResource, ErrorCode]:
        for resource, values in changes.items():
            merged: dict[str, str | None] = {**self.configs.get(resource, {}), **values}
            self.configs[resource] = {name: value for name, value in merged.items() if value is not None}
        return dict.fromkeys(changes, NONE)

    def replica_logs(self, broker_ids: Collection[int]) -> dict[int, dict[TopicPartition, LogDirReplica]]:
        stored = list(self.ensemble.stored())
        return {
            broker_id: {
                (each.topic, each.partition): LogDirReplica(1000, "/data") for each in stored if broker_id in each.isr
            }
            for broker_id in broker_ids
        }

    def _description(self) -> ClusterDescription:
        brokers = {broker_id: ("h", 9000 + broker_id, None) for broker_id in (1, 2, 3, 4)}
        described = [
            DescribedPartition(
                partition.topic,
                partition.partition,
                -1 if partition.leader is None else partition.leader,
                partition.leader_epoch,
                partition.replicas,
                partition.isr,
            )
            for partition in self.ensemble.stored()
        ]
        return ClusterDescription("here", "c1", 1, brokers, described, self.reassignments())

    def reassign(self, targets: Targets) -> tuple[ErrorCode, ...]:
        future = self.controller.reassign(targets)
        self.controller.run_until_idle()
        return tuple(ErrorCode(int(code)) for code in future.result(timeout=0).codes)

    def reassignments(self) -> dict[TopicPartition, PartitionReassignment]:
        stored = (
            partition
            for partition in self.ensemble.stored()
            if partition.adding_replicas or partition.removing_replicas
        )
        return {
            (partition.topic, partition.partition): PartitionReassignment(
                partition.replicas, partition.adding_replicas, partition.removing_replicas
            )
            for partition in stored
        }

    def elect(
        self, election: ElectionType, partitions: Sequence[TopicPartition] | None
    ) -> Mapping[TopicPartition, ErrorCode]:
        future = self.controller.elect_leaders(election, partitions)
        self.controller.run_until_idle()
        return future.result(timeout=0).by_partition()

    def close(self) -> None:
        self.controller.stop()

    def catch_up(self, *partitions: TopicPartition) -> None:
        """Report all replicas of these partitions as in sync."""
        for topic, partition in partitions:
            self.ensemble.write_state(topic, partition, isr=self.ensemble.stored()[topic, partition].replicas)
        self.ensemble.notify_isr_changes(partitions)
        self.controller.run_until_idle()

    def replicas(self, topic: str, partition: int) -> tuple[int, ...]:
        return self.ensemble.stored()[topic, partition].replicas


@pytest.fixture
def admin() -> EmbeddedAdmin:
    return EmbeddedAdmin()


PLAN = Plan.of([(("t", 0), (3, 4)), (("u", 0), (2,)), (("t", 2), (3, 4))])


def test_embedded_admin_implements_administration(admin: EmbeddedAdmin) -> None:
    administration: Administration = admin
    assert len(administration.capture()) == 4


def test_next_batch_starts_after_previous_completes(admin: EmbeddedAdmin) -> None:
    """The next batch starts when all reassignments of the previous one have completed."""
    execution = PlanExecution(admin, PLAN, batch_size=2)
    assert execution.begin()
    assert execution.refresh()
    assert (execution.done, execution.total, execution.moving) == (0, 3, frozenset({("t", 0), ("u", 0)}))
    admin.catch_up(("u", 0))
    assert execution.refresh()
    assert (execution.done, execution.moving) == (1, frozenset({("t", 0)}))
    admin.catch_up(("t", 0))
    assert not execution.refresh()
    assert execution.begin()
    assert execution.moving == {("t", 2)}
    admin.catch_up(("t", 2))
    assert not execution.refresh()
    assert not execution.begin()
    assert (execution.done, execution.refused) == (3, {})
    assert [admin.replicas("t", 0), admin.replicas("u", 0), admin.replicas("t", 2)] == [(3, 4), (2,), (3, 4)]
    assert list(unassigned_partitions(PLAN, resolve_plan(PLAN, admin.capture()))) == []


def test_refused_partitions_do_not_block_others(admin: EmbeddedAdmin) -> None:
    plan = Plan.of([(("t", 0), (9,)), (("nowhere", 0), (1,)), (("t", 1), (2, 3))])
    execution = PlanExecution(admin, plan)
    assert execution.begin()
    assert not execution.refresh()
    assert execution.refused == {
        ("t", 0): ErrorCode.INVALID_REPLICA_ASSIGNMENT, ("nowhere", 0): ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    }  # fmt: skip
    assert execution.done == 3
    assert list(unassigned_partitions(plan, resolve_plan(plan, admin.capture()))) == [("t", 0), ("nowhere", 0)]


def test_ongoing_reassignments_can_be_cancelled(admin: EmbeddedAdmin) -> None:
    """Reassignments of other plans are not cancelled, unless all are requested."""
    PlanExecution(admin, PLAN).begin()
    admin.reassign(Targets.of([(("t", 1), (1, 4))]))
    assert reassignments_to_cancel(admin.reassignments(), PLAN) == [("t", 0), ("t", 2), ("u", 0)]
    assert reassignments_to_cancel(admin.reassignments(), None) == [("t", 0), ("t", 1), ("t", 2), ("u", 0)]
    named = reassignments_to_cancel(admin.reassignments(), PLAN)
    assert cancel(admin, named) == dict.fromkeys(named, NONE)
    assert list(admin.reassignments()) == [("t", 1)]
    assert [admin.replicas("t", 0), admin.replicas("u", 0), admin.replicas("t", 2)] == [(1, 2), (1,), (3, 1)]


def test_rollback_plan_restores_original_assignment(admin: EmbeddedAdmin, tmp_path: Path) -> None:
    """Also during another reassignment: an adding replica is not part of the original assignment."""
    admin.reassign(Targets.of([(("t", 1), (1, 4))]))
    plan = Plan.of([(("t", 0), (3, 4)), (("t", 1), (4, 3)), (("nowhere", 0), (1,))])
    path = tmp_path / "back.json"
    path.write_text(rollback_document(resolve_plan(plan, admin.capture())))
    back = load_plan(path)
    assert json.loads(path.read_text()) == {
        "version": 1,
        "partitions": [
            {"topic": "t", "partition": 0, "replicas": [1, 2]}, {"topic": "t", "partition": 1, "replicas": [2, 3]}
        ],
    }  # fmt: skip
    PlanExecution(admin, plan).begin()
    admin.catch_up(("t", 0))
    PlanExecution(admin, back).begin()
    admin.catch_up(("t", 0), ("t", 1))
    assert [admin.replicas("t", 0), admin.replicas("t", 1)] == [(1, 2), (2, 3)]


# -- stamps


@pytest.mark.parametrize(
    ("other", "reason"),
    [
        (Stamp("c1", 7, "a"), None),
        (Stamp(None, None, "a"), None),
        (Stamp("c2", 7, "a"), "made for cluster c1, this is c2"),
        (Stamp("c1", 8, "a"), "under controller epoch 7, now it is 8"),
        (Stamp("c1", 7, "b"), "assigned anew since"),
        (Stamp(None, None, "b"), "assigned anew since"),
    ],
)
def test_stale_stamp_names_reason(other: Stamp, reason: str | None) -> None:
    """A value that one side does not know is not compared."""
    reason_ = Stamp("c1", 7, "a").stale(other)
    assert reason_ is None if reason is None else reason in str(reason_)


def test_stamp_covers_only_partitions_of_plan(admin: EmbeddedAdmin) -> None:
    """In any order of partitions. Other partitions and incomplete reassignments do not change the stamp."""
    before = resolve_plan(PLAN, admin.capture()).stamp()
    assert before.cluster_id == "c1"
    reordered = Plan("turned", PLAN.targets.take(np.array([2, 1, 0])), np.zeros(3, np.bool_))
    assert resolve_plan(reordered, admin.capture()).stamp() == before
    admin.reassign(Targets.of([(("t", 1), (1, 4))]))
    admin.catch_up(("t", 1))
    admin.reassign(Targets.of([(("t", 0), (1, 2, 3))]))
    assert resolve_plan(PLAN, admin.capture()).stamp() == before
    admin.catch_up(("t", 0))
    assert resolve_plan(PLAN, admin.capture()).stamp().assignments != before.assignments


def test_stamped_plan_is_readable(tmp_path: Path) -> None:
    path = tmp_path / "plan.json"
    path.write_text(plan_document(PLAN, Stamp("c1", None, "a")))
    assert read_stamp(path) == Stamp("c1", None, "a")
    plan = load_plan(path)
    assert [plan.partition_name(position) for position in range(3)] == ["t-0", "u-0", "t-2"]
    path.write_text(plan_document(PLAN))
    assert read_stamp(path) is None


@pytest.mark.parametrize("text", ['{"kframe": 1}', '{"kframe": {"cluster_id": 1}}', '{"kframe": {}}', "{"])
def test_malformed_stamp_is_refused(tmp_path: Path, text: str) -> None:
    path = tmp_path / "plan.json"
    path.write_text(text)
    with pytest.raises(SnapshotError):
        read_stamp(path)
