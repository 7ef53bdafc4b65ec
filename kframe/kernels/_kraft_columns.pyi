"""The types of the compiled module; the .pyx file has the shapes, and what is IN or OUT."""

from kframe.model.arrays import Int16, Int32, UInt8

def list_rows_with_broker(slot_start: Int32, count: Int16, values: Int16, broker: int, rows: Int32) -> int: ...
def list_rows_in_directory(
    slot_start: Int32, replica_count: Int16, directory: Int32, target: int, rows: Int32
) -> int: ...
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
) -> int: ...
def copy_lists(starts: Int32, offsets: Int32, values: Int16, copied: Int32) -> int: ...
def remove_from_lists(
    offsets: Int32, values: Int32, broker: int, remaining_offsets: Int32, remaining: Int32
) -> int: ...
def store_isrs(
    rows: Int32,
    writes: UInt8,
    offsets: Int32,
    members: Int32,
    slot_start: Int32,
    slot_capacity: Int16,
    isr_count: Int16,
    isr: Int16,
) -> int: ...
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
) -> int: ...
