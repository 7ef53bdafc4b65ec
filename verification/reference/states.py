"""Reference kernels of ``_states.pyx``."""

from __future__ import annotations

import numpy as np

from kframe.model.arrays import Int8, Int16, Int32, Int64, UInt8, UInt16
from kframe.model.ids import (
    EPOCH_DURING_DELETE,
    FLAGS_MASK,
    NO_EPOCH,
    NO_STATE,
    STATE_SHIFT,
    PartitionFlag,
    PartitionState,
    ReplicaFlag,
    ReplicaState,
)
from verification.reference.columns import is_slot_online, slots_of, values_at

__all__ = [
    "count_replica_states",
    "initialize_replica_states",
    "list_stop_epochs",
    "mark_rows_of_topics",
    "set_replica_states",
    "set_replica_states_on",
    "store_states",
    "update_partition_counts",
]


def store_states(
    rows: Int32,
    new_leader: Int32,
    new_leader_epoch: Int32,
    new_recovery: UInt8,
    new_partition_epoch: Int32,
    new_epoch_number: UInt16,
    isr_offsets: Int32,
    isr_values: Int32,
    slot_start: Int32,
    leader: Int16,
    leader_epoch: Int32,
    status: UInt8,
    partition_epoch: Int32,
    epoch_number: UInt16,
    isr_count: Int16,
    isr: Int16,
    counted: UInt8,
) -> int:
    """Write the values at each position to its row."""
    for i, row in enumerate(rows.tolist()):
        has_state = partition_epoch[row] != NO_STATE
        is_reassigning = bool(status[row] & PartitionFlag.REASSIGNING)
        counted[i] = leader[row] != new_leader[i] or not has_state or is_reassigning
        leader[row], leader_epoch[row] = new_leader[i], new_leader_epoch[i]
        recovery = int(new_recovery[i]) & PartitionFlag.RECOVERING
        status[row] = int(status[row]) & ~PartitionFlag.RECOVERING | recovery
        partition_epoch[row], epoch_number[row] = new_partition_epoch[i], new_epoch_number[i]
        members = isr_values[isr_offsets[i] : isr_offsets[i + 1]].tolist()
        isr_count[row] = len(members)
        for slot, member in enumerate(members, int(slot_start[row])):
            isr[slot] = member
    return len(rows)


def list_stop_epochs(
    rows: Int32, topic: Int32, deleting: UInt8, partition_epoch: Int32, leader_epoch: Int32, epochs: Int32
) -> int:
    """A row of a deleting topic has EPOCH_DURING_DELETE, another without a state NO_EPOCH."""
    matches = 0
    for i, row in enumerate(rows.tolist()):
        is_deleting = topic[row] >= 0 and deleting[topic[row]]
        known = NO_EPOCH if partition_epoch[row] == NO_STATE else leader_epoch[row]
        epochs[i] = EPOCH_DURING_DELETE if is_deleting else known
        matches += bool(is_deleting)
    return matches


def set_replica_states(
    rows: Int32,
    slots: Int32,
    sources: int,
    target: int,
    topic: Int32,
    is_counted: UInt8,
    replica_status: UInt8,
    counts: Int32,
    totals: Int64,
    legal: UInt8,
) -> int:
    """A counted replica leaves the count of its state and enters that of ``target``."""
    by_state = counts.reshape(-1, len(is_counted)) if len(is_counted) else counts
    for i, (row, slot) in enumerate(zip(rows.tolist(), slots.tolist(), strict=True)):
        index, before = int(topic[row]), int(replica_status[slot]) >> STATE_SHIFT
        legal[i] = sources >> before & 1
        if not legal[i]:
            continue
        if 0 <= index < len(is_counted) and is_counted[index] and before != target:
            by_state[before, index] -= 1
            by_state[target, index] += 1
            totals[before] -= 1
            totals[target] += 1
        replica_status[slot] = replica_status[slot] & FLAGS_MASK | target << STATE_SHIFT
    return int(legal.sum())


