"""Where a log may go on, and what a leader answers to the position of a follower (Kafka ``RaftLog``)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

from kframe_kraft.batches import BatchHeader
from kframe_kraft.batches.header import read_header
from kframe_kraft.disk import SnapshotId
from kframe_kraft.disk.names import BOOTSTRAP_ID
from kframe_kraft.errors import LogError
from kframe_kraft.log.epochs import EpochStarts, LogEpochEnd


@dataclass(frozen=True, slots=True)
class Serveable:
    """The log has what follows the position."""


@dataclass(frozen=True, slots=True)
class Diverged:
    """The follower has other records: it truncates its log to ``end``, and asks again."""

    end: LogEpochEnd


@dataclass(frozen=True, slots=True)
class NeedsSnapshot:
    """The log begins after the position: the follower begins with this snapshot."""

    snapshot_id: SnapshotId


#: The answer to the end of a follower's log and the epoch of its last record.
FetchPosition: TypeAlias = Serveable | Diverged | NeedsSnapshot


@dataclass(frozen=True, slots=True)
class LogBounds:
    """The offsets and snapshots of a log. ``last_epoch`` is that of its last record, or of the snapshot before it."""

    start: int
    end: int
    last_epoch: int
    snapshots: Sequence[SnapshotId] = ()


def next_header(batch: bytes, end: int, epoch: int) -> BatchHeader:
    """The header of a batch that is to be appended to a log that ends at ``end`` in ``epoch``.

    Raises LogError unless it is a single batch with the next offset, in this epoch or a later one.
    """
    header = read_header(batch, 0, "batch to append")
    if header.size != len(batch) or header.base_offset != end or header.leader_epoch < epoch:
        batch_text = f"{len(batch)} bytes from offset {header.base_offset} in epoch {header.leader_epoch}"
        raise LogError("batch to append", batch_text, f"one batch from {end} in epoch {epoch} or later")
    return header


def check_position(offset: int, epoch: int, log: LogBounds, epochs: EpochStarts) -> FetchPosition:
    """Whether a log that ends at ``offset`` with a record of ``epoch`` is a beginning of ``log``.

    The snapshot that a node is formatted with (0-0) is never served.
    """
    newest = log.snapshots[-1] if log.snapshots else BOOTSTRAP_ID
    if offset == 0 and newest != BOOTSTRAP_ID:
        return NeedsSnapshot(newest)
    if offset == 0 and log.start == 0:
        return Serveable()
    earliest = log.snapshots[0] if log.snapshots else None
    if earliest is not None and (
        offset < log.start or (offset == log.start and epoch != earliest.epoch) or epoch < earliest.epoch
    ):
        return NeedsSnapshot(newest)
    end = epochs.end_of(epoch, log.end) or LogEpochEnd(log.last_epoch, log.end)
    if earliest is not None and end == LogEpochEnd(epoch, earliest.offset):
        end = LogEpochEnd(earliest.epoch, earliest.offset)
    return Serveable() if end.epoch == epoch and end.offset >= offset else Diverged(end)
