"""The controller's gauges by Kafka's names, kept up with what changes (Kafka 3.9 ``KafkaController.updateMetrics``).

Whoever writes what a gauge counts says which rows or topics it has touched. After each event those alone are counted
anew, and the totals change by the difference from what each of them counted for before. That is remembered per entry:
so an entry that was touched twice, or for nothing, changes nothing, and no order of touches matters. The one thing that
would make a gauge wrong is a write that nobody reported; the tests hold every gauge to a recount.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from kframe.model.cluster import ClusterState
from kframe.model.columns import Bool
from kframe.model.ids import NO_STATE, PartitionState, ReplicaFlag, ReplicaState

#: What a row counts for, in this order.
ROW_GAUGES: Final = ("GlobalPartitionCount", "OfflinePartitionsCount", "PreferredReplicaImbalanceCount")
#: What a topic counts for, in this order.
TOPIC_GAUGES: Final = (
    "TopicsToDeleteCount",
    "TopicsIneligibleToDeleteCount",
    "ReplicasToDeleteCount",
    "ReplicasIneligibleToDeleteCount",
)
#: Every gauge of a controller that is not active (``spec/controller.md`` section 16).
INACTIVE: Final = dict.fromkeys(
    ("ActiveControllerCount", "GlobalTopicCount", *ROW_GAUGES, *TOPIC_GAUGES, "ActiveBrokerCount", "FencedBrokerCount"),
    0,
)


#: Touches of one event that are always kept one by one.
KEPT_MIN: Final = 1024
#: Numbers of entries, or a range of them, which costs no gathering.
Entries: TypeAlias = NDArray[Any] | slice


class Tally:
    """Sums over numbered entries, brought up to date by counting only those entries that were touched."""

    def __init__(
        self, dtype: type[np.integer[Any]], kinds: int, size: Callable[[], int], kept_min: int = KEPT_MIN
    ) -> None:
        """``kinds`` sums over ``size()`` entries, all of them touched; an entry counts for a ``dtype`` in each."""
        self.totals = np.zeros(kinds, np.int64)
        self.visited = 0
        """Entries counted so far: what all this has cost."""
        self._size = size
        self._kept_min = kept_min
        self._counted = np.zeros((kinds, 0), dtype)
        self._touched: list[NDArray[Any]] = []
        self._waiting = 0
        self._everything = True

    def touch(self, entries: NDArray[Any]) -> None:
        """Count these anew at the next ``settle``. Once as many are kept as there are in all, that means all of them:
        so an event of any size keeps at most one number for each entry, or ``kept_min`` of them."""
        if self._everything or len(entries) == 0:
            return
        self._touched.append(entries)
        self._waiting += len(entries)
        if self._waiting >= max(self._size(), self._kept_min):
            self.touch_everything()

    def touch_everything(self) -> None:
        """Count all entries anew at the next ``settle``."""
        self._everything = True
        self._touched.clear()

    def settle(self, count: Callable[[Entries], NDArray[Any]]) -> None:
        """Count what was touched: ``count`` gives, for some entries, what each counts for (kinds, entries)."""
        size = self._size()
        if size > self._counted.shape[1]:
            grown = np.zeros((len(self.totals), size + size // 2), self._counted.dtype)
            grown[:, : self._counted.shape[1]] = self._counted
            self._counted = grown
        if self._everything:
            self._take_over(slice(0, size), size, count)
        for entries in self._touched:
            once = entries if bool((entries[1:] > entries[:-1]).all()) else np.unique(entries)
            self._take_over(once, len(once), count)
        self._touched, self._waiting, self._everything = [], 0, False

    def _take_over(self, entries: Entries, size: int, count: Callable[[Entries], NDArray[Any]]) -> None:
        """Let ``size`` entries, each named once, count for what they count for now."""
        now = count(entries)
        self.totals += now.sum(axis=1, dtype=np.int64) - self._counted[:, entries].sum(axis=1, dtype=np.int64)
        self._counted[:, entries] = now
        self.visited += size


class Gauges:
    """The gauges of one controller in office."""

    def __init__(self, cluster: ClusterState) -> None:
        self._cluster = cluster
        self.rows = Tally(np.uint8, len(ROW_GAUGES), lambda: len(cluster))
        self.topics = Tally(np.int32, len(TOPIC_GAUGES), lambda: len(cluster.topics))
        self._deleting = True
        """Whether a topic may be queued for deletion: only then do replica states count for anything."""

    def touch(self, rows: NDArray[Any]) -> None:
        """State, leadership or assignment of these rows has changed."""
        self.rows.touch(rows)
        self.touch_replicas(rows)

    def touch_replicas(self, rows: NDArray[Any]) -> None:
        """Replicas of these rows, each named any number of times, are in another replica state."""
        if self._deleting:
            topic = np.unique(self._cluster.partitions.topic[rows])
            self.topics.touch(topic[self._cluster.topics.deleting[topic] != 0])

    def touch_topics(self, indexes: Iterable[int]) -> None:
        """These topics are, or cease to be, queued for deletion, started or halted; or they are about to be dropped."""
        touched = np.array(list(indexes), np.int32)
        self._deleting = True
        self.topics.touch(touched)
        self.rows.touch(self._cluster.topics.rows_of_all(touched))

    def touch_everything(self) -> None:
        """All rows have changed."""
        self.rows.touch_everything()

    def values(self) -> dict[str, int]:
        """Every gauge as it is now, by Kafka's name."""
        self.rows.settle(self._count_rows)
        self.topics.settle(self._count_topics)
        self._deleting = bool(self.topics.totals[0])
        cluster = self._cluster
        return INACTIVE | {
            "ActiveControllerCount": 1,
            "GlobalTopicCount": cluster.topics.known_count,
            **dict(zip(ROW_GAUGES, self.rows.totals.tolist(), strict=True)),
            **dict(zip(TOPIC_GAUGES, self.topics.totals.tolist(), strict=True)),
            "ActiveBrokerCount": int(np.count_nonzero(cluster.brokers.registered)),
        }

    def _count_rows(self, rows: Entries) -> NDArray[Any]:
        """Led: it has a state. Offline: unless its topic's deletion has started. Imbalanced: see ``_imbalanced``, and
        unless its topic is queued for deletion."""
        p, topics = self._cluster.partitions, self._cluster.topics
        topic = p.topic[rows]
        counts = np.zeros((len(ROW_GAUGES), len(topic)), np.uint8)
        there = topic >= 0
        stated = there & (p.partition_epoch[rows] != NO_STATE)
        offline = there & (p.state[rows] == PartitionState.OFFLINE)
        judged = stated & (p.replica_count[rows] > 0)
        if self._deleting:
            offline &= topics.deletion_started[topic] == 0
            judged &= topics.deleting[topic] == 0
        counts[0], counts[1] = stated, offline
        if judged.all():
            counts[2] = self._imbalanced(rows)
        else:
            positions = np.flatnonzero(judged)
            counts[2, positions] = self._imbalanced(positions if isinstance(rows, slice) else rows[positions])
        return counts

    def _imbalanced(self, rows: Entries) -> Bool:
        """Whether another than the preferred replica leads. While the preferred replica is being added, that counts as
        soon as it is in the ISR, whoever leads (3.9 ``ControllerContext.hasPreferredLeader``)."""
        p = self._cluster.partitions
        first = p.slot_start[rows]
        preferred = p.replica[first]
        imbalanced: Bool = p.leader[rows] != preferred
        adding = np.flatnonzero(p.replica_flags[first] & np.uint8(ReplicaFlag.ADDING))
        if len(adding):
            isr = p.lists("isr", adding if isinstance(rows, slice) else rows[adding])
            owner = np.repeat(np.arange(len(adding)), isr.counts)
            imbalanced[adding] = np.bincount(owner, isr.values == preferred[adding][owner], len(adding)) > 0
        return imbalanced

    def _count_topics(self, topics: Entries) -> NDArray[Any]:
        """For topics that are queued for deletion: one, one if it is halted, replicas that are left, replicas that
        could not be deleted."""
        p, columns = self._cluster.partitions, self._cluster.topics
        deleting = columns.deleting[topics]
        counts = np.zeros((len(TOPIC_GAUGES), len(deleting)), np.int32)
        counts[0], counts[1] = deleting, columns.deletion_halted[topics]
        queued = np.flatnonzero(deleting)
        if len(queued):
            indexes = queued if isinstance(topics, slice) else topics[queued]
            rows = columns.rows_of_all(indexes)
            states = p.replica_state[p.slots_of(rows)]
            owner = np.repeat(p.topic[rows], p.replica_count[rows])
            left = np.bincount(owner, states != ReplicaState.DELETION_SUCCESSFUL, len(columns))
            failed = np.bincount(owner, states == ReplicaState.DELETION_INELIGIBLE, len(columns))
            counts[2, queued], counts[3, queued] = left[indexes], failed[indexes]
        return counts
