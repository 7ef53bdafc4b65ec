"""Confluent's observers in plans: replicas that stay out of the ISR, the last of a partition's replicas."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from kframe.errors import SnapshotError
from kframe.model.columns import Int32, Ragged
from kframe.model.lists import members

if TYPE_CHECKING:
    from kframe.snapshot import Snapshot
    from kframe.whatif.health import ClusterHealth
    from kframe.whatif.plan import Plan

#: What Confluent's tool requires of observers.
OBSERVERS_LAST: Final = "observers at the end of replicas, after at least one other replica"


def observer_growth(plan: Plan, snapshot: Snapshot, rows: Int32) -> Int32:
    """(k,) by how much a plan for these rows of a snapshot changes the number of each partition's observers."""
    planned, current = plan.observers, snapshot.partitions.observers
    counts = np.zeros(len(plan), np.int32) if planned is None else planned.counts
    before = 0 if current is None else np.append(current.counts, 0)[rows]
    growth: Int32 = (counts - before).astype(np.int32)
    return growth


@dataclass(frozen=True, slots=True, eq=False)
class ObserverRows:
    """The rows of a snapshot that have observers, ascending, and the ids of these."""

    rows: Int32
    observers: Ragged

    @staticmethod
    def of(snapshot: Snapshot) -> ObserverRows:
        """Those of a snapshot."""
        observers = snapshot.partitions.observers
        if observers is None:
            return ObserverRows(np.empty(0, np.int32), Ragged.empty(0))
        rows = np.flatnonzero(observers.counts).astype(np.int32)
        return ObserverRows(rows, observers.take(rows))

    def exclude(self, health: ClusterHealth, cluster: Any) -> ClusterHealth:
        """The health in which a partition is not under-replicated if it lacks observers only."""
        if not len(self.rows):
            return health
        ids = cluster.brokers.ids
        replicas, isr = (cluster.partitions.lists(name, self.rows) for name in ("replica", "isr"))
        replicas, isr = Ragged(replicas.offsets, ids[replicas.values]), Ragged(isr.offsets, ids[isr.values])
        lacks_full = replicas.any(~members(replicas, isr) & ~members(replicas, self.observers))
        under_replicated = health.under_replicated.copy()
        under_replicated[self.rows] &= lacks_full
        return replace(health, under_replicated=under_replicated)


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
