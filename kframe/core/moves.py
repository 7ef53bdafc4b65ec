"""Which of the two ways of moving partitions is asked: today's, or Kafka 0.8's."""

from __future__ import annotations

import numpy as np

from kframe.core import reassignment, reassignment_08
from kframe.core.context import Context, Operation
from kframe.model.columns import Int32


def take_up(context: Context) -> Operation[Int32]:
    """Begin or resume what an operator has left in storage; return the rows under way."""
    way = reassignment_08.submit_stored if reassignment_08.enabled(context) else reassignment.reassign_stored
    rows = yield from way(context)
    return rows


def isrs_changed(context: Context, rows: Int32) -> Operation[None]:
    """ISRs of ``rows`` have changed: finish the moves that waited for it."""
    if reassignment_08.enabled(context):
        yield from reassignment_08.complete(context, rows)
    else:
        yield from reassignment.complete_where_in_sync(context, rows)


def resume_all(context: Context) -> Operation[None]:
    """At failover: first what is left in storage, then every other move that the assignments show."""
    resumed = yield from take_up(context)
    moving = np.flatnonzero(context.cluster.partitions.reassigning).astype(np.int32)
    if not reassignment_08.enabled(context):
        yield from reassignment.resume(context, np.setdiff1d(moving, resumed).astype(np.int32))
