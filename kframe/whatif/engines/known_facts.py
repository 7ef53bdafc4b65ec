"""What a snapshot says about its partitions, beside their states."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from msgspec import Struct

from kframe.errors import ParameterError
from kframe.model.arrays import Int32, Ragged
from kframe.model.lists import members
from kframe.snapshot import Snapshot
from kframe.whatif.engines.settings import knows_min_insync
from kframe.whatif.results.health import ClusterHealth


class KnownFacts(Struct, frozen=True, eq=False):
    """Facts that the results of a what-if depend on.

    ``epochs``: whether leader epochs and partition epochs are known. ``min_insync``: whether ``min.insync.replicas`` of
    all topics is. ``observer_rows`` (o,), ascending: the partitions with Confluent's observers, which stay out of the
    ISR; ``observers`` are their ids.
    """

    epochs: tuple[bool, bool]
    min_insync: bool
    observer_rows: Int32
    observers: Ragged

    @staticmethod
    def of(snapshot: Snapshot, config: Mapping[str, object] | None) -> KnownFacts:
        """Those of a snapshot, and of the settings that a user states. Raises SnapshotError if it does not say who
        leads."""
        snapshot.known_leaders()
        partitions = snapshot.partitions
        observers = Ragged.empty(len(snapshot)) if partitions.observers is None else partitions.observers
        rows = np.flatnonzero(observers.counts).astype(np.int32)
        return KnownFacts(
            (partitions.leader_epoch is not None, partitions.partition_epoch is not None),
            knows_min_insync(snapshot.topics, config),
            rows,
            observers.take(rows),
        )

    def without_observers(self, health: ClusterHealth, cluster: Any) -> ClusterHealth:
        """The health in which a partition is not under-replicated if it lacks observers only."""
        rows = self.observer_rows
        if not len(rows):
            return health
        ids = cluster.brokers.ids
        replicas, isr = (cluster.partitions.lists(name, rows) for name in ("replica", "isr"))
        replicas, isr = Ragged(replicas.offsets, ids[replicas.values]), Ragged(isr.offsets, ids[isr.values])
        lacks_full = replicas.any(~members(replicas, isr) & ~members(replicas, self.observers))
        under_replicated = health.under_replicated.copy()
        under_replicated[rows] &= lacks_full
        return replace(health, under_replicated=under_replicated)


def known_row(cluster: Any, topic: str, partition: int) -> int:
    """The row of a partition in a cluster of any mode. Raises InputError for an unknown one."""
    row: int | None = cluster.row(topic, partition)
    if row is None:
        raise ParameterError("partitions", f"{topic}-{partition}", "a partition of the snapshot")
    return row
