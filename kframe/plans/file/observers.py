"""Confluent's observers in plans: replicas that stay out of the ISR, the last of a partition's replicas."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from kframe.errors import SnapshotError
from kframe.model.arrays import Int32

if TYPE_CHECKING:
    from kframe.model.plan import Plan
    from kframe.snapshot import Snapshot


def observer_growth(plan: Plan, snapshot: Snapshot, rows: Int32) -> Int32:
    """(k,) by how much a plan for these rows of a snapshot changes the number of each partition's observers."""
    planned, current = plan.observers, snapshot.partitions.observers
    counts = np.zeros(len(plan), np.int32) if planned is None else planned.counts
    before = 0 if current is None else np.append(current.counts, 0)[rows]
    growth: Int32 = (counts - before).astype(np.int32)
    return growth


def refuse_observers(plan: Plan) -> None:
    """Raise SnapshotError for a plan with observers: the requests of Kafka's clients have none.

    Executed without them, the observers would become full replicas.
    """
    if plan.observers is not None:
        position = int(np.argmax(plan.observers.counts > 0))
        raise SnapshotError(
            f"{plan.name} partitions[{position}]",
            f"observers of partition {plan.partition_name(position)}",
            "a plan without observers: execute this one with Confluent's kafka-reassign-partitions",
        )
