"""An index of the rows of each broker. A broker failure visits only the rows that the broker has."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from kframe import kernels
from kframe.model.arrays import Int32, UInt8
from kframe.model.cluster import ClusterState
from kframe.model.lists import distinct_values

#: The index is rebuilt once more than one row in this many has been added.
ADDED_SHARE = 8
#: Added arrays before they are merged.
ADDED_MAX = 64


class ReplicaIndex:
    """The rows of each broker when the index was built, and the rows assigned since.

    It may have too many rows, never too few; the caller checks whether a row has left the broker. Rows are stored as
    differences (``build_replica_index``): one byte per replica instead of four.
    """

    def __init__(self, cluster: ClusterState) -> None:
        self._cluster = cluster
        self._steps: list[UInt8] = []
        self._indexed = 0
        self._reassigned: list[NDArray[Any]] = []

    @property
    def nbytes(self) -> int:
        """Bytes held by the index."""
        return sum(steps.nbytes for steps in self._steps)

    def add(self, rows: NDArray[Any]) -> None:
        """These rows have other replicas. New rows need no call."""
        self._reassigned.append(rows)
        if len(self._reassigned) > ADDED_MAX:
            self._reassigned = [distinct_values(np.concatenate(self._reassigned))]

    def rows_on(self, chosen: UInt8) -> Int32:
        """Rows, each once and ascending, that include all rows of the ``chosen`` brokers (1 by index)."""
        if np.count_nonzero(chosen) * 2 > len(chosen):
            return np.arange(len(self._cluster), dtype=np.int32)
        self.catch_up()
        added = np.arange(self._indexed, len(self._cluster), dtype=np.int32)
        brokers = np.flatnonzero(chosen[: len(self._steps)])
        indexed = [self._read(broker) for broker in brokers.tolist()]
        parts = [part for part in (*indexed, *self._reassigned, added) if len(part)]
        if len(parts) == 1 and not self._reassigned:
            return parts[0]
        return distinct_values(np.concatenate([added, *parts])).astype(np.int32)

    def catch_up(self) -> None:
        """Rebuild the index if many rows were added. Called when no broker waits."""
        added_count = len(self._cluster) - self._indexed + sum(map(len, self._reassigned))
        if added_count * ADDED_SHARE > len(self._cluster):
            self._rebuild()

    def _read(self, broker: int) -> Int32:
        steps = self._steps[broker]
        rows = np.empty(len(steps), np.int32)
        return rows[: kernels.read_replica_index(steps, rows)]

    def _rebuild(self) -> None:
        p, brokers = self._cluster.partitions, len(self._cluster.brokers)
        starts, ends, last = np.empty(brokers + 1, np.int64), np.empty(brokers, np.int64), np.empty(brokers, np.int32)
        steps = np.empty(kernels.size_replica_index(p.slot_start, p.replica_count, p.replica, starts), np.uint8)
        kernels.build_replica_index(p.slot_start, p.replica_count, p.replica, starts, last, ends, steps)
        # One array per broker, without unused capacity.
        self._steps = [steps[start:end].copy() for start, end in zip(starts[:-1].tolist(), ends.tolist(), strict=True)]
        self._indexed = len(p)
        self._reassigned.clear()
