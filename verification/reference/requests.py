"""Reference kernels of ``_request_entries.pyx`` and ``_request_sections.pyx``."""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator
from itertools import pairwise

import numpy as np

from kframe.model.arrays import Int16, Int32, Int64, UInt8, UInt16
from kframe.model.ids import LEADER_DURING_DELETE, NO_LEADER, PartitionFlag, ReplicaFlag
from verification.reference.columns import is_slot_online, slots_of
from verification.reference.primitives import end_bytes, ints_bytes, length_bytes, name_bytes

__all__ = [
    "copy_entries",
    "fit_sections",
    "frame_sections",
    "measure_live_leaders",
    "size_leader_and_isr",
    "size_update_metadata",
    "write_leader_and_isr",
    "write_live_leaders",
    "write_stop_replica",
    "write_update_metadata",
]

TOPIC_ID_BYTES = 16


def _put(out: UInt8, offset: int, data: bytes) -> int:
    if offset + len(data) > len(out):
        raise IndexError(f"{len(data)} bytes at {offset} of {len(out)}")
    out[offset : offset + len(data)] = list(data)
    return offset + len(data)


def _runs(row_topic: Int32, grouped: bool) -> Iterator[tuple[int, int, int]]:
    """(topic, first position, position after the last) of each item of a section's outer array."""
    starts = [i for i in range(len(row_topic)) if i == 0 or not grouped or row_topic[i] != row_topic[i - 1]]
    for start, stop in pairwise([*starts, len(row_topic)]):
        yield int(row_topic[start]), start, stop


def fit_sections(
    offsets: Int32,
    rows: Int32,
    first: int,
    byte_limit: int,
    group_limit: int,
    tail_max: int,
    entry_size: Int32,
    topic: Int32,
    name_offsets: Int32,
    grouped: bool,
    compact: bool,
    with_topic_ids: bool,
    row_topic: Int32,
    row_size: Int32,
    section_list: Int32,
    section_start: Int32,
    section_items: Int32,
    section_length: Int64,
) -> int:
    """Divide rows from ``first`` on into sections until the group is full. Return how many."""

    def sizes_of(section_rows: Int32) -> Int32:
        return entry_size[section_rows] if len(entry_size) > 1 else np.repeat(entry_size, len(section_rows))

    def measure(section_rows: Int32) -> tuple[int, int]:
        items = list(_runs(topic[section_rows], grouped))
        total = len(length_bytes(len(items), compact)) + int(sizes_of(section_rows).sum())
        for index, begin, end in items:
            total += len(name_bytes(bytes(int(name_offsets[index + 1] - name_offsets[index])), compact))
            if grouped:
                total += TOPIC_ID_BYTES * with_topic_ids + len(length_bytes(end - begin, compact) + end_bytes(compact))
        return len(items), total

    start, used, count = first, 0, 0
    while start < len(rows) and count < len(section_list):
        list_index = int(np.searchsorted(offsets, start, side="right")) - 1
        stop = start + 1
        while stop < offsets[list_index + 1] and measure(rows[start : stop + 1])[1] <= byte_limit:
            stop += 1
        row_topic[start - first : stop - first] = topic[rows[start:stop]]
        row_size[start - first : stop - first] = sizes_of(rows[start:stop])
        section_items[count], section_length[count] = measure(rows[start:stop])
        used += int(section_length[count]) + tail_max
        if count and used > group_limit:
            break
        section_list[count], section_start[count] = list_index, start - first
        start, count = stop, count + 1
    section_start[count] = start - first
    return count


def frame_sections(
    section_start: Int32,
    section_items: Int32,
    section_length: Int64,
    section_offset: Int64,
    row_topic: Int32,
    row_size: Int32,
    name_offsets: Int32,
    names: bytes,
    topic_ids: UInt8,
    grouped: bool,
    compact: bool,
    with_topic_ids: bool,
    tail: bytes,
    entry_offset: Int64,
    out: UInt8,
) -> int:
    """Write everything but the entries of sections. Return how many sections have the computed length."""
    for section, items in enumerate(section_items):
        first, end = section_start[section : section + 2].tolist()
        offset = _put(out, int(section_offset[section]), length_bytes(int(items), compact))
        for index, start, stop in _runs(row_topic[first:end], grouped):
            offset = _put(out, offset, name_bytes(names[name_offsets[index] : name_offsets[index + 1]], compact))
            if grouped and with_topic_ids:
                offset = _put(out, offset, topic_ids[TOPIC_ID_BYTES * index :][:TOPIC_ID_BYTES].tobytes())
            offset = _put(out, offset, length_bytes(stop - start, compact)) if grouped else offset
            for position in range(first + start, first + stop):
                entry_offset[position] = offset
                offset += int(row_size[position])
            offset = _put(out, offset, end_bytes(compact))
        if offset - section_offset[section] != section_length[section]:
            return section
        _put(out, offset, tail)
    return len(section_items)


