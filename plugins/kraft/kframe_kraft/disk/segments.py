"""Reads the segments of a log without their indexes.

Offsets must be contiguous and epochs must not fall. A malformed batch at the end of the last segment is a torn tail:
the node was stopped, or is still writing. Anywhere else it is damage, and the log is refused.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import numpy as np

from kframe.plugin.columns import UInt8
from kframe_kraft.batches import RecordBatch, read_batch
from kframe_kraft.batches.header import HEADER_BYTES
from kframe_kraft.disk.names import segments_in
from kframe_kraft.errors import BatchError, LogError


class SegmentFile(Protocol):
    """A segment: its path, or its content under a name."""

    @property
    def name(self) -> str:
        """The name of the file."""

    def read_bytes(self) -> bytes:
        """The content."""


@dataclass(frozen=True, slots=True, eq=False)
class MetadataLog:
    """The batches of a log. ``torn_bytes`` follow the last complete batch. ``torn_reason`` says what is wrong there."""

    start: int
    end: int
    batches: tuple[RecordBatch, ...]
    torn_bytes: int = 0
    torn_reason: str = ""

    @property
    def last_epoch(self) -> int:
        """The epoch of the last batch. -1 in an empty log."""
        return self.batches[-1].header.leader_epoch if self.batches else -1


def read_log(directory: Path, first: int = 0) -> MetadataLog:
    """Return the batches of the log in a directory; see read_segments."""
    return read_segments(segments_in(directory), first)


def read_segments(segments: Mapping[int, SegmentFile], first: int = 0) -> MetadataLog:
    """Return the batches with offsets from ``first`` on, of segments by base offset, ascending. The segments may be
    growing.

    ``start`` is the first offset of the log on disk. Raises LogError if the log is damaged; FileNotFoundError if a
    segment was deleted meanwhile.
    """
    bases = list(segments)
    if not bases:
        return MetadataLog(first, first, ())
    # Skip segments that end at or below the first offset.
    needed = [
        base
        for base, following in zip(bases, [*bases[1:], None], strict=True)
        if following is None or following > first
    ]
    batches: list[RecordBatch] = []
    end, epoch, torn_bytes, torn_reason = needed[0], -1, 0, ""
    for base in needed:
        path = segments[base]
        if base != end:
            raise LogError(path.name, f"base offset {base}", f"{end}, the end of the segment before")
        data, position = np.frombuffer(path.read_bytes(), np.uint8), 0
        while position < len(data):
            try:
                batch = read_batch(data, position, path.name)
            except BatchError as error:
                if base != bases[-1] or _batch_follows(data, position, path.name):
                    raise
                torn_bytes, torn_reason = len(data) - position, str(error)
                break
            header = batch.header
            if header.base_offset != end or header.leader_epoch < epoch:
                raise LogError(
                    batch.where, f"offset {header.base_offset} in epoch {header.leader_epoch}",
                    f"offset {end} in epoch {epoch} or later",
                )  # fmt: skip
            end, epoch = header.next_offset, header.leader_epoch
            position += header.size
            if end > first:
                batches.append(batch)
    return MetadataLog(bases[0], end, tuple(batches), torn_bytes, torn_reason)


def _batch_follows(data: UInt8, position: int, name: str) -> bool:
    """Whether a complete batch begins where the malformed one says that it ends: then the file is damaged, not torn."""
    if len(data) - position < HEADER_BYTES:
        return False
    following = position + 12 + int.from_bytes(data[position + 8 : position + 12].tobytes(), "big", signed=True)
    if following <= position or following >= len(data):
        return False
    try:
        read_batch(data, following, name)
    except BatchError:
        return False
    return True
