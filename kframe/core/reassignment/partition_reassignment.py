"""Reassignment of partitions to other brokers (KIP-455; Kafka 3.9 ``onPartitionReassignment``).

A reassignment is part of the assignment: replicas that are being added or removed carry a flag, in memory and in
storage, so that any later controller resumes it. Kafka works partition by partition. Here each phase covers all
partitions of a request. ``STRICT_REASSIGNMENT`` enables the departures in ``docs/reference/departures-from-kafka.md``.
"""

from __future__ import annotations

import numpy as np

from kframe.core.context import ATTEMPTS_MAX, Context, Operation, ask, stale
from kframe.core.reassignment import offline_log_dirs
from kframe.core.reassignment.moving_replicas import flagged_replicas, new_replicas, removed_replicas
from kframe.core.state_machines import leader_election, partition_state_machine, replica_state_machine
from kframe.core.state_machines.isr_removals import remove_from_isrs
from kframe.core.state_machines.leader_election import queue_leader_and_isr
from kframe.core.state_machines.replica_state_machine import PartitionReplicas
from kframe.core.topics import topic_deletion, topic_metadata, unknown_brokers
from kframe.core.topics.replica_assignment import (
    Assignments,
    current,
    is_complete,
    reassigned_to,
    reassigns,
    set_assignments,
)
from kframe.core.topics.stored_reassignments import forget_stored, locate, remove_stored
from kframe.model.arrays import Bool, Int32, Ragged
from kframe.model.changes import StateChange
from kframe.model.config import STRICT_REASSIGNMENT
from kframe.model.ids import NO_LEADER, NO_STATE, PartitionState, ReplicaFlag, ReplicaState
from kframe.model.lists import distinct_rows, distinct_values, members, without_values
from kframe.model.log_entries import Message
from kframe.model.row_views import values_at
from kframe.ports.store_requests import ReadReassignments

_NONE = np.empty(0, np.int32)
#: A replica with one of these flags cannot lead after the reassignment.
_INELIGIBLE = int(ReplicaFlag.OFFLINE_DIR | ReplicaFlag.REMOVING)


def reassign(context: Context, rows: Int32, assignments: Assignments) -> Operation[Int32]:
    """Start, change or complete the reassignment of ``rows`` to ``assignments``; return the rows that failed.

    Rows are unique and ascending. A row of a topic that is queued for deletion must keep its assignment.
    """
    p, refused = context.cluster.partitions, _NONE
    if context.config[STRICT_REASSIGNMENT]:
        loses_data = _loses_all_in_sync(context, rows, assignments)
        context.log_refused("Partition", rows[loses_data], "keeps its replicas: all in-sync ones would be deleted")
        refused = rows[loses_data]
        rows, assignments = rows[~loses_data], assignments.take(~loses_data)
    if len(rows) == 0:
        return refused
    topics = distinct_rows(p.topic[rows], len(context.cluster.topics))
    topic_deletion.halt(context, topics, topic_deletion.REASSIGNING)
    unstored = yield from _change_assignments(context, rows, assignments)
    refused, rows = np.concatenate([refused, unstored]), _without(rows, unstored)
    p.set_reassigning(rows, True)
    if context.config[STRICT_REASSIGNMENT]:
        yield from _initialise_leaders(context, rows)
        rows = rows[p.reassigning(rows)]
    complete = is_complete(context, rows)
    failed = yield from _begin(context, rows[~complete])
    lost = yield from _complete(context, rows[complete])
    return np.sort(np.concatenate([refused, failed, lost]))


def _loses_all_in_sync(context: Context, rows: Int32, assignments: Assignments) -> Bool:
    """Which rows would lose every in-sync replica and so their records.

    Kafka lets an operator override a reassignment so that only replicas remain that have not caught up.
    """
    p = context.cluster.partitions
    isr, changed = p.lists("isr", rows), np.zeros(len(rows), np.bool_)
    changed[reassigns(p, rows, assignments)] = True
    stays = isr.any(members(isr, assignments.replicas))
    loses: Bool = changed & (p.partition_epoch[rows] != NO_STATE) & (isr.counts > 0) & ~stays
    return loses


