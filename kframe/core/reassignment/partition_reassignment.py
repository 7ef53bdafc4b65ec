"""Moving partitions to other brokers (KIP-455; Kafka 3.9 ``onPartitionReassignment``).

A reassignment lives in the assignment itself: replicas that are being added and removed carry a flag, in memory and in
storage, so that any later controller resumes it. What Kafka does partition by partition is done here for all partitions
of a request together, phase by phase.
"""

from __future__ import annotations

import numpy as np

from kframe.core.context import ATTEMPTS_MAX, Context, Operation, ask, stale
from kframe.core.reassignment import offline_log_dirs
from kframe.core.state_machines import leader_election, partition_state_machine, replica_state_machine
from kframe.core.state_machines.leader_election import queue_leader_and_isr
from kframe.core.state_machines.replica_state_machine import Replicas
from kframe.core.topics import topic_deletion, topic_metadata, unknown_brokers
from kframe.core.topics.replica_assignment import (
    Assignments,
    current,
    give,
    is_moving,
    reassigned_to,
    reassigns,
    targets_in_sync,
)
from kframe.core.topics.stored_reassignments import forget_stored, locate, strike
from kframe.model.asks import ReadReassignments
from kframe.model.changes import StateChange
from kframe.model.columns import Bool, Int32, Ragged, ragged_positions
from kframe.model.config import STRICT_MOVES
from kframe.model.ids import NO_LEADER, NO_STATE, PartitionState, ReplicaFlag, ReplicaState
from kframe.model.lists import members
from kframe.model.log_entries import Message

_NONE = np.empty(0, np.int32)
#: What carries one of these does not lead once a move is over.
_UNFIT = int(ReplicaFlag.OFFLINE_DIR | ReplicaFlag.REMOVING)


def reassign(context: Context, rows: Int32, assignments: Assignments) -> Operation[Int32]:
    """Begin, change or finish the reassignment of ``rows`` to ``assignments``; return the rows that failed.

    Rows are unique and ascending, of topics that are not queued for deletion unless the assignment is the current one.
    """
    p, refused = context.cluster.partitions, _NONE
    if context.config[STRICT_MOVES]:
        stranded = _strands(context, rows, assignments)
        context.log_refused("Partition", rows[stranded], "keeps its replicas: all that are in sync would be deleted")
        refused = rows[stranded]
        rows, assignments = rows[~stranded], assignments.take(~stranded)
    if len(rows) == 0:
        return refused
    topic_deletion.halt(context, np.unique(p.topic[rows]).tolist(), topic_deletion.REASSIGNING)
    unstored = yield from _change_assignments(context, rows, assignments)
    refused, rows = np.concatenate([refused, unstored]), rows[~np.isin(rows, unstored)]
    p.reassigning[rows] = 1
    if context.config[STRICT_MOVES]:
        yield from _lead_first(context, rows)
        rows = rows[p.reassigning[rows] != 0]
    complete = ~is_moving(context, rows) | targets_in_sync(context, rows)
    failed = yield from _begin(context, rows[~complete])
    lost = yield from _complete(context, rows[complete])
    return np.sort(np.concatenate([refused, failed, lost]))


def _strands(context: Context, rows: Int32, assignments: Assignments) -> Bool:
    """Which rows would lose every replica that is in sync, and with them their records: Kafka lets an operator override
    a move so that only those are left that have not caught up."""
    p = context.cluster.partitions
    isr, changed = p.lists("isr", rows), np.zeros(len(rows), np.bool_)
    changed[reassigns(p, rows, assignments)] = True
    stays = isr.any(members(isr, assignments.replicas))
    strands: Bool = changed & (p.partition_epoch[rows] != NO_STATE) & (isr.counts > 0) & ~stays
    return strands


def resume(context: Context, rows: Int32) -> Operation[None]:
    """Go on with reassignments as they stand.

    Topics that are queued for deletion are left out, once asked. Kafka has their deletion wait for the move, while the
    move may wait for a leader, which such a topic does not get: neither would ever end.
    """
    rows = np.sort(rows)
    if context.config[STRICT_MOVES]:
        rows = rows[~context.cluster.doomed(rows)]
    yield from reassign(context, rows, current(context.cluster.partitions, rows))