def _name_leaders(
    section: int, rows: Int32, leader: Int16, leader_size: Int32, max_leaders: int, last_section: Int32
) -> list[int]:
    """Mark the leaders of a section; return them."""
    leaders = dict.fromkeys(int(leader[row]) for row in rows if leader[row] != NO_LEADER)
    unlisted = [broker for broker in leaders if leader_size[broker] > 0][:max_leaders]
    last_section[unlisted] = section
    return unlisted


def measure_live_leaders(
    section_start: Int32,
    rows: Int32,
    leader: Int16,
    leader_size: Int32,
    max_leaders: int,
    compact: bool,
    last_section: Int32,
    tail_length: Int64,
) -> int:
    """Compute the lengths of the tails of LeaderAndIsr requests. Return the total."""
    last_section[:] = -1
    for section, (start, stop) in enumerate(pairwise(section_start.tolist())):
        leads = _name_leaders(section, rows[start:stop], leader, leader_size, max_leaders, last_section)
        tail_length[section] = len(length_bytes(len(leads), compact) + end_bytes(compact)) + leader_size[leads].sum()
    return int(tail_length.sum())


def write_live_leaders(
    section_start: Int32,
    rows: Int32,
    leader: Int16,
    leader_size: Int32,
    leader_brokers: Int32,
    leader_bytes: bytes,
    compact: bool,
    section_offset: Int64,
    tail_length: Int64,
    last_section: Int32,
    out: UInt8,
) -> int:
    """Write the tails of LeaderAndIsr requests, leaders ascending by id. Return how many have the computed length."""
    last_section[:] = -1
    stops = np.cumsum(leader_size[leader_brokers])
    entries = {
        broker: leader_bytes[stop - leader_size[broker] : stop]
        for broker, stop in zip(leader_brokers, stops, strict=True)
    }
    for section, (start, stop) in enumerate(pairwise(section_start.tolist())):
        leads = _name_leaders(section, rows[start:stop], leader, leader_size, len(leader_brokers), last_section)
        tail = length_bytes(len(leads), compact) + b"".join(
            entries[broker] for broker in leader_brokers if broker in leads
        )
        offset = int(section_offset[section + 1])
        if _put(out, offset - int(tail_length[section]), tail + end_bytes(compact)) != offset:
            return section
    return len(tail_length)


def _flagged(row: int, slot_start: Int32, replica_count: Int16, replica_status: UInt8, flag: int) -> list[int]:
    """Slots of the row's replicas with ``flag``."""
    return [slot for slot in slots_of(row, slot_start, replica_count) if replica_status[slot] & flag]


def _offline(
    row: int, slot_start: Int32, replica_count: Int16, replica: Int16, replica_status: UInt8, live: UInt8
) -> list[int]:
    """Slots of the row's replicas that are not online."""
    slots = slots_of(row, slot_start, replica_count)
    return [slot for slot in slots if not is_slot_online(slot, replica, replica_status, live)]


def _fill(entry: Callable[[int], bytes], row_size: Int32, entry_offset: Int64, out: UInt8) -> int:
    """Write ``entry(i)`` for each position. Return how many have the computed size."""
    for position, size in enumerate(row_size):
        data = entry(position)
        _put(out, int(entry_offset[position]), data)
        if len(data) != size:
            return position
    return len(row_size)


def size_leader_and_isr(
    rows: Int32,
    version: int,
    slot_start: Int32,
    replica_count: Int16,
    isr_count: Int16,
    replica_status: UInt8,
    entry_size: Int32,
) -> int:
    """Compute the sizes of the LeaderAndIsr entries of ``rows``. Return the total."""
    compact = version >= 4
    for row in rows.tolist():
        counts = [int(isr_count[row]), int(replica_count[row])]
        if version >= 3:
            for flag in (ReplicaFlag.ADDING, ReplicaFlag.REMOVING):
                counts.append(len(_flagged(row, slot_start, replica_count, replica_status, flag)))
        arrays = sum(len(ints_bytes([0] * count, compact)) for count in counts)
        entry_size[row] = 20 + arrays + (version >= 1) + (version >= 6) + compact
    return sum(int(entry_size[row]) for row in rows)


