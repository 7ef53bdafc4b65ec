"""The replicas of topics that are queued for deletion, counted by state.

A topic goes on with its deletion by how many of its replicas are in which state, and every answer of every broker asks
that of all of them. Replicas that move change the counts; what changes a topic in another way has it counted anew.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from kframe.model.cluster import ClusterState
from kframe.model.columns import Int32, UInt8
from kframe.model.ids import ReplicaState

#: Columns of the counts, which are numbered by state.
_STATES: Final = max(ReplicaState) + 1


class DeletingReplicas:
    """Replica counts of queued topics; of others it knows nothing."""

    def __init__(self, cluster: ClusterState) -> None:
        self._cluster = cluster
        self._counts = np.zeros((0, _STATES), np.int32)
        self._right = np.zeros(0, np.bool_)
        """Whether the counts of a topic are right, if it is queued."""

    @property
    def nbytes(self) -> int:
        """Bytes held."""
        return self._counts.nbytes + self._right.nbytes

    def recount(self, topics: NDArray[Any]) -> None:
        """Count these topics anew when they are next asked for."""
        self._right[topics[topics < len(self._right)]] = False

    def moved(self, rows: Int32, before: UInt8, after: UInt8) -> None:
        """Replicas of these rows have left one state for another."""
        topic = self._cluster.partitions.topic[rows]
        counted = np.flatnonzero(np.append(self._right, False)[np.minimum(topic, len(self._right))])
        line, counts = topic[counted].astype(np.int64) * _STATES, self._counts.ravel()
        np.subtract.at(counts, line + before[counted], 1)
        np.add.at(counts, line + after[counted], 1)

    def of(self, topics: Int32) -> Int32:
        """How many replicas these queued topics have in each state: (topics, states)."""
        more = len(self._cluster.topics) - len(self._right)
        if more:
            self._right = np.append(self._right, np.zeros(more, np.bool_))
            self._counts = np.append(self._counts, np.zeros((more, _STATES), np.int32), axis=0)
        self._count(topics[~self._right[topics]])
        return self._counts[topics]

    def _count(self, topics: Int32) -> None:
        p, rows = self._cluster.partitions, self._cluster.topics.rows_of_all(topics)
        line = np.repeat(p.topic[rows].astype(np.int64) * _STATES, p.replica_count[rows])
        self._counts[topics], self._right[topics] = 0, True
        np.add.at(self._counts.ravel(), line + p.replica_state[p.slots_of(rows)], 1)