def resume_on(context: Context, brokers: Int32) -> Operation[None]:
    """Go on with the reassignments whose target contains one of these brokers (indexes)."""
    p = context.cluster.partitions
    rows = np.flatnonzero(p.reassigning).astype(np.int32)
    slots, owner = p.slots_of(rows), np.repeat(rows, p.replica_count[rows])
    wanted = np.isin(p.replica[slots], brokers)
    wanted &= (p.replica_flags[slots] & np.uint8(ReplicaFlag.REMOVING)) == 0
    yield from resume(context, np.unique(owner[wanted]).astype(np.int32))


def complete_where_in_sync(context: Context, rows: Int32) -> Operation[None]:
    """ISRs of ``rows`` have changed: finish those reassignments whose targets are all in sync now."""
    p = context.cluster.partitions
    rows = np.unique(rows[p.reassigning[rows] != 0]).astype(np.int32)
    done = ~is_moving(context, rows) | targets_in_sync(context, rows)
    context.log.add_partitions(Message.TARGETS_CAUGHT_UP, context.cluster, rows[done])
    yield from resume(context, rows[done])


def _lead_first(context: Context, rows: Int32) -> Operation[None]:
    """Give those of ``rows`` their first leader that have none, since their assignment may name who lives now. Kafka
    tries that when next a broker comes or goes."""
    p = context.cluster.partitions
    fresh = rows[(p.partition_epoch[rows] == NO_STATE) & (p.state[rows] == PartitionState.NEW)]
    begun = yield from partition_state_machine.transition(context, fresh, PartitionState.ONLINE)
    yield from begin_led(context, begun.initialised)


def begin_led(context: Context, rows: Int32) -> Operation[None]:
    """``rows`` have got their first leader. A move that was stored before that begins, once asked, and ends if the
    first ISR is its target: Kafka leaves it until the next failover, since no ISR will change any more. It comes before
    moves go on that wait for a broker: to these, replicas that nobody has begun are none that could come online."""
    moving = rows[context.cluster.partitions.reassigning[rows] != 0]
    if len(moving) and context.config[STRICT_MOVES]:
        replica_state_machine.set_new(context, _fresh(context, moving))
        yield from replica_state_machine.transition(
            context, _flagged(context, moving, ReplicaFlag.ADDING), ReplicaState.ONLINE
        )
        yield from complete_where_in_sync(context, moving)


def reassign_stored(context: Context) -> Operation[Int32]:
    """Take up what an operator has left in storage; return the rows under way. What fails is taken out of storage.

    Nothing is checked but that the partition exists (Kafka 3.9 ``processZkPartitionReassignment``), and that no list
    names what is no broker.
    """
    left = yield from ask(ReadReassignments())
    if left is None:
        return _NONE
    left = left.take(np.unique(left.last_named()))
    rows, _ = locate(context, left)
    rows[left.replicas.any(unknown_brokers.is_outsider(context, left.replicas.values))] = -1
    known = np.flatnonzero(rows >= 0)
    wanted = Ragged(left.replicas.offsets, context.cluster.brokers.index_of(left.replicas.values)).take(known)
    order = np.argsort(rows[known])
    chosen = rows[known][order]
    failed = yield from reassign(context, chosen, reassigned_to(context, chosen, wanted.take(order)))
    yield from strike(context, left, rows, failed)
    return np.setdiff1d(chosen, failed).astype(np.int32)


