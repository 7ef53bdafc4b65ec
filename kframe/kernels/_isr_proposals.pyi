"""The types of the compiled module; the .pyx file has the shapes, and what is IN or OUT."""

from kframe.model.arrays import Int16, Int32, UInt8

def check_isr_proposals(
    rows: Int32,
    sender: int,
    new_leader_epoch: Int32,
    new_partition_epoch: Int32,
    new_recovery: UInt8,
    isr_offsets: Int32,
    isr_values: Int32,
    refused_members: UInt8,
    malformed: UInt8,
    eligible: UInt8,
    slot_start: Int32,
    isr_count: Int16,
    isr: Int16,
    leader: Int16,
    leader_epoch: Int32,
    partition_epoch: Int32,
    status: UInt8,
    check: UInt8,
) -> int: ...
