"""The types of the compiled module; the .pyx file has the shapes, and what is IN or OUT."""

from kframe.model.arrays import Int16, Int32, UInt8

def mark_completed_reassignments(
    replica_offsets: Int32,
    replicas: Int32,
    isr_offsets: Int32,
    isr: Int32,
    adding_offsets: Int32,
    adding: Int32,
    removing_offsets: Int32,
    removing: Int32,
    rule: int,
    completed: UInt8,
    keeps_replica: UInt8,
    keeps_member: UInt8,
) -> int: ...
def update_elrs(
    rows: Int32,
    slot_start: Int32,
    isr_count: Int16,
    elr_count: Int16,
    isr: Int16,
    member: Int16,
    target_offsets: Int32,
    target_isr: Int32,
    min_isr: Int32,
    unclean_broker: int,
    elr_offsets: Int32,
    elr: Int32,
) -> int: ...
def mark_acceptable_replicas(
    starts: Int32,
    offsets: Int32,
    replicas: Int32,
    directory: Int32,
    active: UInt8,
    directory_brokers: Int16,
    lists_no_directory: UInt8,
    acceptable: UInt8,
) -> int: ...
def choose_kraft_leaders(
    kinds: UInt8,
    leader: Int32,
    stored_offsets: Int32,
    stored: Int32,
    acceptable: UInt8,
    replica_offsets: Int32,
    replicas: Int32,
    isr_offsets: Int32,
    isr: Int32,
    elr_offsets: Int32,
    elr: Int32,
    last_known_leader: Int32,
    new_leader: Int32,
    unclean: UInt8,
) -> int: ...
def mark_list_changes(
    offsets: Int32, values: Int32, other_offsets: Int32, other_values: Int32, differs: UInt8
) -> int: ...
def mark_missing_members(
    offsets: Int32, values: Int32, other_offsets: Int32, other_values: Int32, missing: UInt8
) -> int: ...