def _change_assignments(context: Context, rows: Int32, assignments: Assignments) -> Operation[Int32]:
    """Where the assignment changes: store it, take it over, and stop the replicas that fall out of it (step U).

    Returns the rows that keep what they had, since storage does not take anything else: their topics are gone, or
    cannot be read.
    """
    p = context.cluster.partitions
    changed = reassigns(p, rows, assignments)
    moved, wanted = rows[changed], assignments.take(changed)
    if context.config[STRICT_MOVES]:
        # Else the next controller, should the role be lost before leaders are told, would tell them the new list under
        # an epoch that they know, and they would keep the old one. What moves on gets another epoch from it anyway.
        ends = ~wanted.replicas.any(wanted.flags != 0)
        yield from _raise(context, moved[ends & (p.partition_epoch[moved] != NO_STATE)])
    unstored = yield from topic_metadata.store(context, moved, wanted)
    if context.config[STRICT_MOVES]:
        yield from announce(context, unstored[p.partition_epoch[unstored] != NO_STATE])
    taken = ~np.isin(moved, unstored)
    moved, wanted = moved[taken], wanted.take(taken)
    if len(moved) == 0:
        return unstored
    departed = give(context, moved, wanted)
    gone = behind(context, moved, departed)
    offline_log_dirs.note(context, gone)
    offline_log_dirs.recall(context, moved)
    context.log.add_partitions(Message.ASSIGNMENT_UPDATED, context.cluster, moved)
    context.gauges.touch(moved)
    yield from stop(context, gone)
    if context.config[STRICT_MOVES]:
        yield from _lead_the_bereft(context, moved)
    return unstored


def _lead_the_bereft(context: Context, rows: Int32) -> Operation[None]:
    """Elect where a leader has just fallen out of the assignment. Kafka leaves such a partition without a leader and
    takes it for Online, so that no event but a failover would ever give it one."""
    p = context.cluster.partitions
    bereft = rows[(p.state[rows] == PartitionState.ONLINE) & (p.leader[rows] == NO_LEADER)]
    moves = yield from partition_state_machine.transition(
        context, bereft, PartitionState.ONLINE, leader_election.OFFLINE
    )
    yield from partition_state_machine.transition(context, moves.failed, PartitionState.OFFLINE)


def behind(context: Context, rows: Int32, departed: Int32) -> Replicas:
    """The replicas that have just left the lists of ``rows``: they stand in the slots behind them."""
    p = context.cluster.partitions
    return Replicas(np.repeat(rows, departed), ragged_positions(p.replica_count[rows], departed).astype(np.int32))


def stop(context: Context, replicas: Replicas) -> Operation[None]:
    """Stop and delete replicas that left an assignment, without waiting for the brokers' confirmation."""
    for target in (
        ReplicaState.OFFLINE,
        ReplicaState.DELETION_STARTED,
        ReplicaState.DELETION_SUCCESSFUL,
        ReplicaState.NON_EXISTENT,
    ):
        yield from replica_state_machine.transition(context, replicas, target)


def _begin(context: Context, rows: Int32) -> Operation[Int32]:
    """Phase A: raise the leader epoch so that brokers take notice, then start the adding replicas."""
    if len(rows) == 0:
        return rows
    raised = yield from announce(context, rows)
    yield from replica_state_machine.transition(context, _fresh(context, raised), ReplicaState.NEW)
    return np.setdiff1d(rows, raised).astype(np.int32)


