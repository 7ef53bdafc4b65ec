"""See ``_hosting.pyx``, where shapes and what is IN or OUT stand with every argument."""

from kframe.model.columns import Int16, Int32, Int64, UInt8

def size_hosts(
    slot_start: Int32,
    replica_count: Int16,
    replica: Int16,
    offsets: Int64,
) -> int: ...
def index_hosts(
    slot_start: Int32,
    replica_count: Int16,
    replica: Int16,
    offsets: Int64,
    last: Int32,
    ends: Int64,
    steps: UInt8,
) -> int: ...
def read_hosts(
    steps: UInt8,
    rows: Int32,
) -> int: ...
def list_hosted(
    rows: Int32,
    chosen: UInt8,
    slot_start: Int32,
    replica_count: Int16,
    replica: Int16,
    hosted: Int32,
    places: Int32,
) -> int: ...
def list_strays(
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
def list_recipients(
    rows: Int32,
    slot_start: Int32,
    replica_count: Int16,
    replica: Int16,
    replica_flags: UInt8,
    allowed: UInt8,
    skip_flags: int,
    brokers: Int32,
    told: Int32,
) -> int: ...
def group_by_broker(
    brokers: Int32,
    rows: Int32,
    offsets: Int32,
    grouped: Int32,
    origin: Int32,
) -> int: ...
def assign_replicas(
    rows: Int32,
    offsets: Int32,
    values: Int32,
    flags: UInt8,
    slot_start: Int32,
    replica_count: Int16,
    replica: Int16,
    replica_state: UInt8,
    replica_flags: UInt8,
    old_replica: Int32,
    old_state: UInt8,
    old_flags: UInt8,
    departed: Int32,
) -> int: ...
def copy_assignments(
    rows: Int32,
    slot_start: Int32,
    replica_count: Int16,
    replica: Int16,
    replica_flags: UInt8,
    broker_ids: Int32,
    kept_flags: int,
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
    replica_flags: UInt8,
    differs: UInt8,
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
    hosts: Int32,
    in_sync: Int32,
) -> int: ...
