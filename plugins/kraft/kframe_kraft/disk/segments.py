"""Reads the segments of a log without their indexes.

Offsets must be contiguous and epochs must not fall. A malformed batch at the end of the last segment is a torn tail:
the node was stopped, or is still writing. Anywhere else it is damage, and the log is refused.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final, Protocol

from kframe_kraft.batches import BatchHeader, RecordBatch
from kframe_kraft.batches.header import HEADER_BYTES, PREFIX
from kframe_kraft.disk.batch_files import BatchFile, BatchSource
from kframe_kraft.disk.committed import voters_in
from kframe_kraft.errors import BatchError, LogError

#: Segments that stay open while a log is in use, the oldest first, because a node deletes them first.
OPEN_FILES_MAX: Final = 256


class LogBatches(Protocol):
    """Batches of a log in order. They may be read from a file in each iteration."""

    def __iter__(self) -> Iterator[RecordBatch]:
        """Iterate over the batches."""

    def headers(self) -> Iterator[BatchHeader]:
        """Iterate over their headers."""


class ListedBatches(tuple[RecordBatch, ...]):
    """Batches in memory."""

    __slots__ = ()

    def headers(self) -> Iterator[BatchHeader]:
        """See ``LogBatches.headers``."""
        return (batch.header for batch in self)


NO_BATCHES: Final = ListedBatches()


class SegmentBatches:
    """Batches of segments, which are read anew in each iteration."""

    def __init__(self) -> None:
        self._ranges: list[tuple[BatchFile, int, int]] = []

    def append(self, file: BatchFile, position: int, end: int) -> None:
        """Append the batches of a segment from byte ``position`` to ``end``."""
        self._ranges.append((file, position, end))

    def __iter__(self) -> Iterator[RecordBatch]:
        for file, position, end in self._ranges:
            yield from file.batches(position, end)

    def headers(self) -> Iterator[BatchHeader]:
        """See ``LogBatches.headers``."""
        for file, position, end in self._ranges:
            yield from file.headers(position, end)


@dataclass(frozen=True, slots=True, eq=False)
class MetadataLog:
    """The batches of a log, and the header of the last one. ``torn_bytes`` follow it; ``torn_reason`` says what is
    wrong there. ``voters`` are those of the newest record that names them."""

    start: int
    end: int
    batches: LogBatches = NO_BATCHES
    last: BatchHeader | None = None
    voters: tuple[int, ...] | None = None
    torn_bytes: int = 0
    torn_reason: str = ""

    @property
    def last_epoch(self) -> int:
        """The epoch of the last batch. -1 in an empty log."""
        return -1 if self.last is None else self.last.leader_epoch


def read_segments(segments: Mapping[int, BatchSource], first: int = 0) -> MetadataLog:
    """Return the batches with offsets from ``first`` on, of segments by base offset, ascending. The segments may be
    growing.

    All batches are checked. ``start`` is the first offset of the log on disk. Raises LogError if the log is damaged;
    FileNotFoundError if a segment was deleted meanwhile.
    """
    bases = list(segments)
    if not bases:
        return MetadataLog(first, first)
    # Skip segments that end at or below the first offset.
    needed = [
        base
        for base, following in zip(bases, [*bases[1:], None], strict=True)
        if following is None or following > first
    ]
    scan = _Scan(first, needed[0])
    for number, base in enumerate(needed):
        if base != scan.end:
            raise LogError(segments[base].name, f"base offset {base}", f"{scan.end}, the end of the segment before")
        file = BatchFile(segments[base], keep_open=number < OPEN_FILES_MAX)
        scan.read(file, is_last=base == bases[-1])
    return MetadataLog(bases[0], scan.end, scan.batches, scan.last, scan.voters, scan.torn_bytes, scan.torn_reason)


class _Scan:
    """Checks segments in their order, and collects the batches from offset ``first`` on."""

    def __init__(self, first: int, end: int) -> None:
        self.end = end
        self.batches = SegmentBatches()
        self.last: BatchHeader | None = None
        self.voters: tuple[int, ...] | None = None
        self.torn_bytes, self.torn_reason = 0, ""
        self._first, self._epoch = first, -1

    def read(self, file: BatchFile, *, is_last: bool) -> None:
        """Check a segment. Raises LogError if it is damaged, or does not continue the previous one."""
        position, begin = 0, None
        try:
            for batch in file.batches():
                self._check(batch)
                if self.end > self._first:
                    begin = position if begin is None else begin
                    self._record_header(batch)
                position += batch.header.size
        except BatchError as error:
            if not is_last or batch_follows(file, position):
                raise
            self.torn_bytes, self.torn_reason = file.size - position, str(error)
        if begin is not None:
            self.batches.append(file, begin, position)

    def _check(self, batch: RecordBatch) -> None:
        header = batch.header
        if header.base_offset != self.end or header.leader_epoch < self._epoch:
            raise LogError(
                batch.where, f"offset {header.base_offset} in epoch {header.leader_epoch}",
                f"offset {self.end} in epoch {self._epoch} or later",
            )  # fmt: skip
        self.end, self._epoch = header.next_offset, header.leader_epoch

    def _record_header(self, batch: RecordBatch) -> None:
        self.last = batch.header
        if batch.header.is_control:
            voters = voters_in(batch)
            self.voters = self.voters if voters is None else voters


def batch_follows(file: BatchFile, position: int) -> bool:
    """Whether a complete batch follows the malformed one at ``position``: then the file is damaged, not torn."""
    if file.size - position < HEADER_BYTES:
        return False
    try:
        following = position + PREFIX.size + PREFIX.unpack(file.read(position, PREFIX.size))[1]
        if following <= position or following >= file.size:
            return False
        file.batch(following)
    except BatchError:
        return False
    return True
