"""The encoding kernels again, in plain loops: what the tests hold ``_wire`` to, and the easier of the two to read.

Same names, signatures and results; see ``_wire.pyx`` for what the arguments are. Far too slow for a large cluster.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator

from kframe.model.columns import Int16, Int32, Int64, UInt8
from kframe.model.ids import LEADER_DURING_DELETE, NO_LEADER, ReplicaFlag

TOPIC_ID_BYTES = 16


def _varint(value: int) -> bytes:
    if value < 0x80:
        return bytes([value])
    return bytes([value & 0x7F | 0x80]) + _varint(value >> 7)


def _length(count: int, compact: bool) -> bytes:
    return _varint(count + 1) if compact else struct.pack(">i", count)


def _name(text: bytes, compact: bool) -> bytes:
    return (_varint(len(text) + 1) if compact else struct.pack(">h", len(text))) + text


def _ints(values: list[int], compact: bool) -> bytes:
    return _length(len(values), compact) + struct.pack(f">{len(values)}i", *values)


def _end(compact: bool) -> bytes:
    return b"\x00" if compact else b""


def _put(out: UInt8, at: int, data: bytes) -> int:
    if at + len(data) > len(out):
        raise IndexError(f"{len(data)} bytes at {at} of {len(out)}")
    out[at : at + len(data)] = list(data)
    return at + len(data)


def _runs(row_topic: Int32, grouped: bool) -> Iterator[tuple[int, int, int]]:
    """(topic, first position, position after the last) of each item of a section's outer array."""
    start = 0
    while start < len(row_topic):
        stop = start + 1
        while grouped and stop < len(row_topic) and row_topic[stop] == row_topic[start]:
            stop += 1
        yield int(row_topic[start]), start, stop
        start = stop


def _section_length(
    rows: Int32,
    entry_size: Int32,
    topic: Int32,
    name_offsets: Int32,
    grouped: bool,
    compact: bool,
    with_topic_ids: bool,
) -> tuple[int, int]:
    """Bytes of the section that holds just these rows, and the length of its outer array."""
    items = list(_runs(topic[rows], grouped))
    total = len(_length(len(items), compact)) + sum(int(entry_size[row]) for row in rows)
    for index, start, stop in items:
        total += len(_name(bytes(int(name_offsets[index + 1] - name_offsets[index])), compact))
        if grouped:
            total += TOPIC_ID_BYTES * with_topic_ids + len(_length(stop - start, compact)) + len(_end(compact))
    return total, len(items)


def fit_section(
    rows: Int32,
    start: int,
    byte_limit: int,
    entry_size: Int32,
    topic: Int32,
    name_offsets: Int32,
    grouped: bool,
    compact: bool,
    with_topic_ids: bool,
    row_topic: Int32,
    row_size: Int32,
    measured: Int64,
) -> int:
    """Take rows from ``start`` for as long as they fit; return the position after the last one taken."""
    shape = entry_size, topic, name_offsets, grouped, compact, with_topic_ids
    stop = min(start + 1, len(rows))
    while stop < len(rows) and _section_length(rows[start : stop + 1], *shape)[0] <= byte_limit:
        stop += 1
    row_topic[start:stop] = topic[rows[start:stop]]
    row_size[start:stop] = entry_size[rows[start:stop]]
    measured[:] = _section_length(rows[start:stop], *shape)
    return stop


def frame_section(
    row_topic: Int32,
    row_size: Int32,
    name_offsets: Int32,
    names: bytes,
    topic_ids: UInt8,
    items: int,
    grouped: bool,
    compact: bool,
    with_topic_ids: bool,
    entry_at: Int64,
    out: UInt8,
) -> int:
    """Write a section but for its entries; return its length."""
    at = _put(out, 0, _length(items, compact))
    for index, start, stop in _runs(row_topic, grouped):
        at = _put(out, at, _name(names[name_offsets[index] : name_offsets[index + 1]], compact))
        if grouped and with_topic_ids:
            at = _put(out, at, topic_ids[TOPIC_ID_BYTES * index : TOPIC_ID_BYTES * (index + 1)].tobytes())
        if grouped:
            at = _put(out, at, _length(stop - start, compact))
        for position in range(start, stop):
            entry_at[position] = at
            at += int(row_size[position])
        at = _put(out, at, _end(compact))
    return at