def resume(context: Context, rows: Int32) -> Operation[None]:
    """Continue the reassignments that the assignments of ``rows`` show.

    With ``STRICT_REASSIGNMENT`` topics queued for deletion are skipped. In Kafka their deletion waits for the
    reassignment, and the reassignment may wait for a leader, which such a topic does not get.
    """
    rows = np.sort(rows)
    if context.config[STRICT_REASSIGNMENT]:
        rows = rows[~context.cluster.is_deleting(rows)]
    yield from reassign(context, rows, current(context.cluster.partitions, rows))


def resume_on(context: Context, brokers: Int32) -> Operation[None]:
    """Continue the reassignments whose target contains one of these brokers (indexes)."""
    p = context.cluster.partitions
    rows = p.reassigning_rows()
    slots, owner = p.slots_of(rows), np.repeat(rows, p.replica_count[rows])
    in_target = np.isin(p.replica[slots], brokers)
    in_target &= ~p.are_flagged(slots, ReplicaFlag.REMOVING)
    yield from resume(context, distinct_values(owner[in_target]).astype(np.int32))


def complete_where_in_sync(context: Context, rows: Int32) -> Operation[None]:
    """ISRs of ``rows`` have changed. Complete the reassignments whose targets are in sync."""
    p = context.cluster.partitions
    rows = distinct_values(rows[p.reassigning(rows)]).astype(np.int32)
    if len(rows) == 0:
        return
    rows = rows[is_complete(context, rows)]
    context.log.add_partitions(Message.TARGETS_CAUGHT_UP, context.cluster, rows)
    yield from resume(context, rows)


def _initialise_leaders(context: Context, rows: Int32) -> Operation[None]:
    """Give New partitions of ``rows`` their first leader, since the new assignment may have a live replica.

    Kafka does so only when a broker starts or fails.
    """
    p = context.cluster.partitions
    new = rows[(p.partition_epoch[rows] == NO_STATE) & (p.states_of(rows) == PartitionState.NEW)]
    result = yield from partition_state_machine.transition(context, new, PartitionState.ONLINE)
    yield from on_leaders_initialised(context, result.initialised)


def on_leaders_initialised(context: Context, rows: Int32) -> Operation[None]:
    """``rows`` have their first leader: with ``STRICT_REASSIGNMENT`` begin reassignments that were stored before.

    A reassignment ends at once if the first ISR is its target. Kafka leaves it until the next failover, since no ISR
    changes any more. This precedes resuming reassignments that wait for a broker, which expect added replicas to exist.
    """
    reassigning = rows[context.cluster.partitions.reassigning(rows)]
    if len(reassigning) and context.config[STRICT_REASSIGNMENT]:
        replica_state_machine.set_new(context, new_replicas(context, reassigning))
        adding = flagged_replicas(context, reassigning, ReplicaFlag.ADDING)
        yield from replica_state_machine.transition(context, adding, ReplicaState.ONLINE)
        yield from complete_where_in_sync(context, reassigning)


def reassign_stored(context: Context) -> Operation[Int32]:
    """Start the stored reassignments; return the rows in progress. Failed ones leave ``/admin/reassign_partitions``.

    The only checks are that the partition exists (Kafka 3.9 ``processZkPartitionReassignment``) and that every
    replica is a broker.
    """
    stored = yield from ask(ReadReassignments())
    if stored is None:
        return _NONE
    stored = stored.take(distinct_values(stored.last_named()))
    located, _ = locate(context, stored)
    located[stored.replicas.any(unknown_brokers.is_unknown(context, stored.replicas.values))] = -1
    known = np.flatnonzero(located >= 0)
    targets = Ragged(stored.replicas.offsets, context.cluster.brokers.index_of(stored.replicas.values)).take(known)
    order = np.argsort(located[known])
    rows = located[known][order]
    failed = yield from reassign(context, rows, reassigned_to(context, rows, targets.take(order)))
    yield from remove_stored(context, stored, located, failed)
    return without_values(rows, failed).astype(np.int32)


