"""Reference kernels of ``_replica_index.pyx``."""

from __future__ import annotations

from typing import Final

import numpy as np

from kframe.model.arrays import Int16, Int32, Int64, UInt8
from kframe.model.ids import NO_STATE, STATE_SHIFT, ReplicaFlag, ReplicaState
from verification.reference.columns import slots_of, values_at

__all__ = [
    "assign_replicas",
    "build_replica_index",
    "copy_assignments",
    "count_by_broker",
    "group_by_rank",
    "list_replicas_on",
    "list_unassigned_isr_members",
    "locate_replicas",
    "mark_reassigned",
    "read_replica_index",
    "size_replica_index",
]

DELTA_SLACK: Final = 64


def size_replica_index(slot_start: Int32, replica_count: Int16, replica: Int16, offsets: Int64) -> int:
    """A byte per replica. One more for as many deltas as can reach 128, 16,384 and so on."""
    rows, counts = len(slot_start), [0] * (len(offsets) - 1)
    for row in range(rows):
        for broker in values_at(replica, slots_of(row, slot_start, replica_count)):
            counts[broker] += 1
    sizes = [count + sum(min(count, rows // 128**power) for power in (1, 2, 3, 4)) for count in counts]
    offsets[:] = [sum(sizes[:broker]) for broker in range(len(sizes) + 1)]
    return sum(sizes) + DELTA_SLACK


def build_replica_index(
    slot_start: Int32, replica_count: Int16, replica: Int16, offsets: Int64, last: Int32, ends: Int64, deltas: UInt8
) -> int:
    """The rows of each broker as deltas, broker by broker."""
    for broker, encoded in enumerate(_deltas_by_broker(slot_start, replica_count, replica, last)):
        ends[broker] = offsets[broker] + len(encoded)
        deltas[offsets[broker] : ends[broker]] = list(encoded)
    return int(replica_count.sum())


def _deltas_by_broker(slot_start: Int32, replica_count: Int16, replica: Int16, last: Int32) -> list[bytearray]:
    written = [bytearray() for _ in last]
    last[:] = 0
    for row in range(len(slot_start)):
        for broker in values_at(replica, slots_of(row, slot_start, replica_count)):
            delta = row - int(last[broker])
            while delta >= 128:
                written[broker].append(delta % 128 + 128)
                delta //= 128
            written[broker].append(delta)
            last[broker] = row
    return written


def read_replica_index(deltas: UInt8, rows: Int32) -> int:
    """The last byte of a delta is below 128. Rows are sums of deltas."""
    count = row = delta = 0
    scale = 1
    for byte in deltas.tolist():
        delta, scale = delta + byte % 128 * scale, scale * 128
        if byte < 128:
            row, delta, scale = row + delta, 0, 1
            rows[count] = row
            count += 1
    return count


def assign_replicas(
    rows: Int32,
    offsets: Int32,
    values: Int32,
    flags: UInt8,
    slot_start: Int32,
    replica_count: Int16,
    replica: Int16,
    replica_status: UInt8,
    old_replica: Int32,
    old_status: UInt8,
    removed_counts: Int32,
) -> int:
    """The new list first, then the removed replicas. Replicas keep their states."""
    for i, row in enumerate(rows.tolist()):
        start, old = int(slot_start[row]), int(replica_count[row])
        slots = slice(start, start + old)
        stays = np.uint8(0xFF ^ (ReplicaFlag.ADDING | ReplicaFlag.REMOVING))
        states = dict(zip(replica[slots].tolist(), (replica_status[slots] & stays).tolist(), strict=True))
        replicas = values[offsets[i] : offsets[i + 1]].tolist()
        prefix = _common_prefix(list(states), replicas)
        old_replica[prefix:old], old_status[prefix:old] = list(states)[prefix:], list(states.values())[prefix:]
        removed = [broker for broker in states if broker not in replicas]
        for position, broker in enumerate(replicas + removed):
            replica[start + position] = broker
            flag = int(flags[offsets[i] + position]) if position < len(replicas) else 0
            replica_status[start + position] = flag | states.get(broker, ReplicaState.NON_EXISTENT << STATE_SHIFT)
        replica_count[row], removed_counts[i] = len(replicas), len(removed)
    return int(removed_counts.sum())


def _common_prefix(left: list[int], right: list[int]) -> int:
    """The length of the common prefix of two lists."""
    length = 0
    while length < min(len(left), len(right)) and left[length] == right[length]:
        length += 1
    return length


def list_replicas_on(
    rows: Int32,
    chosen: UInt8,
    slot_start: Int32,
    replica_count: Int16,
    replica: Int16,
    replica_row: Int32,
    positions: Int32,
    slots: Int32,
) -> int:
    """Row, position and slot of every replica on a chosen broker, row by row."""
    count = 0
    for row in rows.tolist():
        for slot in slots_of(row, slot_start, replica_count):
            if chosen[replica[slot]]:
                replica_row[count], positions[count], slots[count] = row, slot - slot_start[row], slot
                count += 1
    return count


def locate_replicas(
    rows: Int32,
    broker: int,
    slot_start: Int32,
    replica_count: Int16,
    replica: Int16,
    positions: Int32,
    slots: Int32,
) -> int:
    """The slot of each row that has the broker."""
    positions[:] = slots[:] = -1
    for i, row in enumerate(rows.tolist()):
        for slot in slots_of(row, slot_start, replica_count):
            if replica[slot] == broker:
                positions[i], slots[i] = slot - slot_start[row], slot
    return int((slots >= 0).sum())


def group_by_rank(
    rows: Int32,
    brokers: Int32,
    rank: Int32,
    offsets: Int32,
    origin: Int32,
    grouped_rows: Int32,
    grouped_brokers: Int32,
) -> int:
    """The pairs of each row in the order of their ranks: all first ones, then all second ones."""
    ranks = [(row, int(rank[broker])) for row, broker in zip(rows.tolist(), brokers.tolist(), strict=True)]
    numbers = [sum(other == row and lower < own for other, lower in ranks) for row, own in ranks]
    origin[:] = np.argsort(numbers, kind="stable")
    grouped_rows[:], grouped_brokers[:] = rows[origin], brokers[origin]
    offsets[:] = [sum(number < group for number in numbers) for group in range(len(offsets))]
    return len(set(numbers))


def copy_assignments(
    rows: Int32,
    slot_start: Int32,
    replica_count: Int16,
    replica: Int16,
    replica_status: UInt8,
    broker_ids: Int32,
    flag_mask: int,
    offsets: Int32,
    values: Int32,
    flags: UInt8,
) -> int:
    """The lists, row by row, as broker ids with the requested flags."""
    copied = offsets[0] = 0
    for i, row in enumerate(rows.tolist()):
        for slot in slots_of(row, slot_start, replica_count):
            values[copied] = broker_ids[replica[slot]]
            flags[copied] = int(replica_status[slot]) & flag_mask
            copied += 1
        offsets[i + 1] = copied
    return copied


def mark_reassigned(
    rows: Int32,
    offsets: Int32,
    values: Int32,
    flags: UInt8,
    compared_flags: int,
    slot_start: Int32,
    replica_count: Int16,
    replica: Int16,
    replica_status: UInt8,
    differs: UInt8,
) -> int:
    """A row differs by its brokers, their order, or a compared flag."""
    for i, row in enumerate(rows.tolist()):
        replicas = [(int(values[j]), int(flags[j]) & compared_flags) for j in range(offsets[i], offsets[i + 1])]
        slots = slots_of(row, slot_start, replica_count)
        differs[i] = replicas != [(int(replica[slot]), int(replica_status[slot]) & compared_flags) for slot in slots]
    return int(differs.sum())


def list_unassigned_isr_members(
    topic: Int32,
    partition_epoch: Int32,
    slot_start: Int32,
    replica_count: Int16,
    isr_count: Int16,
    replica: Int16,
    isr: Int16,
    deleting: UInt8,
    rows: Int32,
) -> int:
    """Rows with a state and an unassigned ISR member, except for unused rows and topics queued for deletion."""
    count = 0
    for row in range(len(topic)):
        if topic[row] < 0 or deleting[topic[row]] or partition_epoch[row] == NO_STATE:
            continue
        in_sync = values_at(isr, slots_of(row, slot_start, isr_count))
        if not set(in_sync) <= set(values_at(replica, slots_of(row, slot_start, replica_count))):
            rows[count] = row
            count += 1
    return count


def count_by_broker(
    leader: Int16,
    slot_start: Int32,
    replica_count: Int16,
    isr_count: Int16,
    replica: Int16,
    isr: Int16,
    leads: Int32,
    preferred: Int32,
    replicas: Int32,
    in_sync: Int32,
) -> int:
    """Per broker: leaders, preferred leaders, replicas and ISR memberships."""
    for counts in (leads, preferred, replicas, in_sync):
        counts[:] = 0
    count = 0
    for row in range(len(leader)):
        if leader[row] >= 0:
            leads[leader[row]] += 1
            count += 1
        assigned = values_at(replica, slots_of(row, slot_start, replica_count))
        for broker in assigned[:1]:
            preferred[broker] += 1
        for broker in assigned:
            replicas[broker] += 1
        for broker in values_at(isr, slots_of(row, slot_start, isr_count)):
            in_sync[broker] += 1
    return count