def _flagged(row: int, slot_start: Int32, replica_count: Int16, replica_flags: UInt8, flag: int) -> list[int]:
    """Slots of the row's replicas that carry ``flag``."""
    slots = range(int(slot_start[row]), int(slot_start[row]) + int(replica_count[row]))
    return [slot for slot in slots if replica_flags[slot] & flag]


def _offline(
    row: int, slot_start: Int32, replica_count: Int16, replica: Int32, replica_flags: UInt8, live: UInt8
) -> list[int]:
    """Slots of the row's replicas that are not online."""
    slots = range(int(slot_start[row]), int(slot_start[row]) + int(replica_count[row]))
    return [slot for slot in slots if not live[replica[slot]] or replica_flags[slot] & ReplicaFlag.OFFLINE_DIR]


def _fill(entry: Callable[[int], bytes], row_size: Int32, entry_at: Int64, out: UInt8) -> int:
    """Write ``entry(i)`` of each position; return how many came out as long as they were sized."""
    for position, size in enumerate(row_size):
        data = entry(position)
        _put(out, int(entry_at[position]), data)
        if len(data) != size:
            return position
    return len(row_size)


def size_leader_and_isr(
    rows: Int32,
    version: int,
    slot_start: Int32,
    replica_count: Int16,
    isr_count: Int16,
    replica_flags: UInt8,
    entry_size: Int32,
) -> int:
    """Measure the LeaderAndIsr entries of ``rows``; return their bytes in all."""
    compact = version >= 4
    for row in rows.tolist():
        counts = [int(isr_count[row]), int(replica_count[row])]
        if version >= 3:
            for flag in (ReplicaFlag.ADDING, ReplicaFlag.REMOVING):
                counts.append(len(_flagged(row, slot_start, replica_count, replica_flags, flag)))
        arrays = sum(len(_ints([0] * count, compact)) for count in counts)
        entry_size[row] = 20 + arrays + (version >= 1) + (version >= 6) + compact
    return sum(int(entry_size[row]) for row in rows)


def write_leader_and_isr(
    rows: Int32,
    version: int,
    partition: Int32,
    leader: Int32,
    leader_epoch: Int32,
    controller_epoch: Int32,
    partition_epoch: Int32,
    recovery: UInt8,
    slot_start: Int32,
    replica_count: Int16,
    isr_count: Int16,
    replica: Int32,
    isr: Int32,
    replica_flags: UInt8,
    broker_ids: Int32,
    entry_size: Int32,
    pool_at: Int64,
    pool: UInt8,
) -> int:
    """Write the LeaderAndIsr entries of ``rows``; return how many came out as long as they were sized."""
    compact = version >= 4

    def entry(row: int) -> bytes:
        start = int(slot_start[row])
        leader_id = NO_LEADER if leader[row] < 0 else broker_ids[leader[row]]
        data = struct.pack(">4i", partition[row], controller_epoch[row], leader_id, leader_epoch[row])
        data += _ints([broker_ids[index] for index in isr[start : start + isr_count[row]]], compact)
        data += struct.pack(">i", partition_epoch[row])
        data += _ints([broker_ids[index] for index in replica[start : start + replica_count[row]]], compact)
        for flag in (ReplicaFlag.ADDING, ReplicaFlag.REMOVING) if version >= 3 else ():
            slots = _flagged(row, slot_start, replica_count, replica_flags, flag)
            data += _ints([broker_ids[replica[slot]] for slot in slots], compact)
        data += b"\x00" if version >= 1 else b""
        data += bytes([recovery[row]]) if version >= 6 else b""
        return data + _end(compact)

    at = 0
    for position, row in enumerate(rows.tolist()):
        pool_at[row] = at
        at = _put(pool, at, entry(row))
        if at - pool_at[row] != entry_size[row]:
            return position
    return len(rows)


