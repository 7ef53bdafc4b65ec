"""Replica assignments: origin, target, and the change to a new target (Kafka 3.9 ``ReplicaAssignment``)."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kframe import kernels
from kframe.core.context import Context
from kframe.model.cluster import ClusterState
from kframe.model.columns import Bool, Int32, Partitions, Ragged, UInt8, offsets_of
from kframe.model.ids import ReplicaFlag
from kframe.model.lists import distinct, members
from kframe.model.tables import TopicTable
from kframe.model.topics import ZERO_TOPIC_ID

_ADDING, _REMOVING = np.uint8(ReplicaFlag.ADDING), np.uint8(ReplicaFlag.REMOVING)
_REASSIGNING = np.uint8(_ADDING | _REMOVING)


@dataclass(frozen=True, slots=True, eq=False)
class Assignments:
    """Replica lists (broker indexes) of some partitions, with ADDING and REMOVING flags beside ``replicas.values``."""

    replicas: Ragged
    flags: UInt8

    def take(self, chosen: NDArray[Any]) -> Assignments:
        """The lists that a mask or positions select."""
        positions = np.flatnonzero(chosen) if chosen.dtype == np.bool_ else chosen
        flags = Ragged(self.replicas.offsets, self.flags.astype(np.int32)).take(positions).values
        return Assignments(self.replicas.take(positions), flags.astype(np.uint8))

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
    before = partitions.replica_count[rows].astype(np.int32)
    partitions.ensure_capacity(rows, lists.counts + before)
    longest, removed = int(before.max(initial=0)), np.empty(len(rows), np.int32)
    kernels.assign_replicas(
        rows, lists.offsets, lists.values, assignments.flags, partitions.slot_start, partitions.replica_count,
        partitions.replica, partitions.replica_state, partitions.replica_flags, np.empty(longest, np.int32),
        np.empty(longest, np.uint8), np.empty(longest, np.uint8), removed,
    )  # fmt: skip
    return removed


def set_assignments(context: Context, rows: Int32, assignments: Assignments) -> Int32:
    """``assign`` in the controller's columns and replica index."""
    context.replica_index.add(rows)
    return assign(context.cluster.partitions, rows, assignments)


def current(partitions: Partitions, rows: Int32) -> Assignments:
    """The present assignments of ``rows``."""
    slots, offsets = partitions.slots_of(rows), offsets_of(partitions.replica_count[rows])
    return Assignments(Ragged(offsets, partitions.hosts_of(slots)), partitions.replica_flags[slots] & _REASSIGNING)


def reassigns(partitions: Partitions, rows: Int32, assignments: Assignments) -> Int32:
    """Positions of the ``rows`` whose list or flags differ from ``assignments``."""
    lists, differs = assignments.replicas, np.empty(len(rows), np.uint8)
    kernels.mark_reassigned(
        rows, lists.offsets, lists.values, assignments.flags, int(_REASSIGNING), partitions.slot_start,
        partitions.replica_count, partitions.replica, partitions.replica_flags, differs,
    )  # fmt: skip
    return np.flatnonzero(differs).astype(np.int32)


def table_of(cluster: ClusterState, topics: NDArray[Any]) -> TopicTable:
    """Names, ids and assignments of topics (unique indexes) in the form of storage."""
    p, rows = cluster.partitions, cluster.topics.rows_of_all(topics)
    offsets = offsets_of(p.replica_count[rows])
    values, flags = np.empty(offsets[-1], np.int32), np.empty(offsets[-1], np.uint8)
    kernels.copy_assignments(
        rows, p.slot_start, p.replica_count, p.replica, p.replica_flags, cluster.brokers.ids, int(_REASSIGNING), values,
        flags,
    )  # fmt: skip
    raw = cluster.topics.ids[topics].tobytes()
    ids = [raw[start : start + len(ZERO_TOPIC_ID)] for start in range(0, len(raw), len(ZERO_TOPIC_ID))]
    return TopicTable(
        names=tuple(cluster.topics.names[topic] for topic in topics.tolist()),
        topic_ids=tuple(None if topic_id == ZERO_TOPIC_ID else topic_id for topic_id in ids),
        partition_counts=cluster.topics.partition_count[topics],
        replicas=Ragged(offsets, values),
        flags=flags,
    )


def table_with(cluster: ClusterState, topics: NDArray[Any], rows: Int32, assignments: Assignments) -> TopicTable:
    """``table_of``, with ``assignments`` for those of ``rows`` that belong to these topics."""
    table, table_rows = table_of(cluster, topics), cluster.topics.rows_of_all(topics)
    chosen = np.flatnonzero(np.isin(rows, table_rows))
    source = np.arange(len(table_rows))
    order = np.argsort(table_rows)
    source[order[np.searchsorted(table_rows[order], rows[chosen])]] = len(table_rows) + np.arange(len(chosen))
    new = assignments.take(chosen)
    lists = Ragged(new.replicas.offsets, cluster.brokers.ids[new.replicas.values].astype(np.int32))
    both = Assignments(Ragged.chain([table.replicas, lists]), np.concatenate([table.flags, new.flags])).take(source)
    return replace(table, replicas=both.replicas, flags=both.flags)


def is_reassigning(context: Context, rows: Int32) -> Bool:
    """Whether any replica of each row is being added or removed."""
    present = current(context.cluster.partitions, rows)
    return present.replicas.any(present.flags != 0)


def targets_in_sync(context: Context, rows: Int32) -> Bool:
    """Whether all target replicas of each row are in its ISR, live or not."""
    target = current(context.cluster.partitions, rows).target().replicas
    isr = context.cluster.partitions.lists("isr", rows)
    return ~target.any(~members(target, isr))


def reassigned_to(context: Context, rows: Int32, targets: Ragged) -> Assignments:
    """The assignments that lead ``rows`` to ``targets`` (broker indexes). A broker that is named twice counts once.

    replicas = target ++ (origin - target); adding = target - origin; removing = origin - target.
    """
    targets = distinct(targets)
    origin = current(context.cluster.partitions, rows).origin().replicas
    added, removed = ~members(targets, origin), origin.keep(~members(origin, targets))
    offsets = offsets_of(targets.counts + removed.counts)
    values, flags = np.empty(offsets[-1], np.int32), np.zeros(offsets[-1], np.uint8)
    target_positions = _positions(offsets[:-1], targets)
    values[target_positions], flags[target_positions] = targets.values, np.where(added, _ADDING, np.uint8(0))
    removed_positions = _positions(offsets[:-1] + targets.counts, removed)
    values[removed_positions], flags[removed_positions] = removed.values, _REMOVING
    return Assignments(Ragged(offsets, values), flags)


def _positions(starts: Int32, lists: Ragged) -> NDArray[np.int64]:
    """The position of each value if list ``i`` begins at ``starts[i]``."""
    within = np.arange(len(lists.values)) - np.repeat(lists.offsets[:-1], lists.counts)
    return np.repeat(starts, lists.counts).astype(np.int64) + within
