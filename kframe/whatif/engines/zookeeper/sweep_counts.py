"""The effects of the failure of each broker, pair of brokers and rack, counted in one pass.

``sweep.py`` evaluates the counts for each failure. ``docs/explanation/sweep-algorithm.md`` has the algebra.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np
from msgspec import Struct
from msgspec.structs import replace
from numpy.typing import NDArray

from kframe import kernels
from kframe.model.arrays import Bool, Int32, Int64, UInt8
from kframe.model.cluster import ClusterState
from kframe.model.config import ControllerConfig
from kframe.model.ids import NO_STATE, ReplicaFlag
from kframe.model.lists import sum_by_key
from kframe.model.topics import UNSET
from kframe.ports.progress import Progress, ignore_progress
from kframe.snapshot.content import SnapshotContent
from kframe.snapshot.convert import cluster_of, topic_settings
from kframe.snapshot.facts import TopicFacts
from kframe.whatif.engines.zookeeper.sweep_columns import Columns, blocks_of
from kframe.whatif.engines.zookeeper.sweep_healthy import HealthyCounts, rack_bits
from kframe.whatif.results.sweep import METRICS

#: ``registered``, ``rack``, ``rack_bit`` by broker, and ``deleting``, ``min_insync``, ``unclean`` by topic.
_Settings: TypeAlias = tuple[UInt8, Int32, Int64, UInt8, Int32, UInt8]


class DeletingTopics(Struct, frozen=True, eq=False):
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


class FailureCounts(Struct, frozen=True, eq=False):
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
    snapshot: SnapshotContent,
    config: ControllerConfig,
    *,
    depth: int = 2,
    racks: bool = True,
    progress: Progress = ignore_progress,
) -> FailureCounts:
    """Count failures of brokers, of pairs if ``depth`` is 2, and of ``racks``. The snapshot has leaders.

    Reads the columns once and changes nothing. It takes 36 bytes for each pair of brokers, 8 more for each kind of
    healthy rows that occurs, and some megabytes for a block of rows.
    Cost O(n · r³), r being the replicas of a partition.
    """
    deleting = snapshot.topics.deleting if config["delete.topic.enable"] else None
    if deleting is None:
        deleting = np.zeros(len(snapshot.topics), np.uint8)
    # The brokers, and the topics under deletion, of which there are few.
    cluster = cluster_of(snapshot.of_topics(np.flatnonzero(deleting)))
    brokers = cluster.brokers
    names = [None if registration is None or not racks else registration.rack for registration in brokers.registrations]
    counts = FailureCounts.none(
        brokers.ids, brokers.registered, names, pairs=depth > 1, deleting_topics=_deleting_topics(cluster)
    )
    settings = (
        counts.registered,
        counts.rack,
        rack_bits(counts.rack, counts.registered),
        deleting,
        *_topic_settings(snapshot.topics, config),
    )
    healthy = HealthyCounts.none(len(counts.rack))
    single = (counts.totals, counts.brokers, counts.racks, counts.leads, counts.broker_leads, counts.rack_leads)
    lead_changes = [(counts.pair_lead_keys, counts.pair_lead_changes)]
    thirds = [(np.empty(0, np.int64), np.empty(0, np.int64))]
    counted = 0
    for rows in blocks_of(snapshot, brokers.ids):
        tables = (healthy.successors, healthy.further_replicas, healthy.shared_racks)
        kernels.count_failures(0, len(rows[0]), *rows, *settings, *single, *tables)
        if counts.pairs is not None:
            changes, third = _count_pairs(rows, settings, counts.pairs, healthy)
            lead_changes.append(changes)
            thirds.append(third)
        counted += len(rows[0])
        progress(counted, len(snapshot))
    healthy.add_failures(counts.rack, *single)
    if counts.pairs is not None:
        third_counts = _sum_parts(thirds)
        healthy.add_pairs(*third_counts, counts.pairs)
        lead_changes.append(healthy.pair_leads(*third_counts))
    pair_lead_keys, pair_lead_changes = _sum_parts(lead_changes)
    return replace(counts, pair_lead_keys=pair_lead_keys, pair_lead_changes=pair_lead_changes)


def _topic_settings(topics: TopicFacts, config: ControllerConfig) -> tuple[Int32, UInt8]:
    """``min_insync`` and ``unclean`` of each topic (t,), with defaults filled in."""
    unclean, min_insync = topic_settings(topics)
    return (
        np.where(min_insync == UNSET, config["min.insync.replicas"], min_insync).astype(np.int32),
        np.where(unclean == UNSET, config.unclean_by_default, unclean == 1).astype(np.uint8),
    )


def _count_pairs(
    rows: Columns, settings: _Settings, pairs: Int32, healthy: HealthyCounts
) -> tuple[tuple[Int64, Int32], tuple[Int64, Int64]]:
    """Add pairs of failures in a block to ``pairs`` and ``healthy.further_pairs``. Returns the changes of leaders, and
    the keys of healthy partitions (``third_key``), each with its count."""
    _, _, _, _, replica_count, isr_count, _, _ = rows
    count, width = len(replica_count), int(replica_count.max()) + int(isr_count.max()) + 1
    key, change = np.empty(4 * count, np.int64), np.empty(4 * count, np.int8)
    third = np.empty(count, np.int64)
    filled = kernels.count_pair_failures(
        0, count, *rows, *settings, np.empty((3, width), np.int32), pairs, key, change, third, healthy.further_pairs
    )
    return sum_by_key(key[:filled], change[:filled]), np.unique(third[third >= 0], return_counts=True)


def _sum_parts(parts: Sequence[tuple[Int64, NDArray[Any]]]) -> tuple[Int64, Int32]:
    return sum_by_key(*(np.concatenate(part) for part in zip(*parts, strict=True)))


def _product(left: Bool, right: Int32) -> Int32:
    """The product of matrices. Floats multiply faster, and hold such numbers exactly."""
    product: Int32 = (left.astype(np.float64) @ right.astype(np.float64)).astype(np.int32)
    return product


def _deleting_topics(cluster: ClusterState) -> DeletingTopics:
    """The topics of a cluster, all under deletion: arrays of topics and brokers."""
    p, topics, brokers = cluster.partitions, len(cluster.topics), len(cluster.brokers)
    rows = np.arange(len(p))
    lists, flags, of_rows = p.lists("replica", rows), p.replica_status[p.slots_of(rows)], p.topic.astype(np.int64)
    of_slots = of_rows[lists.owners]
    moving = lists.any((flags & np.uint8(ReplicaFlag.ADDING | ReplicaFlag.REMOVING)) != 0)
    unregistered = cluster.brokers.registered[lists.values] == 0
    leader, isr = p.leader, p.lists("isr", rows)
    assigned = lists.any(lists.values == np.repeat(leader, lists.counts))
    in_sync = isr.any(isr.values == np.repeat(leader, isr.counts))
    resigns = assigned & in_sync & (p.partition_epoch != NO_STATE) & (leader >= 0)
    halts = _table(of_slots[unregistered], None, topics, 1) + _table(of_rows[moving], None, topics, 1)
    return DeletingTopics(
        tuple(cluster.topics.names),
        _table(of_slots, lists.values, topics, brokers),
        _table(of_rows[resigns], leader[resigns], topics, brokers),
        halts.reshape(-1),
    )


def _table(line: Int64, column: NDArray[Any] | None, lines: int, columns: int) -> Int32:
    """How often each (line, column) occurs, (lines, columns)."""
    flat = line * columns + (0 if column is None else column)
    return np.bincount(flat, minlength=lines * columns).astype(np.int32).reshape(lines, columns)