def copy_entries(
    rows: Int32,
    is_new: UInt8,
    is_new_back: int,
    row_size: Int32,
    pool_at: Int64,
    pool: UInt8,
    entry_at: Int64,
    out: UInt8,
) -> int:
    """Copy the LeaderAndIsr entries of ``rows`` into a section, each with its ``is_new``; return how many."""

    def entry(position: int) -> bytes:
        row = int(rows[position])
        data = bytearray(pool[pool_at[row] : pool_at[row] + row_size[position]].tobytes())
        if is_new_back:
            data[-is_new_back] = is_new[position]
        return bytes(data)

    return _fill(entry, row_size, entry_at, out)


def mark_leaders(rows: Int32, leader: Int32, most: int, leads: UInt8) -> int:
    """Mark the brokers that lead ``rows`` and were not marked, ``most`` at most; return how many."""
    leaders = dict.fromkeys(int(leader[row]) for row in rows if leader[row] != NO_LEADER)
    fresh = [broker for broker in leaders if not leads[broker]][:most]
    for broker in fresh:
        leads[broker] = 1
    return len(fresh)


def size_update_metadata(
    rows: Int32,
    version: int,
    slot_start: Int32,
    replica_count: Int16,
    isr_count: Int16,
    replica: Int32,
    replica_flags: UInt8,
    live: UInt8,
    entry_size: Int32,
) -> int:
    """Measure the UpdateMetadata entries of ``rows``; return their bytes in all."""
    compact = version >= 6
    for row in rows.tolist():
        counts = [int(isr_count[row]), int(replica_count[row])]
        if version >= 4:
            counts.append(len(_offline(row, slot_start, replica_count, replica, replica_flags, live)))
        entry_size[row] = 20 + sum(len(_ints([0] * count, compact)) for count in counts) + compact
    return sum(int(entry_size[row]) for row in rows)


def write_update_metadata(
    rows: Int32,
    version: int,
    topic: Int32,
    partition: Int32,
    leader: Int32,
    leader_epoch: Int32,
    controller_epoch: Int32,
    partition_epoch: Int32,
    slot_start: Int32,
    replica_count: Int16,
    isr_count: Int16,
    replica: Int32,
    isr: Int32,
    replica_flags: UInt8,
    broker_ids: Int32,
    live: UInt8,
    topic_deleting: UInt8,
    row_size: Int32,
    entry_at: Int64,
    out: UInt8,
) -> int:
    """Write the UpdateMetadata entries of ``rows``; return how many came out as long as they were sized."""
    compact = version >= 6

    def entry(position: int) -> bytes:
        row = int(rows[position])
        start = int(slot_start[row])
        leader_id = NO_LEADER if leader[row] < 0 else broker_ids[leader[row]]
        told = leader_id, leader_epoch[row], partition_epoch[row]
        if topic_deleting[topic[row]]:
            told = LEADER_DURING_DELETE, 0, 0
        data = struct.pack(">4i", partition[row], controller_epoch[row], told[0], told[1])
        data += _ints([broker_ids[index] for index in isr[start : start + isr_count[row]]], compact)
        data += struct.pack(">i", told[2])
        data += _ints([broker_ids[index] for index in replica[start : start + replica_count[row]]], compact)
        if version >= 4:
            slots = _offline(row, slot_start, replica_count, replica, replica_flags, live)
            data += _ints([broker_ids[replica[slot]] for slot in slots], compact)
        return data + _end(compact)

    return _fill(entry, row_size, entry_at, out)


def write_stop_replica(
    rows: Int32,
    version: int,
    partition: Int32,
    leader_epoch: Int32,
    delete: UInt8,
    row_size: Int32,
    entry_at: Int64,
    out: UInt8,
) -> int:
    """Write the StopReplica entries of ``rows``; return how many came out as long as they were sized."""

    def entry(position: int) -> bytes:
        index = struct.pack(">i", partition[rows[position]])
        if version < 3:
            return index
        return index + struct.pack(">i?", leader_epoch[position], delete[position]) + _end(compact=True)

    return _fill(entry, row_size, entry_at, out)