def write_leader_and_isr(
    rows: Int32,
    version: int,
    partition: Int32,
    leader: Int16,
    leader_epoch: Int32,
    epoch_number: UInt16,
    controller_epochs: Int32,
    partition_epoch: Int32,
    status: UInt8,
    slot_start: Int32,
    replica_count: Int16,
    isr_count: Int16,
    replica: Int16,
    isr: Int16,
    replica_status: UInt8,
    broker_ids: Int32,
    entry_size: Int32,
    first: int,
    pool_offset: Int64,
    pool: UInt8,
) -> int:
    """Write the LeaderAndIsr entries of ``rows`` from ``first`` on. Return how many have the computed size."""
    compact = version >= 4

    def entry(row: int) -> bytes:
        leader_id = NO_LEADER if leader[row] < 0 else broker_ids[leader[row]]
        data = struct.pack(">4i", partition[row], controller_epochs[epoch_number[row]], leader_id, leader_epoch[row])
        data += ints_bytes([broker_ids[isr[slot]] for slot in slots_of(row, slot_start, isr_count)], compact)
        data += struct.pack(">i", partition_epoch[row])
        data += ints_bytes([broker_ids[replica[slot]] for slot in slots_of(row, slot_start, replica_count)], compact)
        for flag in (ReplicaFlag.ADDING, ReplicaFlag.REMOVING) if version >= 3 else ():
            slots = _flagged(row, slot_start, replica_count, replica_status, flag)
            data += ints_bytes([broker_ids[replica[slot]] for slot in slots], compact)
        data += b"\x00" if version >= 1 else b""
        data += bytes([status[row] & PartitionFlag.RECOVERING]) if version >= 6 else b""
        return data + end_bytes(compact)

    offset = first
    for position, row in enumerate(rows.tolist()):
        pool_offset[row] = offset
        offset = _put(pool, offset, entry(row))
        if offset - pool_offset[row] != entry_size[row]:
            return position
    return len(rows)


def copy_entries(
    rows: Int32,
    is_new: UInt8,
    is_new_from_end: int,
    row_size: Int32,
    pool_offset: Int64,
    pool: UInt8,
    entry_offset: Int64,
    out: UInt8,
) -> int:
    """Copy the LeaderAndIsr entries of ``rows`` into a section, each with its ``is_new``. Return how many."""

    def entry(position: int) -> bytes:
        row = int(rows[position])
        data = bytearray(pool[pool_offset[row] : pool_offset[row] + row_size[position]].tobytes())
        if is_new_from_end:
            data[-is_new_from_end] = is_new[position]
        return bytes(data)

    return _fill(entry, row_size, entry_offset, out)


def size_update_metadata(
    rows: Int32,
    version: int,
    slot_start: Int32,
    replica_count: Int16,
    isr_count: Int16,
    replica: Int16,
    replica_status: UInt8,
    live: UInt8,
    entry_size: Int32,
) -> int:
    """Compute the sizes of the UpdateMetadata entries of ``rows``. Return the total."""
    compact = version >= 6
    for row in rows.tolist():
        counts = [int(isr_count[row]), int(replica_count[row])]
        if version >= 4:
            counts.append(len(_offline(row, slot_start, replica_count, replica, replica_status, live)))
        entry_size[row] = 20 + sum(len(ints_bytes([0] * count, compact)) for count in counts) + compact
    return sum(int(entry_size[row]) for row in rows)


def write_update_metadata(
    rows: Int32,
    version: int,
    topic: Int32,
    partition: Int32,
    leader: Int16,
    leader_epoch: Int32,
    epoch_number: UInt16,
    controller_epochs: Int32,
    partition_epoch: Int32,
    slot_start: Int32,
    replica_count: Int16,
    isr_count: Int16,
    replica: Int16,
    isr: Int16,
    replica_status: UInt8,
    broker_ids: Int32,
    live: UInt8,
    topic_deleting: UInt8,
    row_size: Int32,
    entry_offset: Int64,
    out: UInt8,
) -> int:
    """Write the UpdateMetadata entries of ``rows``. Return how many have the computed size."""
    compact = version >= 6

    def entry(position: int) -> bytes:
        row = int(rows[position])
        leader_id = NO_LEADER if leader[row] < 0 else broker_ids[leader[row]]
        leader_fields = leader_id, leader_epoch[row], partition_epoch[row]
        if topic_deleting[topic[row]]:
            leader_fields = LEADER_DURING_DELETE, 0, 0
        data = struct.pack(
            ">4i", partition[row], controller_epochs[epoch_number[row]], leader_fields[0], leader_fields[1]
        )
        data += ints_bytes([broker_ids[isr[slot]] for slot in slots_of(row, slot_start, isr_count)], compact)
        data += struct.pack(">i", leader_fields[2])
        data += ints_bytes([broker_ids[replica[slot]] for slot in slots_of(row, slot_start, replica_count)], compact)
        if version >= 4:
            slots = _offline(row, slot_start, replica_count, replica, replica_status, live)
            data += ints_bytes([broker_ids[replica[slot]] for slot in slots], compact)
        return data + end_bytes(compact)

    return _fill(entry, row_size, entry_offset, out)


def write_stop_replica(
    rows: Int32,
    version: int,
    partition: Int32,
    leader_epoch: Int32,
    delete: UInt8,
    row_size: Int32,
    entry_offset: Int64,
    out: UInt8,
) -> int:
    """Write the StopReplica entries of ``rows``. Return how many have the computed size."""

    def entry(position: int) -> bytes:
        data = struct.pack(">i", partition[rows[position]])
        if version < 3:
            return data
        return data + struct.pack(">i?", leader_epoch[position], delete[position]) + end_bytes(compact=True)

    return _fill(entry, row_size, entry_offset, out)
