"""Templates of new plugins with cost terms and goals of plans."""

from __future__ import annotations

from typing import Final

COST_TERM_MODULE: Final = '''\
"""A cost term of plans: document here which placements cost more, and why."""

from __future__ import annotations

import numpy as np

from kframe.plugin import CostTermSpec, Int64, PlacementBatch, Tier, hookimpl


def costs(batch: PlacementBatch) -> Int64:
    """The cost of a replica of each partition on each broker, without copying it: 1 outside of its present racks."""
    new_rack = np.ones((len(batch), len(batch.broker_ids)), np.bool_)
    for rack in np.unique(batch.broker_rack).tolist():
        here = batch.broker_rack == rack
        has = batch.replicas.any(here[batch.replicas.values])
        new_rack[np.ix_(has, here)] = False
    return new_rack.astype(np.int64)


@hookimpl
def kframe_cost_terms() -> list[CostTermSpec]:
    """Offer the cost term."""
    return [
        CostTermSpec(
            name="$name",
            tier=Tier.BULK,
            factory=lambda: costs,
            doc="A copy to a rack without a replica of the partition costs 1 more.",
        )
    ]
'''

GOAL_MODULE: Final = '''\
"""A goal of plans: document here what it balances, and why."""

from __future__ import annotations

import numpy as np

from kframe.plugin import GoalSpec, GoalTotals, Int64, PlacementBatch, Tier, hookimpl


def weights(batch: PlacementBatch) -> Int64:
    """The weight of a replica of each partition: its followers, which read from the leader."""
    return np.maximum(batch.replicas.counts - 1, 0).astype(np.int64)


def limits(totals: GoalTotals) -> tuple[Int64, Int64]:
    """The least and greatest weight of each broker: its share by capacity, and a tenth more or less."""
    share = totals.total * totals.capacity / max(float(totals.capacity.sum()), 1.0)
    return np.floor(0.9 * share).astype(np.int64), np.ceil(1.1 * share).astype(np.int64)


@hookimpl
def kframe_goals() -> list[GoalSpec]:
    """Offer the goal."""
    return [
        GoalSpec(
            name="$name",
            tier=Tier.BULK,
            factory=lambda: weights,
            doc="Balances the followers of the partitions on each broker.",
            limits=limits,
            unit="followers",
        )
    ]
'''

COST_TERM_TEST: Final = '''\
"""The rules of every cost term, and those of $name."""

from __future__ import annotations

from kframe.testing.placement_contract import CostTermContract, random_placement
from $module import costs, kframe_cost_terms


class Test$classname(CostTermContract):
    """The rules of every cost term."""

    spec = kframe_cost_terms()[0]


def test_brokers_of_the_partition_cost_nothing() -> None:
    batch = random_placement(1)
    rows = batch.replicas.owners
    assert not costs(batch)[rows, batch.replicas.values].any()
'''

GOAL_TEST: Final = '''\
"""The rules of every goal, and those of $name."""

from __future__ import annotations

from kframe.testing.placement_contract import GoalContract, random_placement
from $module import kframe_goals, weights


class Test$classname(GoalContract):
    """The rules of every goal."""

    spec = kframe_goals()[0]


def test_a_single_replica_weighs_nothing() -> None:
    batch = random_placement(1)
    assert ((weights(batch) == 0) == (batch.replicas.counts == 1)).all()
'''
