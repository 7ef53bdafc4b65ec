"""The removal of replicas from ISRs (Kafka 3.9 ``ZkReplicaStateMachine.removeReplicasFromIsr``)."""

from __future__ import annotations

import numpy as np

from kframe import kernels
from kframe.core.context import ATTEMPTS_MAX, Context, Operation, stale
from kframe.model.arrays import Int32, Ragged
from kframe.model.changes import StateChange
from kframe.model.lists import without_values
from kframe.model.row_views import values_at


def remove_from_isrs(context: Context, brokers: Int32, rows: Int32) -> Operation[Int32]:
    """Remove ``brokers[i]`` from the ISR of ``rows[i]`` (unique, ascending).

    Returns the rows that their broker has left, or of which it is the last member. A row that it had left before costs
    no write and no leader epoch. The controller still records its own epoch for it, although storage keeps the old one
    (Kafka 3.9 ``doRemoveReplicasFromIsr``). Rows of a topic under deletion without a state are skipped silently. Where
    leaders write ISRs, rows are read first: the broker may have joined one since, and no refused write would show it.
    """
    unchanged: list[Int32] = []
    remaining, written = rows, 0
    if not context.config.protocol.alter_partition:
        remaining, _ = yield from context.refresh(rows)
        unchanged.append(without_values(rows, remaining).astype(np.int32))
    for _ in range(ATTEMPTS_MAX):
        removed_brokers = brokers if len(remaining) == len(rows) else brokers[np.searchsorted(rows, remaining)]
        change = plan_removals(context, removed_brokers, remaining)
        result = yield from context.write(change)
        if result.accepted.all():
            remaining, written = remaining[:0], len(change)
            break
        lost = change.rows[~result.accepted & ~stale(result)]
        context.log_refused(
            "Replica of",
            lost[~context.cluster.is_deleting(lost)],
            "is unchanged: storage has no state of its partition",
        )
        raced = change.rows[stale(result)]
        remaining, _ = yield from context.refresh(raced)
        unreadable = without_values(raced, remaining).astype(np.int32)
        context.log_refused(
            "Replica of", unreadable, "is unchanged: a later controller wrote the state of its partition, or deleted it"
        )
        unchanged += [lost, unreadable]
    if len(remaining):
        context.log_refused("Replica of", remaining, "is unchanged: the state of its partition keeps changing")
        unchanged.append(remaining)
    failed = np.concatenate(unchanged) if unchanged else rows[:0]
    removed = np.setdiff1d(rows, failed, assume_unique=True) if len(failed) else rows
    if not len(rows) == written == len(removed):
        p, epoch = context.cluster.partitions, np.array([context.controller_epoch], np.int32)
        p.epoch_number[removed] = p.number_epochs(epoch)
    return removed


def plan_removals(context: Context, brokers: Int32, rows: Int32) -> StateChange:
    """The change that removes ``brokers[i]`` from the ISR of ``rows[i]``, without the rows whose ISR lacks it."""
    p = context.cluster.partitions
    changed, leader, leader_epoch, expected = (np.empty(len(rows), np.int32) for _ in range(4))
    recovery = np.empty(len(rows), np.uint8)
    offsets, values = np.empty(len(rows) + 1, np.int32), np.empty(int(values_at(p.isr_count, rows).sum()), np.int32)
    count = kernels.plan_removals(
        brokers,
        rows,
        p.leader,
        p.leader_epoch,
        p.status,
        p.partition_epoch,
        p.slot_start,
        p.isr_count,
        p.isr,
        changed,
        leader,
        leader_epoch,
        recovery,
        expected,
        offsets,
        values,
    )
    isr = Ragged(offsets[: count + 1], values[: offsets[count]])
    return StateChange(
        changed[:count],
        leader[:count],
        leader_epoch[:count],
        recovery[:count],
        isr,
        expected[:count],
        context.controller_epoch,
    )
