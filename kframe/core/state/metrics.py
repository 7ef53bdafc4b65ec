"""The controller's gauges by Kafka's names, counted incrementally (Kafka 3.9 ``KafkaController.updateMetrics``).

Code that changes a counted column touches the rows or topics. After each event only touched entries are counted, and
the totals change by the difference from each entry's previous contribution. Touching an entry twice, or without a
change, changes nothing. Tests compare every gauge with a full count.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from kframe import kernels
from kframe.core.state.deleting_replicas import DeletingReplicas
from kframe.model.arrays import Int32
from kframe.model.cluster import ClusterState
from kframe.model.ids import ReplicaState
from kframe.model.lists import distinct_rows

#: Gauges that count rows, in the order of the kernel ``update_partition_counts``.
ROW_GAUGES: Final = ("GlobalPartitionCount", "OfflinePartitionsCount", "PreferredReplicaImbalanceCount")
#: Gauges that count topics.
TOPIC_GAUGES: Final = (
    "TopicsToDeleteCount",
    "TopicsIneligibleToDeleteCount",
    "ReplicasToDeleteCount",
    "ReplicasIneligibleToDeleteCount",
)
#: Touched rows below which no event falls back to a full count.
TOUCHED_MIN: Final = 1024
#: Every gauge of an inactive controller.
INACTIVE: Final = dict.fromkeys(
    ("ActiveControllerCount", "GlobalTopicCount", *ROW_GAUGES, *TOPIC_GAUGES, "ActiveBrokerCount", "FencedBrokerCount"),
    0,
)


class RowCounts:
    """Totals of the rows, in the order of ``ROW_GAUGES``."""

    def __init__(self, cluster: ClusterState) -> None:
        self._cluster = cluster
        self.totals = np.zeros(len(ROW_GAUGES), np.int64)
        self.visited = 0
        """Rows counted so far, a measure of cost."""
        self._counted = np.zeros(0, np.uint8)
        self._touched: list[NDArray[Any]] | None = None
        """Arrays of rows to count; None for all rows."""
        self._touched_count = 0

    @property
    def nbytes(self) -> int:
        """Bytes in use: one per row, and spare capacity."""
        return self._counted.nbytes

    def touch(self, rows: NDArray[Any]) -> None:
        """Count these rows at the next ``settle``. An array equal to the last one, as when rows go offline and come
        online, is added once. TOUCHED_MIN rows or more, and not fewer than the cluster has, mean all rows."""
        if self._touched is None or len(rows) == 0 or (self._touched and np.array_equal(self._touched[-1], rows)):
            return
        self._touched.append(rows)
        self._touched_count += len(rows)
        if self._touched_count >= max(len(self._cluster), TOUCHED_MIN):
            self.touch_everything()

    def touch_everything(self) -> None:
        """Count all rows at the next ``settle``."""
        self._touched = None

    def settle(self) -> None:
        """Count touched rows."""
        size = len(self._cluster)
        if size > len(self._counted):
            grown = np.zeros(size + size // 2 if len(self._counted) else size, np.uint8)
            grown[: len(self._counted)] = self._counted
            self._counted = grown
        touched, self._touched, self._touched_count = self._touched, [], 0
        if touched is None:
            self._count(np.arange(size, dtype=np.int32))
        elif touched:  # an event touches a row as often as it writes it
            rows = touched[0] if len(touched) == 1 else distinct_rows(np.concatenate(touched), size)
            self._count(rows.astype(np.int32, copy=False))

    def _count(self, rows: Int32) -> None:
        p, topics = self._cluster.partitions, self._cluster.topics
        kernels.update_partition_counts(
            rows,
            p.topic,
            p.partition_epoch,
            p.status,
            p.leader,
            p.slot_start,
            p.replica_count,
            p.isr_count,
            p.replica,
            p.isr,
            p.replica_status,
            topics.deleting,
            topics.deletion_started,
            self._counted,
            self.totals,
        )
        self.visited += len(rows)


class Gauges:
    """The gauges of one controller term."""

    def __init__(self, cluster: ClusterState) -> None:
        self._cluster = cluster
        self.deleting_replicas = DeletingReplicas(cluster)
        self.rows = RowCounts(cluster)

    @property
    def nbytes(self) -> int:
        """Bytes in use for rows and topics."""
        return self.rows.nbytes + self.deleting_replicas.nbytes

    def touch(self, rows: NDArray[Any]) -> None:
        """State, leader or assignment of these rows has changed."""
        self.rows.touch(rows)
        if self._cluster.topics.deleting.any():
            topics = self._cluster.partitions.topic[rows]
            self.deleting_replicas.recount(topics[topics >= 0])

    def touch_leaders(self, rows: NDArray[Any]) -> None:
        """State or leader of these rows has changed, but not their assignment."""
        self.rows.touch(rows)

    def touch_topics(self, indexes: Iterable[int]) -> None:
        """Deletion state of these topics has changed, or they are about to be dropped."""
        touched = np.asarray(indexes if isinstance(indexes, np.ndarray) else list(indexes), np.int32)
        self.deleting_replicas.recount(touched)
        self.rows.touch(self._cluster.topics.rows_of_all(touched))

    def touch_everything(self) -> None:
        """All rows have changed."""
        self.rows.touch_everything()

    def values(self) -> dict[str, int]:
        """The present value of every gauge, by Kafka's name."""
        self.rows.settle()
        cluster = self._cluster
        return INACTIVE | {
            "ActiveControllerCount": 1,
            "GlobalTopicCount": cluster.topics.known_count,
            **dict(zip(ROW_GAUGES, self.rows.totals.tolist(), strict=True)),
            **dict(zip(TOPIC_GAUGES, self._count_topics(), strict=True)),
            "ActiveBrokerCount": int(np.count_nonzero(cluster.brokers.registered)),
        }

    def _count_topics(self) -> tuple[int, int, int, int]:
        """The values of ``TOPIC_GAUGES``: topics queued for deletion, halted topics, and their replicas."""
        topics = self._cluster.topics
        queued = int(np.count_nonzero(topics.deleting))
        if queued == 0:
            return 0, 0, 0, 0
        replicas = self.deleting_replicas.totals()
        remaining = replicas.sum() - replicas[ReplicaState.DELETION_SUCCESSFUL]
        halted = np.count_nonzero(topics.deletion_halted & topics.deleting)
        return queued, int(halted), int(remaining), int(replicas[ReplicaState.DELETION_INELIGIBLE])
