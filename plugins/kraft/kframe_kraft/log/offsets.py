"""What a leader answers to the position of a follower (Kafka ``RaftLog.validateOffsetAndEpoch``)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from kframe_kraft.disk import SnapshotId
from kframe_kraft.log.epochs import EpochEnd


@dataclass(frozen=True, slots=True)
class Serveable:
    """The log has what follows the position."""


@dataclass(frozen=True, slots=True)
class Diverged:
    """The follower has other records: it truncates its log to ``end``, and asks again."""

    end: EpochEnd


@dataclass(frozen=True, slots=True)
class NeedsSnapshot:
    """The log begins after the position: the follower begins with this snapshot."""

    snapshot_id: SnapshotId


#: The answer to the end of a follower's log and the epoch of its last record.
FetchPosition: TypeAlias = Serveable | Diverged | NeedsSnapshot
