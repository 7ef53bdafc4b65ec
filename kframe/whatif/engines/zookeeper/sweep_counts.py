"""The effects of the failure of each broker, pair of brokers and rack, counted in one pass.

``sweep.py`` evaluates the counts for each failure. ``docs/explanation/sweep-algorithm.md`` has the algebra.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from kframe import kernels
from kframe.model.arrays import Bool, Int32, Int64, UInt8
from kframe.model.cluster import ClusterState
from kframe.model.config import ControllerConfig
from kframe.model.ids import NO_STATE, ReplicaFlag
from kframe.model.lists import sum_by_key
from kframe.model.topics import UNSET
from kframe.ports.progress import Progress, ignore_progress
from kframe.whatif.engines.zookeeper.sweep_healthy import HealthyCounts, rack_bits
from kframe.whatif.results.sweep import METRICS

#: Rows counted between two reports of progress; it bounds the memory of a pass over pairs besides the counts.
CHUNK_ROWS: Final = 1 << 17


@dataclass(frozen=True, slots=True, eq=False)
class DeletingTopics:
    """The topics under deletion. The first failure that affects one of them resumes the deletion of all that are not
    halted (``TopicDeletionManager``): their leaders resign.

    ``replicas`` and ``leads`` (d, b): replicas on a broker, and leaders there that will resign. ``halts`` (d,):
    replicas that are not online, and partitions that are being reassigned; the deletion resumes only if there are none.
    """

    topics: tuple[str, ...]
    replicas: Int32
    leads: Int32
    halts: Int32

    def resigned(self, failing: Bool) -> Int32:
        """Leaders that resign on each broker, (m, b), in m failures of these brokers, (m, b)."""
        affected: Bool = _product(failing, self.replicas.T) > 0
        resumes: Bool = ~affected & (self.halts == 0) & affected.any(axis=1, keepdims=True)
        return _product(resumes, self.leads)


@dataclass(frozen=True, slots=True, eq=False)
class FailureCounts:
    """Counts by broker index (ids ascend), by pair, and by rack number. Columns are METRICS.

    ``totals`` (2, 9): in the present state, and after elections for all leaderless partitions, which every failure
    triggers. ``brokers`` (b, 9), ``racks`` (g, 9): what the failure adds to the second line of ``totals``.
    ``pairs`` (b·(b−1)/2, 9), in the order (0, 1), (0, 2) …: what two failures add to all of these; None if not counted.
    ``leads`` (2, b), ``broker_leads`` (b, b), ``rack_leads`` (g, b): the same of partitions led by each broker that
    does not fail. ``pair_lead_keys`` ascend: pair · b + broker, each beside ``pair_lead_changes``.
    """

    broker_ids: Int32
    registered: UInt8
    rack: Int32
    rack_names: tuple[str, ...]
    totals: Int32
    brokers: Int32
    racks: Int32
    leads: Int32
    broker_leads: Int32
    rack_leads: Int32
    pairs: Int32 | None
    pair_lead_keys: Int64
    pair_lead_changes: Int32
    deleting_topics: DeletingTopics

    @staticmethod
    def none(
        broker_ids: Int32,
        registered: UInt8,
        racks: Sequence[str | None],
        *,
        pairs: bool,
        deleting_topics: DeletingTopics | None = None,
    ) -> FailureCounts:
        """Counts of no partition. ``racks`` stand beside the brokers. Racks of unregistered brokers do not count."""
        count = len(broker_ids)
        live_racks = [name if up else None for name, up in zip(racks, registered.tolist(), strict=True)]
        names = tuple(sorted({name for name in live_racks if name is not None}))
        number = {name: position for position, name in enumerate(names)}

        def zeros(lines: int, columns: int) -> Int32:
            return np.zeros((lines, columns), np.int32)

        return FailureCounts(
            broker_ids,
            registered,
            np.array([-1 if name is None else number[name] for name in live_racks], np.int32),
            names,
            zeros(2, len(METRICS)),
            zeros(count, len(METRICS)),
            zeros(len(names), len(METRICS)),
            zeros(2, count),
            zeros(count, count),
            zeros(len(names), count),
            zeros(count * (count - 1) // 2, len(METRICS)) if pairs else None,
            np.empty(0, np.int64),
            np.empty(0, np.int32),
            deleting_topics or DeletingTopics((), zeros(0, count), zeros(0, count), np.empty(0, np.int32)),
        )


def count_failures(
    cluster: ClusterState,
    config: ControllerConfig,
    *,
    depth: int = 2,
    racks: bool = True,
    progress: Progress = ignore_progress,
) -> FailureCounts:
    """Count failures of brokers, of pairs if ``depth`` is 2, and of ``racks``. The cluster is made from a snapshot.

    Reads the columns once for each depth and changes nothing. It takes 36 bytes for each pair of brokers, 8 more for
    each kind of healthy rows that occurs, and some megabytes for a chunk of rows.
    Cost O(n · r³), r being the replicas of a partition.
    """
    brokers, topics = cluster.brokers, cluster.topics
    enabled = bool(config["delete.topic.enable"])
    deleting = topics.deleting if enabled else np.zeros(len(topics), np.uint8)
    names = [None if registration is None or not racks else registration.rack for registration in brokers.registrations]
    counts = FailureCounts.none(
        brokers.ids.copy(),
        brokers.registered.copy(),
        names,
        pairs=depth > 1,
        deleting_topics=_deleting_topics(cluster, deleting),
    )
    unclean = np.where(topics.unclean == UNSET, config.unclean_by_default, topics.unclean == 1)
    min_isr = np.where(topics.min_insync == UNSET, config["min.insync.replicas"], topics.min_insync)
    p, healthy = cluster.partitions, HealthyCounts.none(len(counts.rack))
    columns = (
        p.topic, p.leader, p.partition_epoch, p.slot_start, p.replica_count, p.isr_count, p.replica, p.isr,
        counts.registered, counts.rack, rack_bits(counts.rack, counts.registered), deleting,
        min_isr.astype(np.int32), unclean.astype(np.uint8),
    )  # fmt: skip
    single = (counts.totals, counts.brokers, counts.racks, counts.leads, counts.broker_leads, counts.rack_leads)
    parts = [(counts.pair_lead_keys, counts.pair_lead_changes)]
    thirds: list[tuple[Int64, NDArray[Any]]] = [(np.empty(0, np.int64), np.empty(0, np.int32))]
    for first in range(0, len(p), CHUNK_ROWS):
        last = min(first + CHUNK_ROWS, len(p))
        kernels.count_failures(
            first, last, *columns, *single, healthy.successors, healthy.further_replicas, healthy.shared_racks
        )
        if counts.pairs is not None:
            width = int(p.replica_count.max()) + int(p.isr_count.max()) + 1
            key, change = np.empty(4 * (last - first), np.int64), np.empty(4 * (last - first), np.int8)
            third = np.empty(last - first, np.int64)
            filled = kernels.count_pair_failures(
                first,
                last,
                *columns,
                np.empty((3, width), np.int32),
                counts.pairs,
                key,
                change,
                third,
                healthy.further_pairs,
            )
            parts.append(sum_by_key(key[:filled], change[:filled]))
            thirds.append(np.unique(third[third >= 0], return_counts=True))
        progress(last, len(p))
    healthy.add_failures(counts.rack, *single)
    if counts.pairs is not None:
        third_counts = _sum_parts(thirds)
        healthy.add_pairs(*third_counts, counts.pairs)
        parts.append(healthy.pair_leads(*third_counts))
    keys, changes = _sum_parts(parts)
    return replace(counts, pair_lead_keys=keys, pair_lead_changes=changes)


def _sum_parts(parts: Sequence[tuple[Int64, NDArray[Any]]]) -> tuple[Int64, Int32]:
    return sum_by_key(*(np.concatenate(part) for part in zip(*parts, strict=True)))


def _product(left: Bool, right: Int32) -> Int32:
    """The product of matrices. Floats multiply faster, and hold such numbers exactly."""
    product: Int32 = (left.astype(np.float64) @ right.astype(np.float64)).astype(np.int32)
    return product


def _deleting_topics(cluster: ClusterState, deleting: UInt8) -> DeletingTopics:
    """Topics under deletion, of which there are few: arrays of topics and brokers."""
    p, brokers = cluster.partitions, len(cluster.brokers)
    queued = np.flatnonzero(deleting)
    position = np.full(len(deleting) + 1, -1, np.int64)
    position[queued] = np.arange(len(queued))
    rows = np.flatnonzero(position[p.topic] >= 0)
    lists, flags = p.lists("replica", rows), p.replica_flags[p.slots_of(rows)]
    of_slots, of_rows = position[p.topic[rows]][lists.owners], position[p.topic[rows]]
    moving = lists.any((flags & np.uint8(ReplicaFlag.ADDING | ReplicaFlag.REMOVING)) != 0)
    unregistered = cluster.brokers.registered[lists.values] == 0
    leader, isr = p.leader[rows], p.lists("isr", rows)
    assigned = lists.any(lists.values == np.repeat(leader, lists.counts))
    in_sync = isr.any(isr.values == np.repeat(leader, isr.counts))
    resigns = assigned & in_sync & (p.partition_epoch[rows] != NO_STATE) & (leader >= 0)
    return DeletingTopics(
        tuple(cluster.topics.names[topic] for topic in queued.tolist()),
        _table(of_slots, lists.values, len(queued), brokers),
        _table(of_rows[resigns], leader[resigns], len(queued), brokers),
        (_table(of_slots[unregistered], None, len(queued), 1) + _table(of_rows[moving], None, len(queued), 1)).reshape(
            -1
        ),
    )


def _table(line: Int64, column: Int32 | None, lines: int, columns: int) -> Int32:
    """How often each (line, column) occurs, (lines, columns)."""
    flat = line * columns + (0 if column is None else column)
    return np.bincount(flat, minlength=lines * columns).astype(np.int32).reshape(lines, columns)
