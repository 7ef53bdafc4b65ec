"""Reassignment as in Kafka 0.8 (``reassignment.protocol=0.8``): no cancellation and no override.

Kafka 0.8.2 ``onPartitionReassignment`` has twelve steps. Storage knows only the assigned replicas, the original ones
(OAR) followed by the added ones of the target (RAR). ``/admin/reassign_partitions`` alone stores the target, so the
next controller resumes from there.
"""

from __future__ import annotations

import numpy as np

from kframe.core.context import Context, Operation, ask
from kframe.core.reassignment.moving_replicas import removed_replicas
from kframe.core.reassignment.partition_reassignment import (
    elect_in_target,
    notify_raised_epochs,
    stop_replicas,
)
from kframe.core.state_machines import replica_state_machine
from kframe.core.topics import topic_metadata
from kframe.core.topics.replica_assignment import Assignments, set_assignments
from kframe.core.topics.stored_reassignments import forget_stored, locate, remove_stored
from kframe.model.arrays import Bool, Int32, Ragged
from kframe.model.ids import ReplicaState
from kframe.model.lists import distinct, distinct_values, members, same_lists
from kframe.model.tables import Targets
from kframe.ports.store_requests import ReadReassignments, WriteReassignments


def submit(context: Context, rows: Int32, targets: Ragged) -> Operation[Int32]:
    """Start reassignments of ``rows`` to ``targets`` (broker indexes); return the refused rows.

    A reassignment to the present list, to a replica that is not live, or of a partition in progress is refused. The
    others are added to ``/admin/reassign_partitions``.
    """
    refused = _is_refused(context, rows, targets) | _in_progress(context, rows)
    accepted, targets = rows[~refused], targets.take(np.flatnonzero(~refused))
    if len(accepted):
        stored = yield from ask(ReadReassignments())
        added = _named_targets(context, accepted, targets)
        yield from ask(WriteReassignments(added if stored is None else stored.join(added)))
        yield from _start(context, accepted, targets)
    return rows[refused]


def submit_stored(context: Context) -> Operation[Int32]:
    """Start or resume the stored reassignments; return the rows in progress. Refused ones leave the record.

    A broker that is named twice counts once. A reassignment in progress keeps its first target.
    """
    stored = yield from ask(ReadReassignments())
    if stored is None:
        return np.empty(0, np.int32)
    stored = stored.take(distinct_values(stored.last_named()))
    located, known = locate(context, stored)
    order = known[np.argsort(located[known])]
    targets = Ragged(stored.replicas.offsets, context.cluster.brokers.index_of(stored.replicas.values)).take(order)
    rows, targets = located[order], distinct(targets)
    in_progress = _in_progress(context, rows)
    refused = _is_refused(context, rows, targets) & ~in_progress
    new = ~in_progress & ~refused
    yield from _start(context, rows[new], targets.take(np.flatnonzero(new)))
    yield from remove_stored(context, stored, located, rows[refused])
    return rows[~refused]


def _start(context: Context, rows: Int32, targets: Ragged) -> Operation[None]:
    """Steps 1 to 3: assign OAR + RAR, notify the old replicas, start the new ones. Complete what is in sync already."""
    if len(rows) == 0:
        return
    p, before = context.cluster.partitions, context.cluster.partitions.lists("replica", rows)
    added = Ragged.chain([before, targets.keep(~members(targets, before))])
    interleaved = np.arange(2 * len(rows)).reshape(2, -1).T.ravel()
    both = added.take(interleaved)
    replicas = Ragged(both.offsets[::2].copy(), both.values)
    assignments = Assignments(replicas, np.zeros(len(replicas.values), np.uint8))
    unstored = yield from topic_metadata.store(context, rows, assignments)
    stored = np.flatnonzero(~np.isin(rows, unstored))
    rows, targets, before, assignments = (
        rows[stored],
        targets.take(stored),
        before.take(stored),
        assignments.take(stored),
    )
    if len(rows) == 0:
        return
    set_assignments(context, rows, assignments)
    for i, row in enumerate(rows.tolist()):
        context.term.legacy_reassignments[row] = tuple(context.cluster.brokers.ids_of(targets[i]))
    p.set_reassigning(rows, True)
    yield from notify_raised_epochs(context, rows, before)
    assigned = replica_state_machine.replicas_of(context, rows)
    new = p.replica_states(assigned.slots(p)) == ReplicaState.NON_EXISTENT
    yield from replica_state_machine.transition(context, assigned.where(new), ReplicaState.NEW)
    yield from complete(context, rows)


def complete(context: Context, rows: Int32) -> Operation[None]:
    """Steps 5 to 12 for the ``rows`` in progress whose RAR is in sync: drop the other replicas."""
    p, brokers = context.cluster.partitions, context.cluster.brokers
    in_progress = context.term.legacy_reassignments
    rows = distinct_values(rows[_in_progress(context, rows)]).astype(np.int32)
    targets = Ragged.of([brokers.index_of(in_progress[row]).tolist() for row in rows.tolist()])
    in_sync = ~targets.any(~members(targets, p.lists("isr", rows))) if len(rows) else np.empty(0, np.bool_)
    rows, targets = rows[in_sync], targets.take(np.flatnonzero(in_sync))
    if len(rows) == 0:
        return
    in_target = members(p.lists("replica", rows), targets)
    reassigned = replica_state_machine.replicas_of(context, rows).where(in_target)
    yield from replica_state_machine.transition(context, reassigned, ReplicaState.ONLINE)
    removed = set_assignments(context, rows, Assignments(targets, np.zeros(len(targets.values), np.uint8)))
    yield from elect_in_target(context, rows)
    yield from stop_replicas(context, removed_replicas(context, rows, removed))
    yield from topic_metadata.store(context, rows)
    yield from forget_stored(context, rows, only_if_reached=False)
    for row in rows.tolist():
        del in_progress[row]
    p.set_reassigning(rows, False)
    yield from context.announce(context.registered(), rows)


def _is_refused(context: Context, rows: Int32, targets: Ragged) -> Bool:
    p, live = context.cluster.partitions, context.cluster.brokers.live
    unchanged = same_lists(targets, p.lists("replica", rows))
    dead = targets.any(live[targets.values] == 0)
    refused: Bool = unchanged | dead | (targets.counts == 0)
    return refused


def _in_progress(context: Context, rows: Int32) -> Bool:
    return np.array([row in context.term.legacy_reassignments for row in rows.tolist()], np.bool_)


def _named_targets(context: Context, rows: Int32, targets: Ragged) -> Targets:
    cluster = context.cluster
    p = cluster.partitions
    named = [
        ((cluster.topics.names[p.topic[row]], int(p.partition[row])), cluster.brokers.ids_of(targets[i]))
        for i, row in enumerate(rows.tolist())
    ]
    return Targets.of(named)
