"""The types of the compiled module; the .pyx file has the shapes, and what is IN or OUT."""

from kframe.model.arrays import Int16, Int32, UInt8

DEBUG: bool

def plan_elections(
    kind: int,
    recovery_supported: bool,
    rows: Int32,
    leader: Int32,
    old_epoch: Int32,
    status: UInt8,
    slot_start: Int32,
    replica_count: Int16,
    isr_count: Int16,
    replica: Int16,
    isr: Int16,
    replica_status: UInt8,
    live: UInt8,
    shutting_down: UInt8,
    leader_epoch: Int32,
    recovery: UInt8,
    isr_offsets: Int32,
    isr_values: Int32,
) -> int: ...
def plan_removals(
    brokers: Int32,
    rows: Int32,
    old_leader: Int16,
    old_epoch: Int32,
    status: UInt8,
    partition_epoch: Int32,
    slot_start: Int32,
    isr_count: Int16,
    isr: Int16,
    changed: Int32,
    leader: Int32,
    leader_epoch: Int32,
    recovery: UInt8,
    expected: Int32,
    isr_offsets: Int32,
    isr_values: Int32,
) -> int: ...
def check_transitions(positions: Int32, status: UInt8, allowed: int, valid: UInt8) -> int: ...
def mark_online_replicas(slots: Int32, replica: Int16, replica_status: UInt8, live: UInt8, online: UInt8) -> int: ...
def list_in_states(topic: Int32, status: UInt8, state_mask: int, deleting: UInt8, rows: Int32) -> int: ...
def initialize_partition_states(
    leader: Int16,
    partition_epoch: Int32,
    slot_start: Int32,
    replica_count: Int16,
    replica: Int16,
    replica_status: UInt8,
    live: UInt8,
    status: UInt8,
) -> int: ...
def list_recipients(
    rows: Int32,
    slot_start: Int32,
    replica_count: Int16,
    replica: Int16,
    replica_status: UInt8,
    allowed: UInt8,
    skip_flags: int,
    new_flags: int,
    brokers: Int32,
    announced: Int32,
    is_new: UInt8,
) -> int: ...
def group_by_broker(brokers: Int32, rows: Int32, offsets: Int32, grouped: Int32, origin: Int32) -> int: ...