def _change_assignments(context: Context, rows: Int32, assignments: Assignments) -> Operation[Int32]:
    """Store and apply the assignments that change, and stop the replicas that they remove (Kafka's step U).

    Returns the rows that keep their assignment because storage refused: their topics are deleted or unreadable.
    """
    p = context.cluster.partitions
    changed = reassigns(p, rows, assignments)
    rows, assignments = rows[changed], assignments.take(changed)
    if context.config[STRICT_REASSIGNMENT]:
        # If the role is lost here, the next controller sends the new list. Under an unchanged leader epoch leaders
        # would ignore it. Assignments with flags get another epoch from that controller anyway.
        final = ~assignments.replicas.any(assignments.flags != 0)
        yield from raise_epochs(context, rows[final & (p.partition_epoch[rows] != NO_STATE)])
    unstored = yield from topic_metadata.store(context, rows, assignments)
    if context.config[STRICT_REASSIGNMENT]:
        yield from announce(context, unstored[p.partition_epoch[unstored] != NO_STATE])
    if len(unstored):
        stored = ~np.isin(rows, unstored)
        rows, assignments = rows[stored], assignments.take(stored)
    if len(rows) == 0:
        return unstored
    removed = removed_replicas(context, rows, set_assignments(context, rows, assignments))
    offline_log_dirs.record_removed(context, removed)
    offline_log_dirs.restore_flags(context, rows)
    context.log.add_partitions(Message.ASSIGNMENT_UPDATED, context.cluster, rows)
    context.gauges.touch(rows)
    yield from stop_replicas(context, removed)
    if context.config[STRICT_REASSIGNMENT]:
        yield from _elect_where_leader_removed(context, rows)
    return unstored


def _elect_where_leader_removed(context: Context, rows: Int32) -> Operation[None]:
    """Elect leaders where the assignment has just dropped the leader.

    Kafka counts such a partition as Online, so no event but a failover would elect a leader.
    """
    p = context.cluster.partitions
    leaderless = rows[(p.states_of(rows) == PartitionState.ONLINE) & (p.leader[rows] == NO_LEADER)]
    result = yield from partition_state_machine.transition(context, leaderless, PartitionState.ONLINE)
    yield from partition_state_machine.transition(context, result.failed, PartitionState.OFFLINE)


def stop_replicas(context: Context, replicas: PartitionReplicas) -> Operation[None]:
    """Stop and delete replicas that left an assignment, without waiting for the brokers' confirmation."""
    for target in (
        ReplicaState.OFFLINE,
        ReplicaState.DELETION_STARTED,
        ReplicaState.DELETION_SUCCESSFUL,
        ReplicaState.NON_EXISTENT,
    ):
        yield from replica_state_machine.transition(context, replicas, target)


def _begin(context: Context, rows: Int32) -> Operation[Int32]:
    """Phase A: raise the leader epoch so that brokers accept the new list. Then start the added replicas."""
    if len(rows) == 0:
        return rows
    raised = yield from announce(context, rows)
    yield from replica_state_machine.transition(context, new_replicas(context, raised), ReplicaState.NEW)
    return _without(rows, raised) if len(raised) < len(rows) else rows[:0]


