"""The types of the compiled module; the .pyx file has the shapes, and what is IN or OUT."""

from kframe.model.arrays import Int16, Int32, UInt8

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
) -> int: ...
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
) -> int: ...
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
) -> int: ...
def list_flagged(
    rows: Int32,
    flags: int,
    slot_start: Int32,
    replica_count: Int16,
    replica_status: UInt8,
    replica_row: Int32,
    positions: Int32,
) -> int: ...
