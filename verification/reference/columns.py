"""Reading and writing slot lists, for the reference kernels."""

from __future__ import annotations

from kframe.model.arrays import Int16, Int32, UInt8
from kframe.model.ids import ReplicaFlag


def slots_of(row: int, slot_start: Int32, counts: Int16) -> list[int]:
    """The slots of a row that hold its assigned replicas or its ISR. ``counts`` has the lengths of these lists."""
    start = int(slot_start[row])
    return list(range(start, start + int(counts[row])))


def values_at(column: Int16, slots: list[int]) -> list[int]:
    """The values of a slot column in these slots."""
    return [int(column[slot]) for slot in slots]


def is_slot_online(slot: int, replica: Int16, replica_status: UInt8, live: UInt8) -> bool:
    """Whether an assigned replica is online. Its broker must be live, its log directory not offline."""
    return bool(live[replica[slot]]) and not replica_status[slot] & ReplicaFlag.OFFLINE_DIR


def is_broker_online(broker: int, assigned: list[int], replica: Int16, replica_status: UInt8, live: UInt8) -> bool:
    """Whether a leader or ISR member is online. For an unassigned member only its broker counts."""
    if broker < 0:
        return False
    for slot in assigned:
        if replica[slot] == broker:
            return is_slot_online(slot, replica, replica_status, live)
    return bool(live[broker])


def append_list(position: int, members: list[int], offsets: Int32, values: Int32) -> None:
    """Write list number ``position`` after the lists before it."""
    start = int(offsets[position])
    for k, member in enumerate(members):
        values[start + k] = member
    offsets[position + 1] = start + len(members)
