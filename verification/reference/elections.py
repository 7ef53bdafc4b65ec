"""Reference kernels of ``_elections.pyx``."""

from __future__ import annotations

from kframe.model.arrays import Int16, Int32, UInt8
from kframe.model.ids import NO_LEADER, NO_STATE, ElectionKind, ReplicaFlag
from verification.reference.columns import is_broker_online, is_slot_online, slots_of, values_at

__all__ = [
    "choose_leaders",
    "list_leaderless",
    "mark_offline_isrs",
]


def choose_leaders(
    kind: int,
    rows: Int32,
    slot_start: Int32,
    replica_count: Int16,
    isr_count: Int16,
    replica: Int16,
    isr: Int16,
    replica_status: UInt8,
    live: UInt8,
    unclean_allowed: UInt8,
    leader: Int32,
) -> int:
    """The first candidate that is online and in sync. An unclean OFFLINE election takes the first online one."""
    count = 0
    for i, row in enumerate(rows.tolist()):
        slots = slots_of(row, slot_start, replica_count)
        if kind == ElectionKind.PREFERRED:
            slots = slots[:1]
        elif kind == ElectionKind.REASSIGN:
            slots = [slot for slot in slots if not replica_status[slot] & ReplicaFlag.REMOVING]
        online = [int(replica[slot]) for slot in slots if is_slot_online(slot, replica, replica_status, live)]
        in_sync = values_at(isr, slots_of(row, slot_start, isr_count))
        eligible = online if kind == ElectionKind.INITIAL else [broker for broker in online if broker in in_sync]
        if not eligible and kind == ElectionKind.OFFLINE and unclean_allowed[i]:
            eligible = online
        leader[i] = eligible[0] if eligible else NO_LEADER
        count += bool(eligible)
    return count


def mark_offline_isrs(
    rows: Int32,
    slot_start: Int32,
    replica_count: Int16,
    isr_count: Int16,
    replica: Int16,
    isr: Int16,
    replica_status: UInt8,
    live: UInt8,
    offline_isr: UInt8,
) -> int:
    """A row is marked if none of its ISR members is online."""
    count = 0
    for i, row in enumerate(rows.tolist()):
        assigned = slots_of(row, slot_start, replica_count)
        in_sync = values_at(isr, slots_of(row, slot_start, isr_count))
        online = [broker for broker in in_sync if is_broker_online(broker, assigned, replica, replica_status, live)]
        offline_isr[i] = not online
        count += not online
    return count


def list_leaderless(
    topic: Int32,
    leader: Int16,
    partition_epoch: Int32,
    slot_start: Int32,
    replica_count: Int16,
    replica: Int16,
    replica_status: UInt8,
    live: UInt8,
    deleting: UInt8,
    rows: Int32,
) -> int:
    """Rows with a state whose leader is not online, except for unused rows and topics queued for deletion."""
    count = 0
    for row in range(len(topic)):
        if topic[row] < 0 or deleting[topic[row]] or partition_epoch[row] == NO_STATE:
            continue
        assigned = slots_of(row, slot_start, replica_count)
        if not is_broker_online(int(leader[row]), assigned, replica, replica_status, live):
            rows[count] = row
            count += 1
    return count
