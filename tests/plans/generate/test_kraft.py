"""Plans for KRaft clusters: which brokers receive replicas, and that the controller accepts every reassignment."""

from __future__ import annotations

from typing import Any, Final

import pytest

from kframe.model.kraft.records import PartitionRecord
from kframe.plans.check.report import PlanReport
from kframe.plans.check.resolve import resolve_plan
from kframe.plans.generate import plan
from kframe.snapshot import Snapshot
from kframe.whatif import WhatIf
from tests.plans.generate.clusters import lists_of
from tests.whatif.kraft_samples import metadata_with, partition, with_broker_states

RACKS: Final = {broker_id: f"r{broker_id % 2}" for broker_id in range(1, 8)}
#: Partitions of topic t: on two racks, on one, being reassigned, and on a fenced broker.
PARTITIONS: Final = (
    *(partition(number, (1, 2), (1, 2)) for number in range(5)),
    partition(5, (1, 3), (1, 3)),
    partition(6, (1, 2, 3), (1, 2), adding_replicas=(3,)),
    partition(7, (1, 4), (1,)),
)


def cluster(partitions: tuple[PartitionRecord, ...] = PARTITIONS, **changes: Any) -> Snapshot:
    """Broker 4 is fenced, 5 in controlled shutdown. All directories of 6 are cordoned, and one of 7."""
    return with_broker_states(metadata_with(partitions, brokers=7, fenced=[4], racks=RACKS, **changes))


GOALS: Final[dict[str, dict[str, Any]]] = {
    "rebalance": {"rebalance": True},
    "remove": {"remove_brokers": (2,)},
    "remove and rebalance": {"remove_brokers": (1,), "rebalance": True},
    "replace": {"replace": {1: 7}},
    "replicas": {"replication_factors": {"t": 3}},
    "racks": {"fix_racks": True},
    "one rack": {"one_rack": ("t",)},
    "evacuate": {"evacuate_racks": ("r0",)},
}


@pytest.mark.parametrize("levels", [{"elr": True}, {"elr": False}, {"level": 7, "elr": False}], ids=str)
@pytest.mark.parametrize("goal", GOALS)
def test_only_active_brokers_with_uncordoned_directory_receive_replicas(goal: str, levels: dict[str, Any]) -> None:
    snapshot = cluster(**levels)
    proposal = plan(snapshot, **GOALS[goal])
    before = [snapshot.partitions.replicas[row].tolist() for row in range(len(snapshot))]
    after = lists_of(proposal)
    received = {broker for row, replicas in enumerate(after) for broker in replicas if broker not in before[row]}
    assert received <= {1, 2, 3, 7}
    assert received
    assert after[6] == before[6], "a reassignment is in progress"
    assert PlanReport.of(proposal.plan, resolve_plan(proposal.plan, snapshot)).valid
    result = WhatIf(snapshot).reassign(proposal.plan).reassignment
    assert result is not None
    assert not result.refused.any()
    stays_on_fenced = result.targets.replicas.any(result.targets.replicas.values == 4)
    assert (result.completed | stays_on_fenced).all()


def test_cordoned_broker_keeps_its_replicas() -> None:
    snapshot = cluster((*(partition(number, (6, 1), (6, 1)) for number in range(4)), partition(4, (2, 1), (2, 1))))
    proposal = plan(snapshot, replication_factors={"t": 3})
    assert all(6 in replicas for replicas in lists_of(proposal)[:4])
    assert 6 not in lists_of(proposal)[4]


def test_too_few_receiving_brokers_leave_partition_unchanged() -> None:
    proposal = plan(cluster(), replication_factors={"t": 5})
    assert proposal.unassignable
    assert {broker for replicas in lists_of(proposal)[:6] for broker in replicas} <= {1, 2, 3, 7}
