"""The reassignments that operators store in ``/admin/reassign_partitions``: locating and removing them."""

from __future__ import annotations

import numpy as np

from kframe.core.context import Context, Operation, ask
from kframe.model.arrays import Int32, Ragged
from kframe.model.effects import Enqueue
from kframe.model.events import ReassignmentsStored, TopicPartition
from kframe.model.lists import same_lists
from kframe.model.tables import Targets
from kframe.ports.store_requests import ReadReassignments, WriteReassignments

_NONE = np.empty(0, np.int32)


def forget_stored(context: Context, rows: Int32, only_if_reached: bool) -> Operation[None]:
    """Remove ``rows`` from the stored reassignments.

    With ``only_if_reached`` a row stays if its stored target differs from its present replicas.
    """
    stored = yield from ask(ReadReassignments())
    if stored is None:
        return
    located, _ = locate(context, stored, include_deleting=True)
    removed = (located >= 0) & np.isin(located, rows)
    if only_if_reached:
        positions = np.flatnonzero(removed)
        present = context.cluster.partitions.lists("replica", located[positions])
        ids = Ragged(present.offsets, context.cluster.brokers.ids[present.values])
        removed[positions] = same_lists(ids, stored.replicas.take(positions))
    yield from _write(stored.take(np.flatnonzero(~removed)))


def remove_stored(context: Context, stored: Targets, rows: Int32, refused: Int32) -> Operation[None]:
    """Remove from storage the targets that are unknown (-1 in ``rows``, beside ``stored``) or in ``refused`` rows."""
    removed = np.flatnonzero((rows < 0) | np.isin(rows, refused))
    present = (yield from ask(ReadReassignments())) if len(removed) else None
    if present is not None:
        yield from _write(_without(present, stored.take(removed)))


def locate(context: Context, targets: Targets, include_deleting: bool = False) -> tuple[Int32, Int32]:
    """The row of each target, -1 if unknown. Also the positions of the known targets.

    Topics queued for deletion, and partitions without any replica, are unknown unless ``include_deleting``.
    """
    topics = context.cluster.topics
    indexes = (topics.find(name) for name in targets.names)
    index = np.array([-1 if known is None else known for known in indexes], np.int32)
    topic = index[targets.topic] if len(targets) else _NONE
    rows = np.full(len(targets), -1, np.int32)
    known = topic >= 0
    if known.all():
        rows = topics.locate(topic, targets.partition)
    else:
        rows[known] = topics.locate(topic[known], targets.partition[known])
    rows = rows if include_deleting else without_deleting(context, rows)
    return rows, np.flatnonzero(rows >= 0).astype(np.int32)


def without_deleting(context: Context, rows: Int32) -> Int32:
    """``rows``, with -1 instead of those of topics queued for deletion, and of those without any replica."""
    cluster = context.cluster
    if len(cluster) == 0:
        return rows
    excluded = cluster.is_deleting(rows) | (cluster.partitions.replica_count[rows] == 0)
    return np.where(excluded, np.int32(-1), rows)


def _write(targets: Targets) -> Operation[None]:
    """Write the remaining reassignments. Once none remains, read again, which also sets the watch for the next."""
    yield from ask(WriteReassignments(targets))
    if len(targets) == 0:
        yield Enqueue(ReassignmentsStored())


def _without(targets: Targets, removed: Targets) -> Targets:
    dropped = set(_partitions(removed))
    remaining = [i for i, partition in enumerate(_partitions(targets)) if partition not in dropped]
    return targets.take(np.array(remaining, np.int64))


def _partitions(targets: Targets) -> list[TopicPartition]:
    topics, partitions = targets.topic.tolist(), targets.partition.tolist()
    return [(targets.names[topic], partition) for topic, partition in zip(topics, partitions, strict=True)]
