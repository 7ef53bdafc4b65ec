"""Names of the files in ``__cluster_metadata-0`` (Kafka ``Snapshots``, ``LogFileUtils``)."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final, NamedTuple

#: The records that a node is formatted with, until Kafka 4.3. Since 4.4 (KIP-1170) they are in the snapshot 0-0.
BOOTSTRAP_NAME: Final = "bootstrap.checkpoint"
#: The name of a snapshot: offset and epoch.
SNAPSHOT_NAME: Final = re.compile(r"(\d{20})-(\d{10})\.checkpoint")
_SEGMENT: Final = re.compile(r"(\d{20})\.log")


class SnapshotId(NamedTuple):
    """A snapshot has everything below ``offset``. ``epoch`` is that of the last record in it."""

    offset: int
    epoch: int

    @property
    def file_name(self) -> str:
        """The name of the snapshot's file."""
        return f"{self.offset:020}-{self.epoch:010}.checkpoint"


#: The snapshot that a node is formatted with; it is never served.
BOOTSTRAP_ID: Final = SnapshotId(0, 0)


def segments_in(directory: Path) -> dict[int, Path]:
    """Return the segments of a log by base offset, ascending."""
    matches = ((_SEGMENT.fullmatch(path.name), path) for path in directory.iterdir())
    return dict(sorted((int(match[1]), path) for match, path in matches if match))


def snapshots_in(directory: Path) -> dict[SnapshotId, Path]:
    """Return the complete snapshots of a log, ascending. Temporary and deleted ones are left out."""
    matches = ((SNAPSHOT_NAME.fullmatch(path.name), path) for path in directory.iterdir())
    return dict(sorted((SnapshotId(int(match[1]), int(match[2])), path) for match, path in matches if match))
