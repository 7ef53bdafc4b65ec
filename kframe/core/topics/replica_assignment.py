"""Replica assignments: origin, target, and the change to a new target (Kafka 3.9 ``ReplicaAssignment``)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from kframe import kernels
from kframe.core.context import Context
from kframe.model.arrays import Bool, Int32, Ragged, UInt8, offsets_of, ragged_positions
from kframe.model.cluster import ClusterState
from kframe.model.columns import Partitions
from kframe.model.ids import ReplicaFlag
from kframe.model.row_views import values_at
from kframe.model.slot_columns import BROKERS_MAX
from kframe.model.tables import TopicTable
from kframe.model.topics import ZERO_TOPIC_ID

_ADDING, _REMOVING = np.uint8(ReplicaFlag.ADDING), np.uint8(ReplicaFlag.REMOVING)
_REASSIGNING = np.uint8(_ADDING | _REMOVING)
#: Each broker index under itself.
_INDEXES: Final = np.arange(BROKERS_MAX, dtype=np.int32)


@dataclass(frozen=True, slots=True, eq=False)
class Assignments:
    """Replica lists (broker indexes) of some partitions, with ADDING and REMOVING flags beside ``replicas.values``."""

    replicas: Ragged
    flags: UInt8

    def take(self, chosen: NDArray[Any]) -> Assignments:
        """The lists that a mask or positions select."""
        numbers = np.flatnonzero(chosen) if chosen.dtype == np.bool_ else chosen
        if len(numbers) == len(self.replicas) and bool((numbers[1:] > numbers[:-1]).all()):
            return self
        counts = self.replicas.counts[numbers]
        positions = ragged_positions(self.replicas.offsets[numbers], counts)
        return Assignments(Ragged(offsets_of(counts), self.replicas.values[positions]), self.flags[positions])

    def keep(self, mask: Bool) -> Assignments:
        """The replicas that a mask beside ``replicas.values`` selects."""
        return Assignments(self.replicas.keep(mask), self.flags[mask])

    def origin(self) -> Assignments:
        """Without the replicas that are being added."""
        return self.keep((self.flags & _ADDING) == 0)

    def target(self) -> Assignments:
        """Without the replicas that are being removed."""
        return self.keep((self.flags & _REMOVING) == 0)

    def reached(self) -> Assignments:
        """The assignment after the reassignment: the target, without flags."""
        target = self.target()
        return Assignments(target.replicas, np.zeros_like(target.flags))


def assign(partitions: Partitions, rows: Int32, assignments: Assignments) -> Int32:
    """Assign ``rows`` (unique). Return how many replicas (k,) left each list.

    The slots that follow the list keep those replicas and their states until the next assignment.
    """
    lists = assignments.replicas
    before = values_at(partitions.replica_count, rows).astype(np.int32)
    partitions.ensure_capacity(rows, lists.counts + before)
    partitions.own("replica_count", "replica")
    longest, removed = int(before.max(initial=0)), np.empty(len(rows), np.int32)
    kernels.assign_replicas(
        rows,
        lists.offsets,
        lists.values,
        assignments.flags,
        partitions.slot_start,
        partitions.replica_count,
        partitions.replica,
        partitions.replica_status,
        np.empty(longest, np.int32),
        np.empty(longest, np.uint8),
        removed,
    )
    return removed


def set_assignments(context: Context, rows: Int32, assignments: Assignments) -> Int32:
    """``assign`` in the controller's columns and replica index."""
    context.replica_index.add(rows)
    return assign(context.cluster.partitions, rows, assignments)


def current(partitions: Partitions, rows: Int32) -> Assignments:
    """The present assignments of ``rows``."""
    return _copied(partitions, rows, _INDEXES)


def _copied(p: Partitions, rows: Int32, names: Int32) -> Assignments:
    """The present assignments of ``rows``, with the number in ``names`` for each broker index."""
    count = int(values_at(p.replica_count, rows).sum())
    lists, flags = Ragged(np.empty(len(rows) + 1, np.int32), np.empty(count, np.int32)), np.empty(count, np.uint8)
    kernels.copy_assignments(
        rows,
        p.slot_start,
        p.replica_count,
        p.replica,
        p.replica_status,
        names,
        int(_REASSIGNING),
        lists.offsets,
        lists.values,
        flags,
    )
    return Assignments(lists, flags)


def reassigns(partitions: Partitions, rows: Int32, assignments: Assignments) -> Int32:
    """Positions of the ``rows`` whose list or flags differ from ``assignments``."""
    lists, differs = assignments.replicas, np.empty(len(rows), np.uint8)
    kernels.mark_reassigned(
        rows,
        lists.offsets,
        lists.values,
        assignments.flags,
        int(_REASSIGNING),
        partitions.slot_start,
        partitions.replica_count,
        partitions.replica,
        partitions.replica_status,
        differs,
    )
    return np.flatnonzero(differs).astype(np.int32)


