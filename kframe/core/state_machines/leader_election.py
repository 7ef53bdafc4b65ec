"""Leader elections: plan from the columns, store by compare-and-set, notify the replicas.

The rules are those of Kafka 3.9 ``Election`` and ``ZkPartitionStateMachine``. Kafka reads every state before it elects.
This controller plans from memory. It reads again only rows that storage refuses, or that have no eligible leader.
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
from kframe.model.arrays import Bool, Int32, Ragged, UInt8
from kframe.model.changes import StateChange
from kframe.model.ids import NO_LEADER, NO_STATE, ElectionKind, PartitionState, ReplicaFlag
from kframe.model.row_views import values_at
from kframe.model.topics import UNSET


@dataclass(frozen=True, slots=True)
class Strategy:
    """How leaders are elected. ``allow_unclean`` overrides topic settings (an operator's unclean election)."""

    kind: ElectionKind
    allow_unclean: bool = False


OFFLINE: Final = Strategy(ElectionKind.OFFLINE)
UNCLEAN: Final = Strategy(ElectionKind.OFFLINE, allow_unclean=True)
REASSIGN: Final = Strategy(ElectionKind.REASSIGN)
PREFERRED: Final = Strategy(ElectionKind.PREFERRED)
CONTROLLED_SHUTDOWN: Final = Strategy(ElectionKind.CONTROLLED_SHUTDOWN)

#: Replicas with one of these ReplicaFlag bits receive no LeaderAndIsr for an election of this kind.
_SKIPPED_REPLICAS: Final = {
    ElectionKind.OFFLINE: int(ReplicaFlag.OFFLINE_DIR),
    ElectionKind.INITIAL: int(ReplicaFlag.OFFLINE_DIR),
    ElectionKind.CONTROLLED_SHUTDOWN: int(ReplicaFlag.OFFLINE_DIR),
    ElectionKind.REASSIGN: int(ReplicaFlag.REMOVING),
}


def initialise(context: Context, rows: Int32, batch: RequestBatch) -> Operation[Int32]:
    """Create the leadership state of New partitions; return the rows that have a leader now.

    Rows without an online replica, and rows whose state exists in storage already, do not change.
    """
    if len(rows) == 0:
        return rows
    leader = context.selection.choose(context.cluster, ElectionKind.INITIAL, rows, np.zeros(len(rows), np.uint8))
    led = leader != NO_LEADER
    if not led.all():
        context.log_failed(rows[~led], PartitionState.ONLINE, "no replica is online")
    change, _ = _plan(context, ElectionKind.INITIAL, *_select(led, rows, leader))
    result = yield from context.write(change)
    created, accepted = change.rows, result.accepted
    if not accepted.all():
        context.log_failed(created[~accepted], PartitionState.ONLINE, "storage has a state for it already")
        created = created[accepted]
    queue_election(context, batch, ElectionKind.INITIAL, created)
    return created


def elect(
    context: Context, rows: Int32, strategy: Strategy, batch: RequestBatch, following: StateChange | None = None
) -> Operation[tuple[Int32, Int32]]:
    """Elect leaders for partitions that have a state; return the rows with a new leader, and the rows without.

    A row that another writer has changed is read and elected again. A row without an eligible leader is read once more
    before it counts as failed: before inter-broker protocol 2.7-IV2 its leader may have changed the ISR in storage.
    ``following`` goes with the first write.
    """
    elected: list[Int32] = []
    failed: list[Int32] = []
    remaining, reread = rows, np.zeros(len(rows), np.bool_)
    for _ in range(ATTEMPTS_MAX):
        if len(remaining) == 0:
            break
        allowed = unclean_allowed(context, remaining, strategy)
        leader = context.selection.choose(context.cluster, strategy.kind, remaining, allowed)
        if context.term.unverified_logs:
            permitted = _unclean_permitted(context, remaining, strategy)
            leader = last_replica_hold.hold_unverified(context, remaining, leader, permitted)
        led = leader != NO_LEADER
        change, unclean = _plan(context, strategy.kind, *_select(led, remaining, leader))
        result = yield from context.write(change, following)
        following = None
        context.counters["UncleanLeaderElectionsPerSec"] += unclean
        accepted = result.accepted
        won = change.rows if accepted.all() else change.rows[accepted]
        queue_election(context, batch, strategy.kind, won)
        elected.append(won)
        if len(won) == len(remaining):
            remaining = remaining[:0]
            break
        failed += [change.rows[~accepted & ~stale(result)], remaining[~led & reread]]
        raced, leaderless = change.rows[stale(result)], remaining[~led & ~reread]
        retry, _ = yield from context.refresh(raced)
        readable, changed = yield from context.refresh(leaderless)
        failed += [_difference(raced, retry), _difference(leaderless, readable[changed])]
        remaining = np.sort(np.concatenate([retry, readable[changed]]))
        reread = np.isin(remaining, leaderless)
    failed.append(remaining)
    lost = np.sort(np.concatenate(failed))
    context.log_failed(lost, PartitionState.ONLINE, f"no leader could be elected under {strategy.kind.name}")
    return (elected[0] if len(elected) == 1 else np.sort(np.concatenate([rows[:0], *elected]))), lost


def unclean_allowed(context: Context, rows: Int32, strategy: Strategy) -> UInt8:
    """1 where an out-of-sync leader is permitted: no ISR member is online, and the operator or the topic allows it."""
    cluster, p = context.cluster, context.cluster.partitions
    offline_isr = np.zeros(len(rows), np.uint8)
    if strategy.kind is not ElectionKind.OFFLINE:
        return offline_isr
    kernels.mark_offline_isrs(
        rows,
        p.slot_start,
        p.replica_count,
        p.isr_count,
        p.replica,
        p.isr,
        p.replica_status,
        cluster.brokers.live,
        offline_isr,
    )
    return offline_isr & _unclean_permitted(context, rows, strategy) if offline_isr.any() else offline_isr


def _unclean_permitted(context: Context, rows: Int32, strategy: Strategy) -> UInt8:
    """1 where the operator or the topic allows unclean elections. The ISR does not matter."""
    if strategy.allow_unclean:
        return np.ones(len(rows), np.uint8)
    topics = context.cluster.topics
    setting = topics.unclean[context.cluster.partitions.topic[rows]]
    return np.where(setting == UNSET, context.term.unclean_by_default, setting == 1).astype(np.uint8)


def queue_election(context: Context, batch: RequestBatch, kind: ElectionKind, rows: Int32) -> None:
    """Add LeaderAndIsr for the new leaders of ``rows`` to ``batch``. The kind of election decides the recipients.

    OFFLINE and INITIAL elections notify online replicas, REASSIGN all target replicas, PREFERRED all replicas, and
    CONTROLLED_SHUTDOWN also brokers that are shutting down.
    """
    brokers = context.cluster.brokers
    allowed = brokers.live if kind in (ElectionKind.OFFLINE, ElectionKind.INITIAL) else brokers.registered
    skip_flags = _SKIPPED_REPLICAS.get(kind, 0)
    queue_leader_and_isr(context, batch, rows, allowed, skip_flags, is_new=kind is ElectionKind.INITIAL)


def queue_leader_and_isr(
    context: Context,
    batch: RequestBatch,
    rows: Int32,
    allowed: NDArray[Any],
    skip_flags: int,
    is_new: bool,
    new_flags: int = 0,
    excluded: Int32 | None = None,
) -> None:
    """Add LeaderAndIsr of ``rows`` for their replicas on ``allowed`` brokers that carry none of ``skip_flags``.

    A replica that carries one of ``new_flags`` is new. ``excluded``: a broker for each row that receives none, or -1.
    """
    if len(rows) == 0:
        return
    p = context.cluster.partitions
    capacity = int(values_at(p.replica_count, rows).sum())
    recipients, recipient_rows = np.empty(capacity, np.int32), np.empty(capacity, np.int32)
    new = np.empty(capacity, np.uint8)
    count = kernels.list_recipients(
        rows,
        p.slot_start,
        p.replica_count,
        p.replica,
        p.replica_status,
        allowed,
        skip_flags,
        new_flags,
        recipients,
        recipient_rows,
        new,
    )
    recipients, recipient_rows, new = recipients[:count], recipient_rows[:count], new[:count]
    if excluded is not None:
        stays = recipients != excluded[np.searchsorted(rows, recipient_rows)]
        if not stays.all():
            recipients, recipient_rows, new = recipients[stays], recipient_rows[stays], new[stays]
    batch.add_leader_and_isr(recipients, recipient_rows, rows, is_new or new)


def _difference(rows: Int32, others: Int32) -> Int32:
    """The ``rows`` that are not among ``others``."""
    return np.setdiff1d(rows, others, assume_unique=True).astype(np.int32)


def _select(mask: Bool, rows: Int32, leader: Int32) -> tuple[Int32, Int32]:
    """Both arrays where the mask holds, without a copy if it holds everywhere."""
    return (rows, leader) if mask.all() else (rows[mask], leader[mask])


def _plan(context: Context, kind: ElectionKind, rows: Int32, leader: Int32) -> tuple[StateChange, int]:
    """The new state of each row under its elected leader, and the number of unclean elections."""
    cluster, count = context.cluster, len(rows)
    p = cluster.partitions
    capacity = int(np.maximum(values_at(p.replica_count, rows), values_at(p.isr_count, rows)).sum())
    leader_epoch, recovery = np.empty(count, np.int32), np.empty(count, np.uint8)
    isr = Ragged(np.empty(count + 1, np.int32), np.empty(capacity, np.int32))
    unclean = kernels.plan_elections(
        int(kind),
        context.config.protocol.recovery_state,
        rows,
        leader,
        p.leader_epoch,
        p.status,
        p.slot_start,
        p.replica_count,
        p.isr_count,
        p.replica,
        p.isr,
        p.replica_status,
        cluster.brokers.live,
        cluster.brokers.shutting_down,
        leader_epoch,
        recovery,
        isr.offsets,
        isr.values,
    )
    isr = Ragged(isr.offsets, isr.values[: isr.offsets[-1]])
    expected = np.full(count, NO_STATE, np.int32) if kind is ElectionKind.INITIAL else p.partition_epoch[rows]
    return StateChange(rows, leader, leader_epoch, recovery, isr, expected, context.controller_epoch), unclean
