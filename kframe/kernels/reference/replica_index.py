"""Reference twins of ``_replica_index.pyx``."""

from __future__ import annotations

from typing import Final

from kframe.kernels.reference.columns import slots_of, values_at
from kframe.model.columns import Int16, Int32, Int64, UInt8
from kframe.model.ids import NO_STATE, ReplicaFlag, ReplicaState

__all__ = [
    "assign_replicas",
    "build_replica_index",
    "copy_assignments",
    "count_by_broker",
    "list_replicas_on",
    "list_unassigned_isr_members",
    "mark_reassigned",
    "read_replica_index",
    "size_replica_index",
]

DELTA_SLACK: Final = 64


def size_replica_index(slot_start: Int32, replica_count: Int16, replica: Int16, offsets: Int64) -> int:
    """A byte for each replica, and one more for as many as can be 128, 16,384 and so on rows from the one before."""
    rows, held = len(slot_start), [0] * (len(offsets) - 1)
    for start, count in zip(slot_start.tolist(), replica_count.tolist(), strict=True):
        for broker in replica[start : start + count].tolist():
            held[broker] += 1
    sizes = [count + sum(min(count, rows // 128**more) for more in (1, 2, 3, 4)) for count in held]
    offsets[:] = [sum(sizes[:broker]) for broker in range(len(sizes) + 1)]
    return sum(sizes) + DELTA_SLACK


def build_replica_index(
    slot_start: Int32, replica_count: Int16, replica: Int16, offsets: Int64, last: Int32, ends: Int64, deltas: UInt8
) -> int:
    """The rows that each broker replicas, broker by broker, as deltas."""
    for broker, one in enumerate(_deltas_by_broker(slot_start, replica_count, replica, last)):
        ends[broker] = offsets[broker] + len(one)
        deltas[offsets[broker] : ends[broker]] = list(one)
    return int(replica_count.sum())


def _deltas_by_broker(slot_start: Int32, replica_count: Int16, replica: Int16, last: Int32) -> list[bytearray]:
    on = [bytearray() for _ in last]
    last[:] = 0
    for row in range(len(slot_start)):
        start = int(slot_start[row])
        for broker in replica[start : start + int(replica_count[row])].tolist():
            delta = row - int(last[broker])
            while delta >= 128:
                on[broker].append(delta % 128 + 128)
                delta //= 128
            on[broker].append(delta)
            last[broker] = row
    return on


def read_replica_index(deltas: UInt8, rows: Int32) -> int:
    """Each delta is a number whose last byte is below 128; the rows are their sums."""
    found = row = delta = 0
    scale = 1
    for one in deltas.tolist():
        delta, scale = delta + one % 128 * scale, scale * 128
        if one < 128:
            row, delta, scale = row + delta, 0, 1
            rows[found] = row
            found += 1
    return found


def assign_replicas(
    rows: Int32, offsets: Int32, values: Int32, flags: UInt8, slot_start: Int32, replica_count: Int16, replica: Int16,
    replica_state: UInt8, replica_flags: UInt8, old_replica: Int32, old_state: UInt8, old_flags: UInt8, departed: Int32,
) -> int:  # fmt: skip
    """The new list first, then who left it; states go with their replicas."""
    for i, row in enumerate(rows.tolist()):
        start, old = int(slot_start[row]), int(replica_count[row])
        here = slice(start, start + old)
        states = dict(zip(replica[here].tolist(), replica_state[here].tolist(), strict=True))
        dirs = dict(zip(states, (replica_flags[here] & ReplicaFlag.OFFLINE_DIR).tolist(), strict=True))
        wanted = values[offsets[i] : offsets[i + 1]].tolist()
        same = _common_prefix(list(states), wanted)
        old_replica[same:old], old_state[same:old] = list(states)[same:], list(states.values())[same:]
        old_flags[same:old] = list(dirs.values())[same:]
        left = [broker for broker in states if broker not in wanted]
        for place, broker in enumerate(wanted + left):
            replica[start + place] = broker
            replica_state[start + place] = states.get(broker, ReplicaState.NON_EXISTENT)
            given = int(flags[offsets[i] + place]) if place < len(wanted) else 0
            replica_flags[start + place] = given | dirs.get(broker, 0)
        replica_count[row], departed[i] = len(wanted), len(left)
    return int(departed.sum())


def _common_prefix(one: list[int], other: list[int]) -> int:
    """How many values two lists begin with that are the same."""
    same = 0
    while same < min(len(one), len(other)) and one[same] == other[same]:
        same += 1
    return same


def list_replicas_on(
    rows: Int32,
    chosen: UInt8,
    slot_start: Int32,
    replica_count: Int16,
    replica: Int16,
    replica_row: Int32,
    positions: Int32,
) -> int:
    """Row and place of every replica on a chosen broker, row by row."""
    found = 0
    for row in rows.tolist():
        for slot in slots_of(row, slot_start, replica_count):
            if chosen[replica[slot]]:
                replica_row[found], positions[found] = row, slot - slot_start[row]
                found += 1
    return found


def copy_assignments(
    rows: Int32, slot_start: Int32, replica_count: Int16, replica: Int16, replica_flags: UInt8, broker_ids: Int32,
    kept_flags: int, values: Int32, flags: UInt8,
) -> int:  # fmt: skip
    """One row's list after another's, by broker id, with those flags that are asked for."""
    slots = [slot for row in rows.tolist() for slot in slots_of(row, slot_start, replica_count)]
    for copied, slot in enumerate(slots):
        values[copied] = broker_ids[replica[slot]]
        flags[copied] = int(replica_flags[slot]) & kept_flags
    return len(slots)


def mark_reassigned(
    rows: Int32, offsets: Int32, values: Int32, flags: UInt8, compared_flags: int, slot_start: Int32,
    replica_count: Int16, replica: Int16, replica_flags: UInt8, differs: UInt8,
) -> int:  # fmt: skip
    """A row differs by its brokers, their order, or a flag that counts."""
    for i, row in enumerate(rows.tolist()):
        wanted = [(int(values[j]), int(flags[j]) & compared_flags) for j in range(offsets[i], offsets[i + 1])]
        slots = slots_of(row, slot_start, replica_count)
        differs[i] = wanted != [(int(replica[slot]), int(replica_flags[slot]) & compared_flags) for slot in slots]
    return int(differs.sum())


def list_unassigned_isr_members(
    topic: Int32, partition_epoch: Int32, slot_start: Int32, replica_count: Int16, isr_count: Int16, replica: Int16,
    isr: Int16, deleting: UInt8, rows: Int32,
) -> int:  # fmt: skip
    """Rows with a state whose ISR names who is not assigned; what is gone or queued for deletion does not count."""
    found = 0
    for row in range(len(topic)):
        if topic[row] < 0 or deleting[topic[row]] or partition_epoch[row] == NO_STATE:
            continue
        in_sync = values_at(isr, slots_of(row, slot_start, isr_count))
        if not set(in_sync) <= set(values_at(replica, slots_of(row, slot_start, replica_count))):
            rows[found] = row
            found += 1
    return found


def count_by_broker(
    leader: Int16, slot_start: Int32, replica_count: Int16, isr_count: Int16, replica: Int16, isr: Int16,
    leads: Int32, preferred: Int32, replicas: Int32, in_sync: Int32,
) -> int:  # fmt: skip
    """Per broker: the rows that it leads, that prefer it, that it replicas, and whose ISR it is in."""
    for counts in (leads, preferred, replicas, in_sync):
        counts[:] = 0
    found = 0
    for row in range(len(leader)):
        if leader[row] >= 0:
            leads[leader[row]] += 1
            found += 1
        assigned = values_at(replica, slots_of(row, slot_start, replica_count))
        for broker in assigned[:1]:
            preferred[broker] += 1
        for broker in assigned:
            replicas[broker] += 1
        for broker in values_at(isr, slots_of(row, slot_start, isr_count)):
            in_sync[broker] += 1
    return found
