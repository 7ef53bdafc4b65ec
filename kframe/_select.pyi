from kframe.model.columns import Int16, Int32, Partitions, UInt8
from kframe.model.elections import ElectionBatch

INVALID_POSITION: int
ELECTION_SIZE: int
FIRST_IN_SYNC: object

def capsule_parts(capsule: object) -> tuple[str | None, int, int]: ...
def elect(function: int, user_data: int, batch: ElectionBatch, leader: Int32) -> int: ...
def gather(
    kind: int,
    rows: Int32,
    slot_start: Int32,
    replica_count: Int16,
    isr_count: Int16,
    replica: Int16,
    isr: Int16,
    replica_flags: UInt8,
    live: UInt8,
    offsets: Int32,
    candidates: Int32,
    eligible: UInt8,
    in_sync: UInt8,
    isr_offsets: Int32,
    isr_values: Int32,
    clean: UInt8,
) -> int: ...
def count_unlawful(
    kind: int,
    offsets: Int32,
    candidates: Int32,
    eligible: UInt8,
    in_sync: UInt8,
    unclean_allowed: UInt8,
    leader: Int32,
) -> int: ...
def copy_rows(
    rows: Int32,
    topic: Int32,
    partition: Int32,
    leader: Int16,
    leader_epoch: Int32,
    values: Int32,
) -> None: ...
def choose(
    function: int,
    user_data: int,
    kind: int,
    seed: int,
    p: Partitions,
    live: UInt8,
    shown: tuple[Int32, Int32, UInt8, UInt8],
    rows: Int32,
    unclean_allowed: UInt8,
    numbers: Int16,
    marks: UInt8,
    leader: Int32,
) -> int: ...
