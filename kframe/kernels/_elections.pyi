"""The types of the compiled module; the .pyx file has the shapes, and what is IN or OUT."""

from kframe.model.arrays import Int16, Int32, UInt8

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
) -> int: ...
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
) -> int: ...
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
) -> int: ...