def table_of(cluster: ClusterState, topics: NDArray[Any]) -> TopicTable:
    """Names, ids and assignments of topics (unique indexes) in the form of storage."""
    rows = cluster.topics.rows_of_all(topics)
    return _table(cluster, topics, _copied(cluster.partitions, rows, cluster.brokers.ids))


def table_with(cluster: ClusterState, topics: NDArray[Any], rows: Int32, assignments: Assignments) -> TopicTable:
    """``table_of``, with ``assignments`` for those of ``rows`` that belong to these topics."""
    table_rows, ids = cluster.topics.rows_of_all(topics), cluster.brokers.ids
    if np.array_equal(rows, table_rows):
        return _table(cluster, topics, _with_ids(assignments, ids))
    table = table_of(cluster, topics)
    chosen = np.flatnonzero(np.isin(rows, table_rows))
    source = np.arange(len(table_rows))
    order = np.argsort(table_rows)
    source[order[np.searchsorted(table_rows[order], rows[chosen])]] = len(table_rows) + np.arange(len(chosen))
    new = _with_ids(assignments.take(chosen), ids)
    lists, flags = Ragged.chain([table.replicas, new.replicas]), np.concatenate([table.flags, new.flags])
    return _table(cluster, topics, Assignments(lists, flags).take(source))


def _with_ids(assignments: Assignments, ids: Int32) -> Assignments:
    """The lists as broker ids."""
    return Assignments(Ragged(assignments.replicas.offsets, ids[assignments.replicas.values]), assignments.flags)


def _table(cluster: ClusterState, topics: NDArray[Any], assignments: Assignments) -> TopicTable:
    """Topics in the form of storage, with the lists (broker ids) of all their partitions."""
    ids = cluster.topics.ids[topics]
    topic_ids: list[bytes | None] = ids.view(f"V{len(ZERO_TOPIC_ID)}").ravel().tolist()
    for position in np.flatnonzero(~ids.any(axis=1)).tolist():
        topic_ids[position] = None
    return TopicTable(
        names=tuple(map(cluster.topics.names.__getitem__, topics.tolist())),
        topic_ids=tuple(topic_ids),
        partition_counts=cluster.topics.partition_count[topics],
        replicas=assignments.replicas,
        flags=assignments.flags,
    )


def is_reassigning(context: Context, rows: Int32) -> Bool:
    """Whether any replica of each row is being added or removed."""
    return _progress(context, rows)[0]


def is_complete(context: Context, rows: Int32) -> Bool:
    """Whether each row is not reassigned any more, or all its target replicas are in its ISR, live or not."""
    running, in_sync = _progress(context, rows)
    complete: Bool = ~running | in_sync
    return complete


def _progress(context: Context, rows: Int32) -> tuple[Bool, Bool]:
    """Whether each row is being reassigned, and whether its target is in sync."""
    p = context.cluster.partitions
    running, in_sync = np.empty(len(rows), np.uint8), np.empty(len(rows), np.uint8)
    kernels.mark_reassignment_progress(
        rows, p.slot_start, p.replica_count, p.isr_count, p.replica, p.isr, p.replica_status, running, in_sync
    )
    return running.view(np.bool_), in_sync.view(np.bool_)


def reassigned_to(context: Context, rows: Int32, targets: Ragged) -> Assignments:
    """The assignments that lead ``rows`` to ``targets`` (broker indexes). A broker that is named twice counts once.

    replicas = target ++ (origin - target); adding = target - origin; removing = origin - target.
    """
    p = context.cluster.partitions
    capacity = len(targets.values) + int(values_at(p.replica_count, rows).sum())
    lists, flags = Ragged(np.empty(len(rows) + 1, np.int32), np.empty(capacity, np.int32)), np.empty(capacity, np.uint8)
    count = kernels.plan_reassignments(
        rows,
        targets.offsets,
        targets.values,
        p.slot_start,
        p.replica_count,
        p.replica,
        p.replica_status,
        lists.offsets,
        lists.values,
        flags,
    )
    return Assignments(Ragged(lists.offsets, lists.values[:count]), flags[:count])


def with_removing(assignments: Assignments, replicas: Int32) -> Assignments:
    """The ``assignments`` (k), each with a last replica of ``replicas`` (k,) that is being removed."""
    lists, ends = assignments.replicas, assignments.replicas.offsets[1:]
    offsets = offsets_of(lists.counts + np.int32(1))
    return Assignments(
        Ragged(offsets, np.insert(lists.values, ends, replicas).astype(np.int32)),
        np.insert(assignments.flags, ends, _REMOVING).astype(np.uint8),
    )


def invalid_targets(cluster: ClusterState, rows: Int32, targets: Ragged) -> Bool:
    """Whether each target (broker indexes) is empty, repeats a broker, or adds a broker that is -1 or not live.

    ``rows`` are -1 where the partition is unknown.
    """
    p, invalid = cluster.partitions, np.empty(len(rows), np.uint8)
    kernels.mark_invalid_targets(
        rows,
        targets.offsets,
        targets.values,
        p.slot_start,
        p.replica_count,
        p.replica,
        p.replica_status,
        cluster.brokers.live,
        invalid,
    )
    return invalid.view(np.bool_)
