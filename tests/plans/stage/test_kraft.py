"""Stages of plans for KRaft clusters: fenced brokers, cordoned directories and feature levels."""

from __future__ import annotations

from typing import Any, Final

import pytest

from kframe.core.kraft.replay import replay
from kframe.model.kraft.records import BrokerRegistrationChangeRecord, PartitionRecord
from kframe.model.plan import Plan
from kframe.plans.check.resolve import resolve_plan
from kframe.plans.stage.manifest import StageFailure, StageManifest
from kframe.plans.stage.request import StageRequest
from kframe.plans.stage.stages import stage_plan
from kframe.snapshot import Snapshot, Source
from tests.whatif.kraft_samples import directory, metadata_with, partition


def manifest(
    partitions: tuple[PartitionRecord, ...], targets: dict[int, tuple[int, ...]], **options: Any
) -> StageManifest:
    """A plan for a cluster whose broker 4 is fenced, all directories of broker 6 cordoned, and one of broker 7."""
    metadata = metadata_with(partitions, brokers=7, fenced=[4], **options)
    for broker_id, cordoned in ((6, (directory(6), directory(6, 1))), (7, (directory(7),))):
        record = BrokerRegistrationChangeRecord(
            broker_id=broker_id, broker_epoch=broker_id + 10, cordoned_log_dirs=cordoned
        )
        replay(metadata, record, 99)
    snapshot = Snapshot.from_metadata(metadata, source=Source("kraft", "sample"))
    plan = Plan.of([(("t", number), replicas) for number, replicas in targets.items()])
    return stage_plan(resolve_plan(plan, snapshot), StageRequest(moves_per_broker=1)).manifest


#: The replicas of t-0 (in sync, 3 on a broker of its own), its target, and why it has no stage; None if it has one.
TARGETS: Final = [
    pytest.param((1, 7), None, id="a partly cordoned broker receives"),
    pytest.param((1, 6), "invalid", id="a cordoned broker receives nothing"),
    pytest.param((1, 9), "invalid", id="an unknown broker receives nothing"),
    pytest.param((1, 4), None, id="a fenced broker may receive"),
]


@pytest.mark.parametrize(("target", "reason"), TARGETS)
def test_refused_reassignment_has_no_stage(target: tuple[int, ...], reason: str | None) -> None:
    partitions = partition(0, (1, 2), (1, 2)), partition(1, (2, 3), (2, 3))
    result = manifest(partitions, {0: target, 1: (3, 1)}, min_isr=1)
    assert [(row.partition, row.reason) for row in result.unstaged] == ([] if reason is None else [(0, reason)])
    staged = sorted(row.partition for stage in result.stages for row in stage.reassignments)
    assert staged == ([0, 1] if reason is None else [1])


def test_leaderless_or_reassigning_partition_has_no_stage() -> None:
    partitions = (
        partition(0, (4, 1), (), leader=-1, eligible_leader_replicas=(4,)),
        partition(1, (1, 2, 3), (1, 2), adding_replicas=(3,)),
    )
    result = manifest(partitions, {0: (2, 3), 1: (2, 3)})
    assert [(row.partition, row.reason) for row in result.unstaged] == [(0, "no-leader"), (1, "reassigning")]
    assert result.stages == []


#: A partition with replicas, its target, min.insync.replicas, whether ELR is on; failures of brokers that harm it more.
HARM: Final = [
    # In every failure the other replica leads, and one replica is enough.
    pytest.param((1, 2), (1, 3), 1, False, [], id="one replica is enough"),
    # Broker 3 receives the replica, so that its failure after the stage leaves one of two.
    pytest.param((1, 2), (1, 3), 2, True, [StageFailure(3, "after", 0, 1, 0)], id="under min ISR"),
    # The fenced broker never joins the ISR. Kafka completes no earlier, so it counts as in sync afterwards.
    pytest.param((1, 2), (3,), 1, False, [StageFailure(3, "after", 1, 1, 0)], id="the only replica"),
]


@pytest.mark.parametrize(("replicas", "target", "min_isr", "elr", "failures"), HARM)
def test_stage_lists_harmful_broker_failures(
    replicas: tuple[int, ...], target: tuple[int, ...], min_isr: int, elr: bool, failures: list[StageFailure]
) -> None:
    result = manifest((partition(0, replicas, replicas),), {0: target}, min_isr=min_isr, elr=elr)
    assert [failure for stage in result.stages for failure in stage.failures] == failures