def _complete(context: Context, rows: Int32) -> Operation[Int32]:
    """Phase B: the target is in sync; make it the assignment, give it a leader, and drop the others.

    What never had a leader fails half-way, as in Kafka: its target is the assignment, but it is still under way. So
    does, before anything is stopped, what would end without any replica. Where nobody of the target can lead,
    its brokers or log directories being dead, Kafka drops the others all the same, and with them the last good logs;
    once asked the move waits.
    """
    empty: Bool = current(context.cluster.partitions, rows).target().replicas.counts == 0
    context.log_refused("Partition", rows[empty], "keeps its replicas: it is to be reassigned to none at all")
    emptied: Int32 = rows[empty]
    if context.config[STRICT_MOVES]:  # else a leader whose reassignment was overridden keeps the replicas of that
        partitions = context.cluster.partitions
        yield from announce(context, emptied[partitions.partition_epoch[emptied] != NO_STATE])
    rows = rows[~empty]
    if len(rows) == 0:
        return emptied
    cluster = context.cluster
    p = cluster.partitions
    yield from replica_state_machine.transition(
        context, _flagged(context, rows, ReplicaFlag.ADDING), ReplicaState.ONLINE
    )
    if context.config[STRICT_MOVES]:
        yield from _hand_over(context, rows)
        rows = yield from _unstuck(context, rows)
    departed = give(context, rows, current(p, rows).reached())
    offline_log_dirs.note(context, behind(context, rows, departed))
    context.gauges.touch(rows)
    stated = p.partition_epoch[rows] != NO_STATE
    lost: Int32 = np.concatenate([emptied, rows[~stated]])
    rows, departed = rows[stated], departed[stated]
    if len(rows) == 0:
        return lost
    yield from lead_by_target(context, rows)
    yield from stop(context, behind(context, rows, departed))
    yield from topic_metadata.store(context, rows)
    yield from forget_stored(context, rows, only_if_reached=True)
    context.log.add_partitions(Message.ASSIGNMENT_UPDATED, context.cluster, rows)
    p.reassigning[rows] = 0
    yield from context.announce(context.registered(), rows)
    yield from topic_deletion.resume_topics(context, np.unique(p.topic[rows]).tolist())
    return lost


def _hand_over(context: Context, rows: Int32) -> Operation[None]:
    """Let the target lead, and take who is to leave out of the ISRs, before leaders hear of the target alone.

    Kafka tells them first: they acknowledge (acks=all) without the others, who are in the stored ISR and may be elected
    if the role is lost in between. Rows for which the target has no leader to offer stay as they are.
    """
    p = context.cluster.partitions
    rows = rows[p.partition_epoch[rows] != NO_STATE]
    waiting = rows[~led_by_target(context, rows, _UNFIT)]
    yield from partition_state_machine.transition(context, waiting, PartitionState.ONLINE, leader_election.REASSIGN)
    leaving = _flagged(context, rows[led_by_target(context, rows, _UNFIT)], ReplicaFlag.REMOVING)
    brokers = p.hosts_of(leaving.slots(p))
    for broker in np.unique(brokers).tolist():
        yield from replica_state_machine.remove_from_isrs(context, broker, leaving.rows[brokers == broker])


def _unstuck(context: Context, rows: Int32) -> Operation[Int32]:
    """``rows`` without those that would lose replicas while nobody of their target leads; of those it is told."""
    p = context.cluster.partitions
    stuck = rows[(p.partition_epoch[rows] != NO_STATE) & ~led_by_target(context, rows, _UNFIT)]
    stuck = np.unique(_flagged(context, stuck, ReplicaFlag.REMOVING).rows)
    context.log_refused("Partition", stuck, "keeps its replicas for now: nobody of those that it moves to can lead")
    if len(stuck) == 0:
        return rows
    yield from announce(context, stuck)
    return np.setdiff1d(rows, stuck, assume_unique=True).astype(np.int32)


def lead_by_target(context: Context, rows: Int32) -> Operation[None]:
    """Elect where the leader is not among the assigned replicas, or dead; else raise the epoch to tell the new list.

    Where nobody can be elected Kafka tells nothing. Once asked, the new list is told there, too: the leader epoch may
    have gone up for it already.
    """
    rows = rows[context.cluster.partitions.partition_epoch[rows] != NO_STATE]
    settled = led_by_target(context, rows)
    moves = yield from partition_state_machine.transition(
        context, rows[~settled], PartitionState.ONLINE, leader_election.REASSIGN
    )
    untold = moves.failed if context.config[STRICT_MOVES] else _NONE
    yield from announce(context, np.union1d(rows[settled], untold))


def led_by_target(context: Context, rows: Int32, unfit: int = int(ReplicaFlag.OFFLINE_DIR)) -> Bool:
    """Whether the leader is one of the assigned replicas, lives, and carries none of the flags ``unfit``."""
    p, live = context.cluster.partitions, context.cluster.brokers.live
    replicas = p.lists("replica", rows)
    leads = replicas.values == p.leader[rows][replicas.owners]
    leads &= live[replicas.values] != 0
    leads &= (p.replica_flags[p.slots_of(rows)] & np.uint8(unfit)) == 0
    return replicas.any(leads)


