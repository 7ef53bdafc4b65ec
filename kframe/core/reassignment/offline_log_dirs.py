"""Dead log directories of replicas that were taken out of an assignment, and may be put into it again.

Kafka 3.9 remembers dead log directories by broker and partition, whatever the assignment says
(``ControllerContext.replicasOnOfflineDirs``). What is assigned carries a flag in its slot; the few others stand here.
"""

from __future__ import annotations

import numpy as np

from kframe.core.context import Context
from kframe.core.state_machines.replica_state_machine import Replicas
from kframe.model.columns import Int32
from kframe.model.ids import ReplicaFlag

_DEAD = np.uint8(ReplicaFlag.OFFLINE_DIR)


def note(context: Context, departed: Replicas) -> None:
    """Remember which of these replicas, about to lose their slots, are on dead log directories."""
    p = context.cluster.partitions
    dead = departed.where((p.replica_flags[departed.slots(p)] & _DEAD) != 0)
    context.term.offline_log_dirs.update(zip(dead.rows.tolist(), p.replica[dead.slots(p)].tolist(), strict=True))


def recall(context: Context, rows: Int32) -> None:
    """Flag those replicas of ``rows`` that are known to be on dead log directories from an earlier assignment."""
    if not context.term.offline_log_dirs:
        return
    p = context.cluster.partitions
    slots, owner = p.slots_of(rows), np.repeat(rows, p.replica_count[rows])
    for slot, row, broker in zip(slots.tolist(), owner.tolist(), p.replica[slots].tolist(), strict=True):
        if (row, broker) in context.term.offline_log_dirs:
            p.replica_flags[slot] |= _DEAD


def forget(context: Context, brokers: Int32) -> None:
    """What was known of these brokers (indexes) belongs to an earlier registration."""
    if context.term.offline_log_dirs:
        gone = set(brokers.tolist())
        context.term.offline_log_dirs = {
            (row, broker) for row, broker in context.term.offline_log_dirs if broker not in gone
        }


def healed(context: Context, broker: int, rows: Int32) -> None:
    """A broker answered for these rows without error."""
    context.term.offline_log_dirs.difference_update((row, broker) for row in rows.tolist())
