"""Reference kernels of ``_reassignments.pyx``."""

from __future__ import annotations

from kframe.model.arrays import Int16, Int32, UInt8
from kframe.model.ids import ReplicaFlag
from verification.reference.columns import slots_of, values_at

__all__ = ["list_flagged", "mark_invalid_targets", "mark_reassignment_progress", "plan_reassignments"]


def mark_invalid_targets(
    rows: Int32,
    target_offsets: Int32,
    targets: Int32,
    slot_start: Int32,
    replica_count: Int16,
    replica: Int16,
    replica_status: UInt8,
    live: UInt8,
    invalid: UInt8,
) -> int:
    """An unknown broker is -1, which no origin has."""
    for i, row in enumerate(rows.tolist()):
        target = targets[target_offsets[i] : target_offsets[i + 1]].tolist()
        origin = _origin(row, slot_start, replica_count, replica, replica_status) if row >= 0 else []
        added = [broker for broker in target if broker not in origin]
        dead = any(broker < 0 or not live[broker] for broker in added)
        invalid[i] = dead or not target or len(set(target)) < len(target)
    return int(invalid.sum())


def plan_reassignments(
    rows: Int32,
    target_offsets: Int32,
    targets: Int32,
    slot_start: Int32,
    replica_count: Int16,
    replica: Int16,
    replica_status: UInt8,
    offsets: Int32,
    values: Int32,
    flags: UInt8,
) -> int:
    """The target, then the rest of the origin. Adding is target - origin, removing origin - target."""
    filled = offsets[0] = 0
    for i, row in enumerate(rows.tolist()):
        target = dict.fromkeys(targets[target_offsets[i] : target_offsets[i + 1]].tolist())
        origin = _origin(row, slot_start, replica_count, replica, replica_status)
        planned = [(broker, 0 if broker in origin else ReplicaFlag.ADDING) for broker in target]
        planned += [(broker, ReplicaFlag.REMOVING) for broker in origin if broker not in target]
        for broker, flag in planned:
            values[filled], flags[filled] = broker, flag
            filled += 1
        offsets[i + 1] = filled
    return filled


def _origin(row: int, slot_start: Int32, replica_count: Int16, replica: Int16, replica_status: UInt8) -> list[int]:
    """The replicas of a row that are not being added."""
    slots = slots_of(row, slot_start, replica_count)
    return [int(replica[slot]) for slot in slots if not replica_status[slot] & ReplicaFlag.ADDING]


def mark_reassignment_progress(
    rows: Int32,
    slot_start: Int32,
    replica_count: Int16,
    isr_count: Int16,
    replica: Int16,
    isr: Int16,
    replica_status: UInt8,
    running: UInt8,
    reached: UInt8,
) -> int:
    """A replica in the ISR is in sync, live or not."""
    for i, row in enumerate(rows.tolist()):
        slots = slots_of(row, slot_start, replica_count)
        running[i] = any(replica_status[slot] & (ReplicaFlag.ADDING | ReplicaFlag.REMOVING) for slot in slots)
        target = [int(replica[slot]) for slot in slots if not replica_status[slot] & ReplicaFlag.REMOVING]
        reached[i] = set(target) <= set(values_at(isr, slots_of(row, slot_start, isr_count)))
    return int(running.sum())


def list_flagged(
    rows: Int32,
    flags: int,
    slot_start: Int32,
    replica_count: Int16,
    replica_status: UInt8,
    replica_row: Int32,
    positions: Int32,
) -> int:
    """Row and position of every replica with one of the flags, row by row."""
    count = 0
    for row in rows.tolist():
        for position, slot in enumerate(slots_of(row, slot_start, replica_count)):
            if replica_status[slot] & flags:
                replica_row[count], positions[count] = row, position
                count += 1
    return count
