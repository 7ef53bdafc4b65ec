"""The types of the compiled module; the .pyx file has the shapes, and what is IN or OUT."""

from kframe.model.arrays import Int8, Int16, Int32, Int64, UInt8, UInt16

def store_states(
    rows: Int32,
    new_leader: Int32,
    new_leader_epoch: Int32,
    new_recovery: UInt8,
    new_partition_epoch: Int32,
    new_epoch_number: UInt16,
    isr_offsets: Int32,
    isr_values: Int32,
    slot_start: Int32,
    leader: Int16,
    leader_epoch: Int32,
    status: UInt8,
    partition_epoch: Int32,
    epoch_number: UInt16,
    isr_count: Int16,
    isr: Int16,
    counted: UInt8,
) -> int: ...
def list_stop_epochs(
    rows: Int32, topic: Int32, deleting: UInt8, partition_epoch: Int32, leader_epoch: Int32, epochs: Int32
) -> int: ...
def set_replica_states(
    rows: Int32,
    slots: Int32,
    sources: int,
    target: int,
    topic: Int32,
    is_counted: UInt8,
    replica_status: UInt8,
    counts: Int32,
    totals: Int64,
    legal: UInt8,
) -> int: ...
def set_replica_states_on(
    rows: Int32,
    broker: int,
    sources: int,
    target: int,
    topic: Int32,
    slot_start: Int32,
    replica_count: Int16,
    replica: Int16,
    is_counted: UInt8,
    replica_status: UInt8,
    counts: Int32,
    totals: Int64,
    legal: Int8,
) -> int: ...
def mark_rows_of_topics(rows: Int32, topic: Int32, chosen_topics: UInt8, mask: UInt8) -> int: ...
def count_replica_states(
    rows: Int32,
    topic: Int32,
    slot_start: Int32,
    replica_count: Int16,
    replica_status: UInt8,
    topics: int,
    counts: Int32,
) -> int: ...
def update_partition_counts(
    rows: Int32,
    topic: Int32,
    partition_epoch: Int32,
    status: UInt8,
    leader: Int16,
    slot_start: Int32,
    replica_count: Int16,
    isr_count: Int16,
    replica: Int16,
    isr: Int16,
    replica_status: UInt8,
    deleting: UInt8,
    deletion_started: UInt8,
    counted: UInt8,
    totals: Int64,
) -> int: ...
def initialize_replica_states(
    slot_start: Int32, replica_count: Int16, replica: Int16, live: UInt8, replica_status: UInt8
) -> int: ...