def announce(context: Context, rows: Int32) -> Operation[Int32]:
    """Raise the leader epochs of ``rows`` and tell all replicas, adding ones as new; return the rows that succeeded."""
    p = context.cluster.partitions
    raised = yield from _raise(context, rows)
    if len(raised) == 0:
        return raised
    batch = context.batch()
    adding = int(ReplicaFlag.ADDING)
    queue_leader_and_isr(context, batch, raised, context.cluster.brokers.registered, adding, is_new=False)
    arriving = _flagged(context, raised, ReplicaFlag.ADDING)
    brokers = p.hosts_of(arriving.slots(p))
    batch.add_leader_and_isr(brokers, arriving.rows, np.unique(arriving.rows), is_new=True)
    yield from context.send(batch)
    context.log.add_partitions(Message.REASSIGNMENT_SENT, context.cluster, raised)
    return raised


def raise_epochs(context: Context, rows: Int32, told: Ragged) -> Operation[None]:
    """Raise the leader epochs of ``rows``, and tell them to the brokers (indexes) that ``told`` lists for each."""
    raised = yield from _raise(context, rows)
    chosen = told.take(np.flatnonzero(np.isin(rows, raised)))
    batch = context.batch()
    batch.add_leader_and_isr(chosen.values, np.repeat(raised, chosen.counts), raised, is_new=False)
    yield from context.send(batch)


def _raise(context: Context, rows: Int32) -> Operation[Int32]:
    """Store a leader epoch one higher for each row; return the rows that have it, ascending."""
    p = context.cluster.partitions
    raised: list[Int32] = []
    remaining = rows[p.partition_epoch[rows] != NO_STATE]
    context.log_refused("Partition", np.setdiff1d(rows, remaining), "cannot be reassigned: it never had a leader")
    for _ in range(ATTEMPTS_MAX):
        if len(remaining) == 0:
            break
        change = StateChange(
            remaining, p.leaders_of(remaining), p.leader_epoch[remaining] + np.int32(1), p.recovery[remaining],
            _in_sync(context, remaining), p.partition_epoch[remaining], context.controller_epoch,
        )  # fmt: skip
        result = yield from context.write(change)
        raised.append(remaining[result.accepted])
        remaining, _ = yield from context.refresh(remaining[stale(result)])
    found: Int32 = np.sort(np.concatenate([rows[:0], *raised]))
    context.log.add_partitions(Message.LEADER_EPOCH_UPDATED, context.cluster, found)
    return found


def _in_sync(context: Context, rows: Int32) -> Ragged:
    """The ISRs of ``rows``; once asked without who is not assigned, as far as others are left. Before inter-broker
    protocol 2.7-IV2 a leader writes ISRs by itself, and may take in who has just fallen out of the assignment."""
    p = context.cluster.partitions
    isr = p.lists("isr", rows)
    if not context.config[STRICT_MOVES]:
        return isr
    stays = members(isr, p.lists("replica", rows)) | (isr.values == p.leaders_of(rows)[isr.owners])
    return isr if stays.all() else isr.keep(stays | ~isr.any(stays)[isr.owners])


def _fresh(context: Context, rows: Int32) -> Replicas:
    """Replicas being added that are not there yet. Of a reassignment that is resumed they are; Kafka moves them all the
    same, and logs that it cannot."""
    p, adding = context.cluster.partitions, _flagged(context, rows, ReplicaFlag.ADDING)
    return adding.where(p.replica_state[adding.slots(p)] == ReplicaState.NON_EXISTENT)


def _flagged(context: Context, rows: Int32, flag: ReplicaFlag) -> Replicas:
    p = context.cluster.partitions
    replicas = replica_state_machine.replicas_of(context, rows)
    return replicas.where((p.replica_flags[replicas.slots(p)] & np.uint8(flag)) != 0)