def _complete(context: Context, rows: Int32) -> Operation[Int32]:
    """Phase B: the target is in sync. Make it the assignment, elect a leader in it, and remove the other replicas.

    Returns the rows that fail. A row that never had a leader fails half-way, as in Kafka: its target is the assignment,
    but it stays in progress. A row with an empty target fails before any replica is stopped. If no replica of the
    target can lead, Kafka removes the others anyway, and with them the last complete logs. With
    ``STRICT_REASSIGNMENT`` the row waits.
    """
    p = context.cluster.partitions
    targets = current(p, rows).reached()
    empty: Bool = targets.replicas.counts == 0
    context.log_refused("Partition", rows[empty], "keeps its replicas: its target is empty")
    emptied: Int32 = rows[empty]
    if context.config[STRICT_REASSIGNMENT]:
        # Else the leader of an overridden reassignment keeps the replicas of that reassignment.
        yield from announce(context, emptied[p.partition_epoch[emptied] != NO_STATE])
    rows, targets = rows[~empty], targets.take(~empty)
    if len(rows) == 0:
        return emptied
    adding = flagged_replicas(context, rows, ReplicaFlag.ADDING)
    yield from replica_state_machine.transition(context, adding, ReplicaState.ONLINE)
    if context.config[STRICT_REASSIGNMENT]:
        yield from _move_leader_to_target(context, rows)
        led = yield from _keep_where_target_cannot_lead(context, rows)
        rows, targets = led, targets.take(np.searchsorted(rows, led))
    removed = set_assignments(context, rows, targets)
    offline_log_dirs.record_removed(context, removed_replicas(context, rows, removed))
    context.gauges.touch(rows)
    has_state = values_at(p.partition_epoch, rows) != NO_STATE
    failed: Int32 = np.concatenate([emptied, rows[~has_state]])
    rows, removed = rows[has_state], removed[has_state]
    if len(rows) == 0:
        return failed
    yield from elect_in_target(context, rows)
    yield from stop_replicas(context, removed_replicas(context, rows, removed))
    yield from topic_metadata.store(context, rows)
    yield from forget_stored(context, rows, only_if_reached=True)
    context.log.add_partitions(Message.ASSIGNMENT_UPDATED, context.cluster, rows)
    p.set_reassigning(rows, False)
    yield from context.announce(context.registered(), rows)
    topics = distinct_rows(p.topic[rows], len(context.cluster.topics))
    yield from topic_deletion.resume_topics(context, topics)
    return failed


def _move_leader_to_target(context: Context, rows: Int32) -> Operation[None]:
    """Elect a leader in the target and shrink ISRs to it, before leaders receive the target alone.

    Kafka notifies leaders first. They then acknowledge ``acks=all`` without the removed replicas, which are still in
    the stored ISR and may be elected if the role is lost in between. Rows whose target cannot lead do not change.
    """
    p = context.cluster.partitions
    rows = rows[p.partition_epoch[rows] != NO_STATE]
    pending = rows[~is_led_by_target(context, rows, _INELIGIBLE)]
    yield from partition_state_machine.transition(context, pending, PartitionState.ONLINE, leader_election.REASSIGN)
    removing = flagged_replicas(context, rows[is_led_by_target(context, rows, _INELIGIBLE)], ReplicaFlag.REMOVING)
    brokers = p.brokers_of(removing.slots(p))
    for broker in distinct_values(brokers).tolist():
        removed = brokers == broker
        yield from remove_from_isrs(context, brokers[removed], removing.rows[removed])


def _keep_where_target_cannot_lead(context: Context, rows: Int32) -> Operation[Int32]:
    """``rows`` without those that would lose replicas while no replica of their target leads. Those are announced."""
    p = context.cluster.partitions
    waiting = rows[(p.partition_epoch[rows] != NO_STATE) & ~is_led_by_target(context, rows, _INELIGIBLE)]
    waiting = distinct_values(flagged_replicas(context, waiting, ReplicaFlag.REMOVING).rows)
    context.log_refused("Partition", waiting, "keeps its replicas: no replica of its target can lead yet")
    if len(waiting) == 0:
        return rows
    yield from announce(context, waiting)
    return np.setdiff1d(rows, waiting, assume_unique=True).astype(np.int32)


def elect_in_target(context: Context, rows: Int32) -> Operation[None]:
    """Elect where the leader is not an assigned, live replica. Elsewhere raise the epoch to announce the new list.

    Kafka sends nothing where no leader can be elected. With ``STRICT_REASSIGNMENT`` the new list is announced there,
    too: its leader epoch may have been raised already.
    """
    rows = rows[context.cluster.partitions.partition_epoch[rows] != NO_STATE]
    led = is_led_by_target(context, rows)
    result = yield from partition_state_machine.transition(
        context, rows[~led], PartitionState.ONLINE, leader_election.REASSIGN
    )
    unannounced = result.failed if context.config[STRICT_REASSIGNMENT] else _NONE
    yield from announce(context, distinct_values(np.concatenate([rows[led], unannounced])))