def set_replica_states_on(
    rows: Int32,
    broker: int,
    sources: int,
    target: int,
    topic: Int32,
    slot_start: Int32,
    replica_count: Int16,
    replica: Int16,
    is_counted: UInt8,
    replica_status: UInt8,
    counts: Int32,
    totals: Int64,
    legal: Int8,
) -> int:
    """Locate the replica of the broker, then ``set_replica_states``."""
    for i, row in enumerate(rows.tolist()):
        slots = [slot for slot in slots_of(row, slot_start, replica_count) if replica[slot] == broker]
        mask = np.zeros(len(slots), np.uint8)
        owners, chosen = np.full(len(slots), row, np.int32), np.array(slots, np.int32)
        set_replica_states(owners, chosen, sources, target, topic, is_counted, replica_status, counts, totals, mask)
        legal[i] = (1 if mask[0] else -1) if len(mask) else 0
    return int((legal > 0).sum())


def mark_rows_of_topics(rows: Int32, topic: Int32, chosen_topics: UInt8, mask: UInt8) -> int:
    """1 where the topic of the row is requested."""
    mask[:] = [topic[row] >= 0 and bool(chosen_topics[topic[row]]) for row in rows.tolist()]
    return int(mask.sum())


def count_replica_states(
    rows: Int32,
    topic: Int32,
    slot_start: Int32,
    replica_count: Int16,
    replica_status: UInt8,
    topics: int,
    counts: Int32,
) -> int:
    """Each replica increments the count of its topic and state."""
    replicas = 0
    for row in rows.tolist():
        for slot in slots_of(row, slot_start, replica_count):
            counts[(int(replica_status[slot]) >> STATE_SHIFT) * topics + int(topic[row])] += 1
            replicas += 1
    return replicas


def update_partition_counts(
    rows: Int32,
    topic: Int32,
    partition_epoch: Int32,
    status: UInt8,
    leader: Int16,
    slot_start: Int32,
    replica_count: Int16,
    isr_count: Int16,
    replica: Int16,
    isr: Int16,
    replica_status: UInt8,
    deleting: UInt8,
    deletion_started: UInt8,
    counted: UInt8,
    totals: Int64,
) -> int:
    """A row is counted as led, offline or imbalanced. These are bits 0 to 2. Each total is the number of rows with its
    bit."""
    changes = 0
    for row in rows.tolist():
        in_use, has_state = topic[row] >= 0, topic[row] >= 0 and partition_epoch[row] != NO_STATE
        offline = in_use and status[row] >> STATE_SHIFT == PartitionState.OFFLINE and not deletion_started[topic[row]]
        imbalanced = False
        if has_state and replica_count[row] > 0 and not deleting[topic[row]]:
            first = int(slot_start[row])
            if replica_status[first] & ReplicaFlag.ADDING:
                imbalanced = int(replica[first]) in values_at(isr, slots_of(row, slot_start, isr_count))
            else:
                imbalanced = bool(leader[row] != replica[first])
        now, before = [has_state, offline, imbalanced], [bool(counted[row] >> bit & 1) for bit in range(3)]
        for bit in range(3):
            totals[bit] += bool(now[bit]) - before[bit]
        counted[row] = sum(bool(counts) << bit for bit, counts in enumerate(now))
        changes += now != before
    return changes


def initialize_replica_states(
    slot_start: Int32, replica_count: Int16, replica: Int16, live: UInt8, replica_status: UInt8
) -> int:
    """Online where the replica is online, else ReplicaDeletionIneligible."""
    count = 0
    for row in range(len(slot_start)):
        for slot in slots_of(row, slot_start, replica_count):
            online = is_slot_online(slot, replica, replica_status, live)
            state = ReplicaState.ONLINE if online else ReplicaState.DELETION_INELIGIBLE
            replica_status[slot] = replica_status[slot] & FLAGS_MASK | state << STATE_SHIFT
            count += online
    return count
