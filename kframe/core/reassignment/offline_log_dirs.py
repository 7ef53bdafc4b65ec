"""Offline log directories of replicas that left an assignment and may return to it.

Kafka 3.9 remembers offline log directories by broker and partition, assigned or not
(``ControllerContext.replicasOnOfflineDirs``). Assigned replicas have a flag in their slot; the others are kept here.
"""

from __future__ import annotations

import numpy as np

from kframe.core.context import Context
from kframe.core.state_machines.replica_state_machine import PartitionReplicas
from kframe.model.arrays import Int32
from kframe.model.ids import ReplicaFlag

_OFFLINE = np.uint8(ReplicaFlag.OFFLINE_DIR)


def record_removed(context: Context, removed: PartitionReplicas) -> None:
    """Record which of these replicas, about to lose their slots, are on offline log directories."""
    p = context.cluster.partitions
    offline = removed.where(p.are_flagged(removed.slots(p), _OFFLINE))
    context.term.offline_log_dirs.update(zip(offline.rows.tolist(), p.replica[offline.slots(p)].tolist(), strict=True))


def restore_flags(context: Context, rows: Int32) -> None:
    """Flag the replicas of ``rows`` that were on offline log directories in an earlier assignment."""
    if not context.term.offline_log_dirs:
        return
    p = context.cluster.partitions
    slots, owner = p.slots_of(rows), np.repeat(rows, p.replica_count[rows])
    for slot, row, broker in zip(slots.tolist(), owner.tolist(), p.replica[slots].tolist(), strict=True):
        if (row, broker) in context.term.offline_log_dirs:
            p.replica_status[slot] |= _OFFLINE


def forget(context: Context, brokers: Int32) -> None:
    """Forget the entries of these brokers (indexes): they belong to an earlier registration."""
    if context.term.offline_log_dirs:
        forgotten = set(brokers.tolist())
        context.term.offline_log_dirs = {
            (row, broker) for row, broker in context.term.offline_log_dirs if broker not in forgotten
        }


def forget_recovered(context: Context, broker: int, rows: Int32) -> None:
    """Forget the entries of a broker (index) for rows that it answered without error."""
    context.term.offline_log_dirs.difference_update((row, broker) for row in rows.tolist())
