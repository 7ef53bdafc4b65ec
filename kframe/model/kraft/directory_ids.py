"""Reserved log directory ids (Kafka ``DirectoryId``). Ids below 100 never name a real directory."""

from __future__ import annotations

from typing import Final
from uuid import UUID

ZERO_UUID: Final = UUID(int=0)
MIGRATING: Final = ZERO_UUID
"""The replica's directory is unknown, because the assignment is older than directory ids."""
UNASSIGNED: Final = UUID(int=1)
"""The broker has not assigned the replica to a directory yet."""
LOST: Final = UUID(int=2)
"""The replica is in a directory that its broker has lost."""
RESERVED_MAX: Final = 99


def is_reserved(directory_id: UUID) -> bool:
    """Return whether the id never names a real directory (Kafka ``DirectoryId.reserved``)."""
    return directory_id.int <= RESERVED_MAX
