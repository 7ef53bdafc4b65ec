"""The signatures are those of the reference kernels. The .pyx file has the shapes, and what is IN or OUT."""

from kframe.kernels.reference.selectors import *  # noqa: F403
from kframe.model.columns import Int16, Int32, Partitions, UInt8
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
