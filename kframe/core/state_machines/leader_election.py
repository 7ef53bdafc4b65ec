"""Giving partitions leaders: plan from the columns, store by compare-and-set, tell the replicas.

The rules are ``spec/elections.md`` (Kafka 3.9 ``Election`` and ``ZkPartitionStateMachine``). Kafka reads each state
before it elects; here the plan is made from memory, and only rows that storage refuses, or for which nobody could be
elected, are read again.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from kframe import kernels
from kframe.core.context import ATTEMPTS_MAX, Context, Operation, stale
from kframe.core.request_batch import RequestBatch
from kframe.core.state_machines import last_replica_hold
from kframe.model.changes import StateChange
from kframe.model.columns import Bool, Int32, Ragged, UInt8
from kframe.model.ids import NO_LEADER, NO_STATE, ElectionKind, PartitionState, ReplicaFlag
from kframe.model.topics import UNSET


@dataclass(frozen=True, slots=True)
class Strategy:
    """How leaders are elected; ``allow_unclean`` overrides the topics' settings (an operator's unclean election)."""

    kind: ElectionKind
    allow_unclean: bool = False


OFFLINE: Final = Strategy(ElectionKind.OFFLINE)
UNCLEAN: Final = Strategy(ElectionKind.OFFLINE, allow_unclean=True)
REASSIGN: Final = Strategy(ElectionKind.REASSIGN)
PREFERRED: Final = Strategy(ElectionKind.PREFERRED)
CONTROLLED_SHUTDOWN: Final = Strategy(ElectionKind.CONTROLLED_SHUTDOWN)

#: ReplicaFlag bits of the replicas that are not told of an election.
_NOT_TOLD: Final = {
    ElectionKind.OFFLINE: int(ReplicaFlag.OFFLINE_DIR),
    ElectionKind.INITIAL: int(ReplicaFlag.OFFLINE_DIR),
    ElectionKind.CONTROLLED_SHUTDOWN: int(ReplicaFlag.OFFLINE_DIR),
    ElectionKind.REASSIGN: int(ReplicaFlag.REMOVING),
}


def initialise(context: Context, rows: Int32, batch: RequestBatch) -> Operation[Int32]:
    """Give new partitions their first leader; return the rows that got one (initial-leader rule).

    Rows without an online replica, and those whose state exists in storage already, stay as they are.
    """
    if len(rows) == 0:
        return rows
    leader = context.selection.choose(context.cluster, ElectionKind.INITIAL, rows, np.zeros(len(rows), np.uint8))
    led = leader != NO_LEADER
    context.log_failed(rows[~led], PartitionState.ONLINE, "no replica is online")
    change, _ = _plan(context, ElectionKind.INITIAL, *_where(led, rows, leader))
    result = yield from context.write(change)
    refused = change.rows[~result.accepted]
    context.log_failed(refused, PartitionState.ONLINE, "storage has a state for it already")
    started = change.rows[result.accepted]
    tell(context, batch, ElectionKind.INITIAL, started)
    return started


def elect(
    context: Context, rows: Int32, strategy: Strategy, batch: RequestBatch, following: StateChange | None = None
) -> Operation[tuple[Int32, Int32]]:
    """Elect leaders for partitions that have a state; return the rows with a new leader, and those that found none.

    A row that somebody else wrote meanwhile is read again and elected anew. A row for which nobody can be elected is
    read once more before it is given up: its leader may have changed the ISR in storage by itself (inter-broker
    protocol before 2.7-IV2).
    """
    elected: list[Int32] = []
    failed: list[Int32] = []
    remaining, known = rows, np.zeros(len(rows), np.bool_)
    for _ in range(ATTEMPTS_MAX):
        if len(remaining) == 0:
            break
        allowed = unclean_allowed(context, remaining, strategy)
        leader = context.selection.choose(context.cluster, strategy.kind, remaining, allowed)
        if context.term.unverified_logs:
            permitted = _unclean_permitted(context, remaining, strategy)
            leader = last_replica_hold.without_doubtful(context, remaining, leader, permitted)
        led = leader != NO_LEADER
        change, unclean = _plan(context, strategy.kind, *_where(led, remaining, leader))
        result = yield from context.write(change, following)
        following = None
        context.counters["UncleanLeaderElectionsPerSec"] += unclean
        accepted = result.accepted
        won = change.rows if accepted.all() else change.rows[accepted]
        tell(context, batch, strategy.kind, won)
        elected.append(won)
        if len(won) == len(remaining):
            remaining = remaining[:0]
            break
        failed += [change.rows[~accepted & ~stale(result)], remaining[~led & known]]
        raced, hopeless = change.rows[stale(result)], remaining[~led & ~known]
        again, _ = yield from context.refresh(raced)
        readable, moved = yield from context.refresh(hopeless)
        failed += [_left_out(raced, again), _left_out(hopeless, readable[moved])]
        remaining = np.sort(np.concatenate([again, readable[moved]]))
        known = np.isin(remaining, hopeless)
    failed.append(remaining)
    lost = np.sort(np.concatenate(failed))
    context.log_failed(lost, PartitionState.ONLINE, f"no leader could be elected under {strategy.kind.name}")
    return (elected[0] if len(elected) == 1 else np.sort(np.concatenate([rows[:0], *elected]))), lost


def unclean_allowed(context: Context, rows: Int32, strategy: Strategy) -> UInt8:
    """1 where an out-of-sync leader is permitted: no ISR member is online, and the operator or the topic allows it."""
    cluster, p = context.cluster, context.cluster.partitions
    dead = np.zeros(len(rows), np.uint8)
    if strategy.kind is not ElectionKind.OFFLINE:
        return dead
    kernels.mark_offline_isrs(
        rows, p.slot_start, p.replica_count, p.isr_count, p.replica, p.isr, p.replica_flags, cluster.brokers.live, dead
    )
    return dead & _unclean_permitted(context, rows, strategy) if dead.any() else dead


def _unclean_permitted(context: Context, rows: Int32, strategy: Strategy) -> UInt8:
    """1 where the operator or the topic allows out-of-sync leaders, in sync or not."""
    if strategy.allow_unclean:
        return np.ones(len(rows), np.uint8)
    topics = context.cluster.topics
    setting = topics.unclean[context.cluster.partitions.topic[rows]]
    return np.where(setting == UNSET, context.term.unclean_by_default, setting == 1).astype(np.uint8)


def tell(context: Context, batch: RequestBatch, kind: ElectionKind, rows: Int32) -> None:
    """Queue the new leadership of ``rows`` for those whom the kind of election names (``spec/elections.md`` section 3).

    OFFLINE tells online replicas, INITIAL the ISR (which is those, too), REASSIGN all target replicas, PREFERRED all
    replicas, CONTROLLED_SHUTDOWN also the brokers that are shutting down.
    """
    brokers = context.cluster.brokers
    allowed = brokers.live if kind in (ElectionKind.OFFLINE, ElectionKind.INITIAL) else brokers.registered
    skip_flags = _NOT_TOLD.get(kind, 0)
    tell_replicas(context, batch, rows, allowed, skip_flags, is_new=kind is ElectionKind.INITIAL)


def tell_replicas(
    context: Context, batch: RequestBatch, rows: Int32, allowed: NDArray[Any], skip_flags: int, is_new: bool
) -> None:
    """Queue the state of ``rows`` for their replicas on ``allowed`` brokers that carry none of ``skip_flags``."""
    if len(rows) == 0:
        return
    p = context.cluster.partitions
    most = int(p.replica_count[rows].sum())
    told_brokers, told_rows = np.empty(most, np.int32), np.empty(most, np.int32)
    count = kernels.list_recipients(
        rows, p.slot_start, p.replica_count, p.replica, p.replica_flags, allowed, skip_flags, told_brokers, told_rows
    )
    batch.add_leader_and_isr(told_brokers[:count], told_rows[:count], rows, is_new)


def _left_out(rows: Int32, others: Int32) -> Int32:
    """Those of ``rows`` that are not among ``others``."""
    return np.setdiff1d(rows, others, assume_unique=True).astype(np.int32)


def _where(mask: Bool, rows: Int32, leader: Int32) -> tuple[Int32, Int32]:
    """Both arrays where the mask holds, uncopied if that is everywhere."""
    return (rows, leader) if mask.all() else (rows[mask], leader[mask])


def _plan(context: Context, kind: ElectionKind, rows: Int32, leader: Int32) -> tuple[StateChange, int]:
    """The state that each row gets with its chosen leader, and how many of these elections are unclean."""
    cluster, count = context.cluster, len(rows)
    p = cluster.partitions
    room = int(np.maximum(p.replica_count[rows], p.isr_count[rows]).sum())
    leader_epoch, recovery = np.empty(count, np.int32), np.empty(count, np.uint8)
    isr = Ragged(np.empty(count + 1, np.int32), np.empty(room, np.int32))
    unclean = kernels.plan_elections(
        int(kind), context.config.protocol.recovery_state, rows, leader, p.leader_epoch, p.recovery, p.slot_start,
        p.replica_count, p.isr_count, p.replica, p.isr, p.replica_flags, cluster.brokers.live,
        cluster.brokers.shutting_down, leader_epoch, recovery, isr.offsets, isr.values,
    )  # fmt: skip
    isr = Ragged(isr.offsets, isr.values[: isr.offsets[-1]])
    expected = np.full(count, NO_STATE, np.int32) if kind is ElectionKind.INITIAL else p.partition_epoch[rows]
    return StateChange(rows, leader, leader_epoch, recovery, isr, expected, context.controller_epoch), unclean
