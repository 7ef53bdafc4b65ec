"""Confluent's observers in health: replicas that stay out of the ISR."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from kframe.model.arrays import Int32, Ragged
from kframe.model.lists import members

if TYPE_CHECKING:
    from kframe.snapshot import Snapshot
    from kframe.whatif.results.health import ClusterHealth


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