def is_led_by_target(context: Context, rows: Int32, ineligible: int = int(ReplicaFlag.OFFLINE_DIR)) -> Bool:
    """Whether the leader is an assigned replica on a live broker that carries none of the ``ineligible`` flags."""
    p, live = context.cluster.partitions, context.cluster.brokers.live
    replicas = p.lists("replica", rows)
    leads = replicas.values == p.leader[rows][replicas.owners]
    leads &= live[replicas.values] != 0
    leads &= ~p.are_flagged(p.slots_of(rows), ineligible)
    return replicas.any(leads)


def announce(context: Context, rows: Int32) -> Operation[Int32]:
    """Raise leader epochs and send LeaderAndIsr to all replicas. Added replicas are sent as new. Return the rows that
    succeeded."""
    raised = yield from raise_epochs(context, rows)
    if len(raised) == 0:
        return raised
    batch, recipients = context.batch(), context.cluster.brokers.registered
    new_flags = int(ReplicaFlag.ADDING)
    queue_leader_and_isr(context, batch, raised, recipients, skip_flags=0, is_new=False, new_flags=new_flags)
    yield from context.send(batch)
    context.log.add_partitions(Message.REASSIGNMENT_SENT, context.cluster, raised)
    return raised


def notify_raised_epochs(context: Context, rows: Int32, recipients: Ragged) -> Operation[None]:
    """Raise the leader epochs of ``rows``. Send them to the brokers (indexes) in ``recipients``, a list for each."""
    raised = yield from raise_epochs(context, rows)
    brokers = recipients.take(np.flatnonzero(np.isin(rows, raised)))
    batch = context.batch()
    batch.add_leader_and_isr(brokers.values, np.repeat(raised, brokers.counts), raised, is_new=False)
    yield from context.send(batch)


def raise_epochs(context: Context, rows: Int32) -> Operation[Int32]:
    """Store a leader epoch one higher for each row. Return the rows that have it, ascending."""
    p = context.cluster.partitions
    raised: list[Int32] = []
    has_state = values_at(p.partition_epoch, rows) != NO_STATE
    remaining = rows[has_state]
    context.log_refused("Partition", rows[~has_state], "cannot be reassigned: it never had a leader")
    for _ in range(ATTEMPTS_MAX):
        if len(remaining) == 0:
            break
        change = StateChange(
            remaining,
            p.leaders_of(remaining),
            p.leader_epoch[remaining] + np.int32(1),
            p.recovery_of(remaining),
            _assigned_isrs(context, remaining),
            p.partition_epoch[remaining],
            context.controller_epoch,
        )
        result = yield from context.write(change)
        raised.append(remaining[result.accepted])
        remaining, _ = yield from context.refresh(remaining[stale(result)])
    updated: Int32 = raised[0] if len(raised) == 1 else np.sort(np.concatenate([rows[:0], *raised]))
    context.log.add_partitions(Message.LEADER_EPOCH_UPDATED, context.cluster, updated)
    return updated


def _assigned_isrs(context: Context, rows: Int32) -> Ragged:
    """The ISRs of ``rows``. ``STRICT_REASSIGNMENT`` removes unassigned members if others remain.

    Before inter-broker protocol 2.7-IV2 a leader writes ISRs, and may add a replica that has just been removed.
    """
    p = context.cluster.partitions
    isr = p.lists("isr", rows)
    if not context.config[STRICT_REASSIGNMENT]:
        return isr
    stays = members(isr, p.lists("replica", rows)) | (isr.values == p.leaders_of(rows)[isr.owners])
    return isr if stays.all() else isr.keep(stays | ~isr.any(stays)[isr.owners])


def _without(rows: Int32, removed: Int32) -> Int32:
    """``rows`` (unique, ascending) that are not in ``removed``."""
    return rows[~np.isin(rows, removed)] if len(removed) else rows
