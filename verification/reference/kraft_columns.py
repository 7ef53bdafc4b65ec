"""Reference kernels of ``_kraft_columns.pyx``."""

from __future__ import annotations

from itertools import accumulate, chain, pairwise

import numpy as np

from kframe.model.arrays import Int16, Int32, UInt8
from verification.reference.columns import slots_of, values_at

__all__ = [
    "copy_lists",
    "list_rows_in_directory",
    "list_rows_with_broker",
    "read_partitions",
    "remove_from_lists",
    "store_changes",
    "store_isrs",
]


def list_rows_with_broker(slot_start: Int32, count: Int16, values: Int16, broker: int, rows: Int32) -> int:
    """Rows whose list contains the broker."""
    matches = [row for row in range(len(slot_start)) if broker in values_at(values, slots_of(row, slot_start, count))]
    rows[: len(matches)] = matches
    return len(matches)


def list_rows_in_directory(slot_start: Int32, replica_count: Int16, directory: Int32, target: int, rows: Int32) -> int:
    """Rows with a replica in the directory."""
    matches = [
        row for row in range(len(slot_start)) if target in directory[slots_of(row, slot_start, replica_count)].tolist()
    ]
    rows[: len(matches)] = matches
    return len(matches)


def read_partitions(
    rows: Int32,
    slot_start: Int32,
    replica_count: Int16,
    isr_count: Int16,
    elr_count: Int16,
    last_known_elr_count: Int16,
    adding_count: Int16,
    removing_count: Int16,
    leader: Int16,
    starts: Int32,
    leaders: Int32,
    replica_offsets: Int32,
    isr_offsets: Int32,
) -> int:
    """The first slots and leaders, and the offsets of lists of these lengths."""
    starts[:], leaders[:] = slot_start[rows], leader[rows]
    replica_offsets[:] = [0, *accumulate(replica_count[rows].tolist())]
    isr_offsets[:] = [0, *accumulate(isr_count[rows].tolist())]
    return sum(int(count[rows].sum()) for count in (elr_count, last_known_elr_count, adding_count, removing_count))


def copy_lists(starts: Int32, offsets: Int32, values: Int16, copied: Int32) -> int:
    """The lists, one after another."""
    for i, start in enumerate(starts.tolist()):
        count = int(offsets[i + 1] - offsets[i])
        copied[offsets[i] : offsets[i + 1]] = values[start : start + count]
    return int(offsets[-1])


def remove_from_lists(offsets: Int32, values: Int32, broker: int, remaining_offsets: Int32, remaining: Int32) -> int:
    """The values that are not the broker, in order."""
    pairs = [values[start:end].tolist() for start, end in pairwise(offsets.tolist())]
    lists = [[value for value in values_of_list if value != broker] for values_of_list in pairs]
    remaining_offsets[:] = [0, *accumulate(map(len, lists))]
    remaining[: remaining_offsets[-1]] = [*chain.from_iterable(lists)]
    return int(remaining_offsets[-1])


def store_isrs(
    rows: Int32,
    writes: UInt8,
    offsets: Int32,
    members: Int32,
    slot_start: Int32,
    slot_capacity: Int16,
    isr_count: Int16,
    isr: Int16,
) -> int:
    """Each ISR at the first slots of its row, unless it is too long."""
    too_long = 0
    for i in np.flatnonzero(writes).tolist():
        row, values = int(rows[i]), members[offsets[i] : offsets[i + 1]]
        if len(values) > slot_capacity[row]:
            too_long += 1
            continue
        isr_count[row] = len(values)
        isr[slot_start[row] : slot_start[row] + len(values)] = values
    return too_long


def store_changes(
    rows: Int32,
    changed: UInt8,
    writes_leader: UInt8,
    new_leader: Int32,
    writes_recovery: UInt8,
    new_recovery: UInt8,
    leader: Int16,
    leader_epoch: Int32,
    recovery: UInt8,
    partition_epoch: Int32,
) -> int:
    """A leader raises the leader epoch, any record the partition epoch."""
    led, recovered = writes_leader != 0, writes_recovery != 0
    leader[rows[led]] = new_leader[led]
    leader_epoch[rows[led]] += 1
    recovery[rows[recovered]] = new_recovery[recovered]
    partition_epoch[rows[changed != 0]] += 1
    return int(np.count_nonzero(changed))
