"""Reference kernels of ``kframe/_core.pyx``."""

from __future__ import annotations

from typing import Final

import numpy as np

from kframe.model.arrays import Int16, Int32, UInt8
from kframe.model.ids import (
    FLAGS_MASK,
    NO_LEADER,
    NO_STATE,
    STATE_SHIFT,
    ElectionKind,
    PartitionFlag,
    PartitionState,
    RecoveryState,
)
from verification.reference.columns import append_list, is_broker_online, is_slot_online, slots_of, values_at

__all__ = [
    "DEBUG",
    "check_transitions",
    "group_by_broker",
    "initialize_partition_states",
    "list_in_states",
    "list_recipients",
    "mark_online_replicas",
    "plan_elections",
    "plan_removals",
]

#: NumPy checks every index, but this is not the debug build of the kernels.
DEBUG: Final[bool] = False


def plan_elections(
    kind: int,
    recovery_supported: bool,
    rows: Int32,
    leader: Int32,
    old_epoch: Int32,
    status: UInt8,
    slot_start: Int32,
    replica_count: Int16,
    isr_count: Int16,
    replica: Int16,
    isr: Int16,
    replica_status: UInt8,
    live: UInt8,
    shutting_down: UInt8,
    leader_epoch: Int32,
    recovery: UInt8,
    isr_offsets: Int32,
    isr_values: Int32,
) -> int:
    """The ISR by the kind of election, and the next leader epoch. RECOVERING after an unclean election."""
    unclean = 0
    isr_offsets[0] = 0
    for i, row in enumerate(rows.tolist()):
        assigned = slots_of(row, slot_start, replica_count)
        members = values_at(isr, slots_of(row, slot_start, isr_count))
        leader_epoch[i], recovery[i] = old_epoch[row] + np.int32(1), status[row] & PartitionFlag.RECOVERING
        if kind == ElectionKind.INITIAL:
            leader_epoch[i], recovery[i] = 0, RecoveryState.RECOVERED
            members = [int(replica[slot]) for slot in assigned if is_slot_online(slot, replica, replica_status, live)]
        elif kind == ElectionKind.OFFLINE and leader[i] not in members:
            unclean += 1
            members = [int(leader[i])]
            if recovery_supported:
                recovery[i] = RecoveryState.RECOVERING
        elif kind == ElectionKind.OFFLINE:
            members = [
                broker for broker in members if is_broker_online(broker, assigned, replica, replica_status, live)
            ]
        elif kind == ElectionKind.CONTROLLED_SHUTDOWN:
            members = [broker for broker in members if not shutting_down[broker]]
        append_list(i, members, isr_offsets, isr_values)
    return unclean


def plan_removals(
    brokers: Int32,
    rows: Int32,
    old_leader: Int16,
    old_epoch: Int32,
    status: UInt8,
    partition_epoch: Int32,
    slot_start: Int32,
    isr_count: Int16,
    isr: Int16,
    changed: Int32,
    leader: Int32,
    leader_epoch: Int32,
    recovery: UInt8,
    expected: Int32,
    isr_offsets: Int32,
    isr_values: Int32,
) -> int:
    """Remove each row's broker from its ISR except as the last member. Partitions that it led have no leader."""
    count = 0
    isr_offsets[0] = 0
    for broker, row in zip(brokers.tolist(), rows.tolist(), strict=True):
        members = values_at(isr, slots_of(row, slot_start, isr_count))
        if broker in members:
            changed[count] = row
            leader[count] = NO_LEADER if old_leader[row] == broker else old_leader[row]
            leader_epoch[count], recovery[count] = old_epoch[row] + 1, status[row] & PartitionFlag.RECOVERING
            expected[count] = partition_epoch[row]
            remaining = members if len(members) == 1 else [member for member in members if member != broker]
            append_list(count, remaining, isr_offsets, isr_values)
            count += 1
    return count


def check_transitions(positions: Int32, status: UInt8, allowed: int, valid: UInt8) -> int:
    """A transition is valid if the state at its position is allowed."""
    count = 0
    for i, position in enumerate(positions.tolist()):
        valid[i] = bool(allowed & 1 << (int(status[position]) >> STATE_SHIFT))
        count += int(valid[i])
    return count


def mark_online_replicas(slots: Int32, replica: Int16, replica_status: UInt8, live: UInt8, online: UInt8) -> int:
    """1 where the replica is online."""
    online[:] = [is_slot_online(slot, replica, replica_status, live) for slot in slots.tolist()]
    return int(online.sum())


def list_in_states(topic: Int32, status: UInt8, state_mask: int, deleting: UInt8, rows: Int32) -> int:
    """Rows in a requested state, except for unused rows and topics queued for deletion."""
    count = 0
    for row in range(len(topic)):
        if topic[row] >= 0 and not deleting[topic[row]] and state_mask & 1 << (int(status[row]) >> STATE_SHIFT):
            rows[count] = row
            count += 1
    return count


def initialize_partition_states(
    leader: Int16,
    partition_epoch: Int32,
    slot_start: Int32,
    replica_count: Int16,
    replica: Int16,
    replica_status: UInt8,
    live: UInt8,
    status: UInt8,
) -> int:
    """New without leadership, Online with an online leader, else Offline."""
    count = 0
    for row in range(len(leader)):
        assigned = slots_of(row, slot_start, replica_count)
        if partition_epoch[row] == NO_STATE:
            state = PartitionState.NEW
        elif is_broker_online(int(leader[row]), assigned, replica, replica_status, live):
            state = PartitionState.ONLINE
        else:
            state = PartitionState.OFFLINE
        status[row] = status[row] & FLAGS_MASK | state << STATE_SHIFT
        count += state != PartitionState.ONLINE
    return int(count)


def list_recipients(
    rows: Int32,
    slot_start: Int32,
    replica_count: Int16,
    replica: Int16,
    replica_status: UInt8,
    allowed: UInt8,
    skip_flags: int,
    new_flags: int,
    brokers: Int32,
    announced: Int32,
    is_new: UInt8,
) -> int:
    """A pair for each replica on an allowed broker without any of the flags to skip."""
    count = 0
    for row in rows.tolist():
        for slot in slots_of(row, slot_start, replica_count):
            if allowed[replica[slot]] and not replica_status[slot] & skip_flags:
                brokers[count], announced[count] = replica[slot], row
                is_new[count] = bool(replica_status[slot] & new_flags)
                count += 1
    return count


def group_by_broker(brokers: Int32, rows: Int32, offsets: Int32, grouped: Int32, origin: Int32) -> int:
    """Broker by broker, the pairs of each in input order. An empty ``origin`` is not written."""
    filled = 0
    for broker in range(len(offsets)):
        offsets[broker] = filled
        for i in range(len(brokers)):
            if brokers[i] == broker:
                grouped[filled] = rows[i]
                if len(origin):
                    origin[filled] = i
                filled += 1
    return len(set(brokers.tolist()))
