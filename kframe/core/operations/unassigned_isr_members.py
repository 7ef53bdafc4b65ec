"""Remove ISR members that are not assigned.

When a reassignment is overridden, the new assignment is stored first, then the replicas that it drops leave the ISR. A
controller that loses the role in between leaves them there. Kafka's next controller keeps them until the leader
notices. If the leader fails first, the ISR may have no assigned member, and no assigned replica may lead.
"""

from __future__ import annotations

import numpy as np

from kframe import kernels
from kframe.core.context import ATTEMPTS_MAX, Context, Operation, stale
from kframe.core.operations import alter_partition
from kframe.core.reassignment import partition_reassignment
from kframe.core.topics import topic_metadata
from kframe.core.topics.replica_assignment import current, set_assignments, with_removing
from kframe.model.arrays import Bool, Int32, Ragged
from kframe.model.changes import StateChange
from kframe.model.config import STRICT_REASSIGNMENT
from kframe.model.events import AlterPartitionRequested
from kframe.model.ids import NO_LEADER
from kframe.model.lists import distinct_values, members


def remove_all(context: Context) -> Operation[None]:
    """Remove all unassigned members. This happens at failover, before dead brokers leave their ISRs."""
    cluster, p = context.cluster, context.cluster.partitions
    rows = np.empty(len(cluster), np.int32)
    count = kernels.list_unassigned_isr_members(
        p.topic,
        p.partition_epoch,
        p.slot_start,
        p.replica_count,
        p.isr_count,
        p.replica,
        p.isr,
        cluster.topics.deleting,
        rows,
    )
    yield from _remove_unassigned(context, rows[:count].copy())
    if context.config[STRICT_REASSIGNMENT]:
        yield from _keep_leaders(context, rows[:count].copy())


def _keep_leaders(context: Context, rows: Int32) -> Operation[None]:
    """Assign live leaders that are not assigned, as replicas that a reassignment removes.

    No other in-sync replica can lead there. Kafka sends nothing to such a leader: it keeps an earlier leader epoch, and
    no assigned replica can catch up.
    """
    p, live = context.cluster.partitions, np.append(context.cluster.brokers.live, 0)
    leader, replicas = p.leader[rows], p.lists("replica", rows)
    retained = (live[leader] != 0) & ~replicas.any(replicas.values == leader[replicas.owners])
    rows, leader = rows[retained], leader[retained]
    if len(rows) == 0:
        return
    assignments = with_removing(current(p, rows), leader)
    unstored = yield from topic_metadata.store(context, rows, assignments)
    stored = ~np.isin(rows, unstored)
    rows = rows[stored]
    set_assignments(context, rows, assignments.take(stored))
    p.set_reassigning(rows, True)


def remove(context: Context, rows: Int32) -> Operation[None]:
    """Remove the unassigned members of the ISRs of ``rows``."""
    p = context.cluster.partitions
    isr = p.lists("isr", rows)
    yield from _remove_unassigned(context, rows[isr.any(~members(isr, p.lists("replica", rows)))])


def on_alter_partition(context: Context, request: AlterPartitionRequested) -> Operation[None]:
    """A leader has proposed ISRs, accepted or not. Correct proposals that name unassigned members."""
    if context.config[STRICT_REASSIGNMENT]:
        yield from correct_leaders(context, *alter_partition.proposed_isrs(context, request))


def correct_leaders(context: Context, rows: Int32, proposed: Ragged) -> Operation[None]:
    """Send the assignment under a new leader epoch to leaders that propose unassigned members (broker indexes).

    Such a leader has not received a stored assignment, because a controller lost the role before it sent it. Kafka
    does not correct the ISR; ``STRICT_REASSIGNMENT`` does.
    """
    p = context.cluster.partitions
    if not context.config[STRICT_REASSIGNMENT] or len(rows) == 0:
        return
    outdated = rows[proposed.any(~members(proposed, p.lists("replica", rows)))]
    outdated = distinct_values(outdated[~context.cluster.is_deleting(outdated)]).astype(np.int32)
    yield from _remove_unassigned(context, outdated)
    yield from partition_reassignment.announce(context, outdated)


def _remove_unassigned(context: Context, rows: Int32) -> Operation[None]:
    p = context.cluster.partitions
    isr = p.lists("isr", rows)
    yield from remove_members(context, rows, isr, members(isr, p.lists("replica", rows)), "are not assigned")


def remove_members(context: Context, rows: Int32, isr: Ragged, valid: Bool, reason: str) -> Operation[None]:
    """Remove from the ``isr`` of ``rows`` the members outside the mask ``valid``; ``reason`` is for the log.

    They stay if the ISR has no valid member, or if one of them leads and no valid member is live.
    """
    p, live = context.cluster.partitions, context.cluster.brokers.live
    invalid_leads = isr.any(~valid & (isr.values == p.leader[rows][isr.owners]))
    can_lead = isr.any(valid & (live[isr.values] != 0))
    unchanged = ~isr.any(valid) | (invalid_leads & ~can_lead)
    context.log_refused("Partition", rows[unchanged], f"keeps ISR members that {reason}: no other member can lead")
    leaving = isr.keep(~valid & ~unchanged[isr.owners])
    leaves = leaving.counts > 0
    yield from _write_isrs_without(context, rows[leaves], leaving.select(leaves))


def _write_isrs_without(context: Context, rows: Int32, leaving: Ragged) -> Operation[None]:
    """Remove all ``leaving`` brokers of each row (unique, ascending) in one write. The last member of an ISR stays.

    A controller that fails between two writes would leave a state that is newer than the registrations of the members
    that are still to be removed, so that the next one would not see that they registered again. Where leaders write
    ISRs, rows are read first: a broker may have joined one since.
    """
    remaining = rows
    if not context.config.protocol.alter_partition:
        remaining, _ = yield from context.refresh(rows)
    for _ in range(ATTEMPTS_MAX):
        change = _removals(context, remaining, leaving.take(np.searchsorted(rows, remaining)))
        result = yield from context.write(change)
        if result.accepted.all():
            return
        lost = change.rows[~result.accepted & ~stale(result)]
        lost = lost[~context.cluster.is_deleting(lost)]
        context.log_refused("Partition", lost, "keeps ISR members: storage has no state of it")
        remaining, _ = yield from context.refresh(change.rows[stale(result)])
    context.log_refused("Partition", remaining, "keeps ISR members: its state keeps changing")


def _removals(context: Context, rows: Int32, leaving: Ragged) -> StateChange:
    """The changed states of the rows that brokers leave. A partition whose leader leaves has none."""
    p = context.cluster.partitions
    isr = p.lists("isr", rows)
    stays = ~members(isr, leaving)
    changed = isr.any(stays) & isr.any(~stays)
    leader = p.leaders_of(rows)
    leader_leaves = leaving.any(leaving.values == leader[leaving.owners])
    return StateChange(
        rows[changed],
        np.where(leader_leaves, NO_LEADER, leader).astype(np.int32)[changed],
        (p.leader_epoch[rows] + np.int32(1))[changed],
        p.recovery_of(rows)[changed],
        isr.keep(stays).select(changed),
        p.partition_epoch[rows][changed],
        context.controller_epoch,
    )
