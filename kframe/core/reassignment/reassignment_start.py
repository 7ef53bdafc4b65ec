"""Which of the two ways of moving partitions is asked: today's, or Kafka 0.8's."""

from __future__ import annotations

import numpy as np

from kframe.core.context import Context, Operation
from kframe.core.reassignment import partition_reassignment, protocol_08
from kframe.core.topics import unknown_brokers
from kframe.core.topics.replica_assignment import reassigned_to
from kframe.model.columns import Int32


def take_up(context: Context) -> Operation[Int32]:
    """Begin or resume what an operator has left in storage; return the rows under way."""
    way = protocol_08.submit_stored if protocol_08.enabled(context) else partition_reassignment.reassign_stored
    rows = yield from way(context)
    return rows


def isrs_changed(context: Context, rows: Int32) -> Operation[None]:
    """ISRs of ``rows`` have changed: finish the moves that waited for it."""
    if protocol_08.enabled(context):
        yield from protocol_08.complete(context, rows)
    else:
        yield from partition_reassignment.complete_where_in_sync(context, rows)


def resume_all(context: Context) -> Operation[None]:
    """At failover: first what is left in storage, then every other move that the assignments show."""
    resumed = yield from take_up(context)
    moving = np.flatnonzero(context.cluster.partitions.reassigning).astype(np.int32)
    if not protocol_08.enabled(context):
        yield from partition_reassignment.resume(context, np.setdiff1d(moving, resumed).astype(np.int32))


def relieve(context: Context) -> Operation[None]:
    """Move partitions that have a state off nodes that are no brokers, as a reassignment would.

    Another controller has brought them online as they were. Kafka 0.8's way has no reassignment but an operator's.
    """
    _, rows = unknown_brokers.held(context)
    if len(rows) == 0:
        return
    if protocol_08.enabled(context):
        context.log_refused("Partition", rows, "is assigned to what is no broker: reassign it")
        return
    rows, targets = unknown_brokers.relieved(context, rows)
    yield from partition_reassignment.reassign(context, rows, reassigned_to(context, rows, targets))
