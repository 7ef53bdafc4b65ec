"""The algebra of assignments (Kafka 3.9 ``ReplicaAssignment``): origin, target, and what a new target makes of them."""

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
_MOVING = np.uint8(_ADDING | _REMOVING)


@dataclass(frozen=True, slots=True, eq=False)
class Assignments:
    """Replica lists (broker indexes) of some partitions, with ADDING and REMOVING flags beside ``replicas.values``."""

    replicas: Ragged
    flags: UInt8

    def take(self, chosen: NDArray[Any]) -> Assignments:
        """Those that a mask or positions choose."""
        positions = np.flatnonzero(chosen) if chosen.dtype == np.bool_ else chosen
        flags = Ragged(self.replicas.offsets, self.flags.astype(np.int32)).take(positions).values
        return Assignments(self.replicas.take(positions), flags.astype(np.uint8))

    def keep(self, wanted: Bool) -> Assignments:
        """The replicas that a mask beside ``replicas.values`` chooses."""
        return Assignments(self.replicas.keep(wanted), self.flags[wanted])

    def origin(self) -> Assignments:
        """Without the replicas that are being added."""
        return self.keep((self.flags & _ADDING) == 0)

    def target(self) -> Assignments:
        """Without the replicas that are being removed."""
        return self.keep((self.flags & _REMOVING) == 0)

    def reached(self) -> Assignments:
        """What stands once the reassignment is complete: the target, nothing being added or removed."""
        target = self.target()
        return Assignments(target.replicas, np.zeros_like(target.flags))


def assign(partitions: Partitions, rows: Int32, assignments: Assignments) -> Int32:
    """Give ``rows`` (unique) these assignments; return how many replicas left each list.

    Those stand in the slots behind the list, with their states, until the row is given another one.
    """
    lists = assignments.replicas
    held = partitions.replica_count[rows].astype(np.int32)
    partitions.ensure_capacity(rows, lists.counts + held)
    longest, departed = int(held.max(initial=0)), np.empty(len(rows), np.int32)
    kernels.assign_replicas(
        rows, lists.offsets, lists.values, assignments.flags, partitions.slot_start, partitions.replica_count,
        partitions.replica, partitions.replica_state, partitions.replica_flags, np.empty(longest, np.int32),
        np.empty(longest, np.uint8), np.empty(longest, np.uint8), departed,
    )  # fmt: skip
    return departed


def give(context: Context, rows: Int32, assignments: Assignments) -> Int32:
    """``assign`` in the controller's own columns."""
    context.replica_index.note(rows)
    return assign(context.cluster.partitions, rows, assignments)


def current(partitions: Partitions, rows: Int32) -> Assignments:
    """The assignments of ``rows`` as they stand."""
    slots, offsets = partitions.slots_of(rows), offsets_of(partitions.replica_count[rows])
    return Assignments(Ragged(offsets, partitions.hosts_of(slots)), partitions.replica_flags[slots] & _MOVING)


def reassigns(partitions: Partitions, rows: Int32, assignments: Assignments) -> Int32:
    """Positions of those ``rows`` that have another list, or other replicas being added or removed."""
    lists, differs = assignments.replicas, np.empty(len(rows), np.uint8)
    kernels.mark_reassigned(
        rows, lists.offsets, lists.values, assignments.flags, int(_MOVING), partitions.slot_start,
        partitions.replica_count, partitions.replica, partitions.replica_flags, differs,
    )  # fmt: skip
    return np.flatnonzero(differs).astype(np.int32)


def table_of(cluster: ClusterState, topics: NDArray[Any]) -> TopicTable:
    """Names, ids and assignments of topics (unique indexes) as storage would have them."""
    p, rows = cluster.partitions, cluster.topics.rows_of_all(topics)
    offsets = offsets_of(p.replica_count[rows])
    values, flags = np.empty(offsets[-1], np.int32), np.empty(offsets[-1], np.uint8)
    kernels.copy_assignments(
        rows, p.slot_start, p.replica_count, p.replica, p.replica_flags, cluster.brokers.ids, int(_MOVING), values,
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
    """``table_of``, with ``assignments`` in place of what those of ``rows`` have that are of these topics."""
    table, there = table_of(cluster, topics), cluster.topics.rows_of_all(topics)
    ours = np.flatnonzero(np.isin(rows, there))
    place = np.arange(len(there))
    order = np.argsort(there)
    place[order[np.searchsorted(there[order], rows[ours])]] = len(there) + np.arange(len(ours))
    wanted = assignments.take(ours)
    lists = Ragged(wanted.replicas.offsets, cluster.brokers.ids[wanted.replicas.values].astype(np.int32))
    both = Assignments(Ragged.chain([table.replicas, lists]), np.concatenate([table.flags, wanted.flags])).take(place)
    return replace(table, replicas=both.replicas, flags=both.flags)


def is_moving(context: Context, rows: Int32) -> Bool:
    """Whether any replica of each row is being added or removed."""
    now = current(context.cluster.partitions, rows)
    return now.replicas.any(now.flags != 0)


def targets_in_sync(context: Context, rows: Int32) -> Bool:
    """Whether all target replicas of each row are in its ISR, alive or not."""
    target = current(context.cluster.partitions, rows).target().replicas
    isr = context.cluster.partitions.lists("isr", rows)
    return ~target.any(~members(target, isr))


def reassigned_to(context: Context, rows: Int32, targets: Ragged) -> Assignments:
    """What ``rows`` are to be assigned to reach ``targets`` (broker indexes): the target first, then what leaves.

    A broker that a target names twice counts once.
    replicas = target ++ (origin - target); adding = target - origin; removing = origin - target.
    """
    targets = distinct(targets)
    origin = current(context.cluster.partitions, rows).origin().replicas
    added, left = ~members(targets, origin), origin.keep(~members(origin, targets))
    offsets = offsets_of(targets.counts + left.counts)
    values, flags = np.empty(offsets[-1], np.int32), np.zeros(offsets[-1], np.uint8)
    at_target = _spread(offsets[:-1], targets)
    values[at_target], flags[at_target] = targets.values, np.where(added, _ADDING, np.uint8(0))
    at_left = _spread(offsets[:-1] + targets.counts, left)
    values[at_left], flags[at_left] = left.values, _REMOVING
    return Assignments(Ragged(offsets, values), flags)


def _spread(starts: Int32, lists: Ragged) -> NDArray[np.int64]:
    """Where the values of each list go if list ``i`` begins at ``starts[i]``."""
    within = np.arange(len(lists.values)) - np.repeat(lists.offsets[:-1], lists.counts)
    return np.repeat(starts, lists.counts).astype(np.int64) + within
