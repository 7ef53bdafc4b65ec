"""The types of the compiled module; the .pyx file has the shapes, and what is IN or OUT."""

from kframe.model.arrays import Int16, Int32, Int64, UInt8

def size_replica_index(slot_start: Int32, replica_count: Int16, replica: Int16, offsets: Int64) -> int: ...
def build_replica_index(
    slot_start: Int32, replica_count: Int16, replica: Int16, offsets: Int64, last: Int32, ends: Int64, deltas: UInt8
) -> int: ...
def read_replica_index(deltas: UInt8, rows: Int32) -> int: ...
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
) -> int: ...
def list_replicas_on(
    rows: Int32,
    chosen: UInt8,
    slot_start: Int32,
    replica_count: Int16,
    replica: Int16,
    replica_row: Int32,
    positions: Int32,
    slots: Int32,
) -> int: ...
def locate_replicas(
    rows: Int32,
    broker: int,
    slot_start: Int32,
    replica_count: Int16,
    replica: Int16,
    positions: Int32,
    slots: Int32,
) -> int: ...
def group_by_rank(
    rows: Int32,
    brokers: Int32,
    rank: Int32,
    offsets: Int32,
    origin: Int32,
    grouped_rows: Int32,
    grouped_brokers: Int32,
) -> int: ...
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
) -> int: ...
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
) -> int: ...
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
) -> int: ...
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
) -> int: ...
