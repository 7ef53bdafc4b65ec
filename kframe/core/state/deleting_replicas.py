"""Replicas of topics queued for deletion, counted by state.

The deletion of a topic proceeds by these counts, and every answer of a broker needs them. Replica transitions update
the counts. Any other change of a topic causes a recount.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from kframe.model.cluster import ClusterState
from kframe.model.columns import Int32, UInt8
from kframe.model.ids import ReplicaState

#: Columns of the counts, numbered by state.
_STATES: Final = max(ReplicaState) + 1


class DeletingReplicas:
    """Replica counts of topics queued for deletion."""

    def __init__(self, cluster: ClusterState) -> None:
        self._cluster = cluster
        self._counts = np.zeros((0, _STATES), np.int32)
        self._valid = np.zeros(0, np.bool_)
        """Whether the counts of a topic are valid."""

    @property
    def nbytes(self) -> int:
        """Bytes held."""
        return self._counts.nbytes + self._valid.nbytes

    def recount(self, topics: NDArray[Any]) -> None:
        """Mark these topics. Their next use recounts them."""
        self._valid[topics[topics < len(self._valid)]] = False

    def moved(self, rows: Int32, before: UInt8, after: UInt8) -> None:
        """Replicas of these rows have changed their state."""
        topic = self._cluster.partitions.topic[rows]
        counted = np.flatnonzero(np.append(self._valid, False)[np.minimum(topic, len(self._valid))])
        line, counts = topic[counted].astype(np.int64) * _STATES, self._counts.ravel()
        np.subtract.at(counts, line + before[counted], 1)
        np.add.at(counts, line + after[counted], 1)

    def of(self, topics: Int32) -> Int32:
        """The number of replicas in each state: (topics, states)."""
        more = len(self._cluster.topics) - len(self._valid)
        if more:
            self._valid = np.append(self._valid, np.zeros(more, np.bool_))
            self._counts = np.append(self._counts, np.zeros((more, _STATES), np.int32), axis=0)
        self._count(topics[~self._valid[topics]])
        return self._counts[topics]

    def _count(self, topics: Int32) -> None:
        p, rows = self._cluster.partitions, self._cluster.topics.rows_of_all(topics)
        line = np.repeat(p.topic[rows].astype(np.int64) * _STATES, p.replica_count[rows])
        self._counts[topics], self._valid[topics] = 0, True
        np.add.at(self._counts.ravel(), line + p.replica_state[p.slots_of(rows)], 1)
