"""Replicas of topics queued for deletion, counted by state.

The deletion of a topic proceeds by these counts, and every response of a broker needs them. Replica transitions update
the counts. Any other change of a topic causes a recount.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from kframe import kernels
from kframe.model.arrays import Bool, Int8, Int32, Int64, UInt8
from kframe.model.cluster import ClusterState
from kframe.model.ids import ReplicaState
from kframe.model.row_views import block_of

#: Number of counts of a topic, numbered by state.
_STATES: Final = max(ReplicaState) + 1
#: A bit for each state.
_ANY_STATE: Final = (1 << _STATES) - 1


@dataclass(frozen=True, slots=True, eq=False)
class ReplicaCounts:
    """Views of the counts of replicas, by topic: they show later changes, and are valid until a topic is added."""

    by_state: Int32
    """(states, t)"""
    sizes: Int32
    """(t,) in any state"""


class DeletingReplicas:
    """Replica counts of topics queued for deletion."""

    def __init__(self, cluster: ClusterState) -> None:
        self._cluster = cluster
        self._counts = np.zeros((_STATES, 0), np.int32)
        self._sizes = np.zeros(0, np.int32)
        """The replicas of each topic, in any state."""
        self._is_counted: UInt8 = np.zeros(0, np.uint8)
        """1 for topics whose counts are valid."""
        self._totals = np.zeros(_STATES, np.int64)
        """The replicas of all these topics in each state."""

    @property
    def nbytes(self) -> int:
        """Bytes of the counts."""
        return self._counts.nbytes + self._sizes.nbytes + self._is_counted.nbytes

    def recount(self, topics: NDArray[Any]) -> None:
        """Mark these topics. Their next use recounts them."""
        before = self._is_counted.copy()
        self._is_counted[topics[topics < len(before)]] = 0
        self._totals -= self._counts[:, before != self._is_counted].sum(axis=1)

    def set_states(self, rows: Int32, slots: Int32, target: ReplicaState) -> None:
        """Set the state of the replica of ``rows[i]`` in ``slots[i]``. A row may occur several times."""
        block = block_of(slots)
        if isinstance(block, slice) and not self._is_counted.any():
            self._cluster.partitions.set_replica_states(block, target)
        else:
            self.change_states(rows, slots, _ANY_STATE, target)

    def change_states(self, rows: Int32, slots: Int32, sources: int, target: ReplicaState) -> Bool:
        """``set_states`` for the replicas in one of ``sources`` (a bit for each state). Return a mask (k,) of them."""
        p, counted, legal = self._cluster.partitions, self._is_counted, np.empty(len(rows), np.uint8)
        is_counted = counted if counted.any() else counted[:0]
        counts = self._counts.reshape(-1)
        kernels.set_replica_states(
            rows, slots, sources, target, p.topic, is_counted, p.replica_status, counts, self._totals, legal
        )
        return legal.view(np.bool_)

    def change_states_on(self, broker: int, rows: Int32, sources: int, target: ReplicaState) -> Int8:
        """``change_states`` for the replicas of ``rows`` on one broker (index). Return 1 where legal, -1 where not, and
        0 where the row has no replica there (k,)."""
        p, legal = self._cluster.partitions, np.empty(len(rows), np.int8)
        kernels.set_replica_states_on(
            rows,
            broker,
            sources,
            target,
            p.topic,
            p.slot_start,
            p.replica_count,
            p.replica,
            self._is_counted,
            p.replica_status,
            self._counts.reshape(-1),
            self._totals,
            legal,
        )
        return legal

    def totals(self) -> Int64:
        """(states,) the replicas of all topics that are queued for deletion."""
        self._count()
        return self._totals

    def counts(self) -> ReplicaCounts:
        """The replicas of each topic that is queued for deletion. Those of other topics mean nothing."""
        self._count()
        return ReplicaCounts(self._counts, self._sizes)

    def _count(self) -> None:
        """Count the topics queued for deletion whose counts are not valid."""
        added = len(self._cluster.topics) - len(self._is_counted)
        if added:
            self._is_counted = np.append(self._is_counted, np.zeros(added, np.uint8))
            self._sizes = np.append(self._sizes, np.zeros(added, np.int32))
            self._counts = np.append(self._counts, np.zeros((_STATES, added), np.int32), axis=1)
        is_missing = self._cluster.topics.deleting > self._is_counted
        if not is_missing.any():
            return
        topics = np.flatnonzero(is_missing).astype(np.int32)
        p, rows = self._cluster.partitions, self._cluster.topics.rows_of_all(topics)
        self._counts[:, topics], self._is_counted[topics] = 0, 1
        kernels.count_replica_states(
            rows,
            p.topic,
            p.slot_start,
            p.replica_count,
            p.replica_status,
            len(self._is_counted),
            self._counts.reshape(-1),
        )
        self._sizes[topics] = self._counts[:, topics].sum(axis=0)
        self._totals += self._counts[:, topics].sum(axis=1)
