"""What an operator has left in storage to be reassigned (``/admin/reassign_partitions``): taking things out of it."""

from __future__ import annotations

import numpy as np

from kframe.core.context import Context, Operation, ask
from kframe.model.asks import ReadReassignments, WriteReassignments
from kframe.model.columns import Int32, Ragged
from kframe.model.effects import Enqueue
from kframe.model.events import ReassignmentsLeft
from kframe.model.lists import same_lists
from kframe.model.tables import Targets

_NONE = np.empty(0, np.int32)


def forget_stored(context: Context, rows: Int32, only_if_reached: bool) -> Operation[None]:
    """Take ``rows`` out of what an operator has left in storage to be reassigned.

    With ``only_if_reached`` a partition stays if storage wants other replicas for it than it has now.
    """
    left = yield from ask(ReadReassignments())
    if left is None:
        return
    found, _ = locate(context, left, unmovable=True)
    ours = (found >= 0) & np.isin(found, rows)
    if only_if_reached:
        here = np.flatnonzero(ours)
        now = context.cluster.partitions.lists("replica", found[here])
        ids = Ragged(now.offsets, context.cluster.brokers.ids[now.values])
        ours[here] = same_lists(ids, left.replicas.take(here))
    yield from _leave(left.take(np.flatnonzero(~ours)))


def strike(context: Context, left: Targets, rows: Int32, refused: Int32) -> Operation[None]:
    """Take out of storage what of ``left`` is unknown (``rows`` beside it, -1) or stands in a refused row."""
    struck = np.flatnonzero((rows < 0) | np.isin(rows, refused))
    still = (yield from ask(ReadReassignments())) if len(struck) else None
    if still is not None:
        yield from _leave(_without(still, left.take(struck)))


def locate(context: Context, targets: Targets, unmovable: bool = False) -> tuple[Int32, Int32]:
    """Row of each target, -1 if it is unknown; and the positions of the others.

    Topics that are queued for deletion, and partitions without any replica, count as unknown unless ``unmovable``.
    """
    topics, p = context.cluster.topics, context.cluster.partitions
    index = np.array([-1 if (found := topics.find(name)) is None else found for name in targets.names], np.int32)
    topic = index[targets.topic] if len(targets) else _NONE
    rows = np.full(len(targets), -1, np.int32)
    known = (topic >= 0) & (unmovable | (np.append(topics.deleting, 1)[topic] == 0))
    rows[known] = topics.locate(topic[known], targets.partition[known])
    if not unmovable:
        rows[(rows >= 0) & (np.append(p.replica_count, 0)[rows] == 0)] = -1
    return rows, np.flatnonzero(rows >= 0).astype(np.int32)


def _leave(targets: Targets) -> Operation[None]:
    """Write what is still to be reassigned; once nothing is, look again, which also watches for the next."""
    yield from ask(WriteReassignments(targets))
    if len(targets) == 0:
        yield Enqueue(ReassignmentsLeft())


def _without(left: Targets, gone: Targets) -> Targets:
    names = {(gone.names[gone.topic[i]], int(gone.partition[i])) for i in range(len(gone))}
    keep = [i for i in range(len(left)) if (left.names[left.topic[i]], int(left.partition[i])) not in names]
    return left.take(np.array(keep, np.int64))
