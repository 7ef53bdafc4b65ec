"""Confluent's observers in plans: replicas that stay out of the ISR, the last of a partition's replicas."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from kframe.errors import SnapshotError
from kframe.model.columns import Int32

if TYPE_CHECKING:
    from kframe.whatif.plan import Plan
    from kframe.whatif.plan_check import CheckedPlan

#: What Confluent's tool requires of observers.
OBSERVERS_LAST: Final = "observers at the end of replicas, after at least one other replica"


def observer_growth(checked: CheckedPlan) -> Int32:
    """(k,) by how much the plan changes the number of each partition's observers."""
    planned, current = checked.plan.observers, checked.snapshot.partitions.observers
    counts = np.zeros(len(checked.plan), np.int32) if planned is None else planned.counts
    before = 0 if current is None else np.append(current.counts, 0)[checked.rows]
    growth: Int32 = (counts - before).astype(np.int32)
    return growth


def refuse_observers(plan: Plan) -> None:
    """Raise SnapshotError for a plan with observers: the requests of Kafka's clients have none.

    Executed without them, the observers would become full replicas.
    """
    if plan.observers is not None:
        position = int(np.argmax(plan.observers.counts > 0))
        raise SnapshotError(
            f"{plan.name} partitions[{position}]", f"observers of partition {plan.partition_name(position)}",
            "a plan without observers: execute this one with Confluent's kafka-reassign-partitions",
        )  # fmt: skip
