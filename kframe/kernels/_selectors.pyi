"""The types of the compiled module; the .pyx file has the shapes, and what is IN or OUT."""

from kframe.model.arrays import Int16, Int32, UInt8
from kframe.model.columns import Partitions
from kframe.model.elections import ElectionBatch

INVALID_POSITION: int
ELECTION_SIZE: int
FIRST_IN_SYNC: object

def capsule_parts(capsule: object) -> tuple[str | None, int, int]: ...
def elect(function: int, user_data: int, batch: ElectionBatch, leader: Int32) -> int: ...
def choose_leaders_native(
    function: int,
    user_data: int,
    kind: int,
    p: Partitions,
    live: UInt8,
    broker_columns: tuple[Int32, Int32, UInt8, UInt8],
    rows: Int32,
    allowed: UInt8,
    scratch: tuple[Int16, UInt8] | None,
    leader: Int32,
) -> int: ...
def gather_candidates(
    kind: int,
    rows: Int32,
    p: Partitions,
    live: UInt8,
    allowed: UInt8,
    offsets: Int32,
    candidates: Int32,
    may_lead: UInt8,
    first: Int16,
) -> int: ...
def mark_candidates(kind: int, rows: Int32, p: Partitions, live: UInt8, eligible: UInt8, in_sync: UInt8) -> None: ...
def count_violations(
    kind: int, rows: Int32, p: Partitions, live: UInt8, allowed: UInt8, first: Int16, leader: Int32
) -> int: ...
def take_first(offsets: Int32, values: Int32, mask: UInt8, out: Int32) -> bool: ...
def batch_seed(kind: int, rows: Int32, topic: Int32, partition: Int32, leader_epoch: Int32) -> int: ...
