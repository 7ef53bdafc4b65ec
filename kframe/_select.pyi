from kframe.model.columns import Int32
from kframe.model.elections import ElectionBatch

INVALID_POSITION: int
ELECTION_SIZE: int
FIRST_IN_SYNC: object

def capsule_parts(capsule: object) -> tuple[str | None, int, int]: ...
def elect(function: int, user_data: int, batch: ElectionBatch, rack: Int32, leader: Int32) -> int: ...
