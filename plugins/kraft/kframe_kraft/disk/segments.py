"""Reads the segments of a log without their indexes.

Offsets must be contiguous and epochs must not fall. A malformed batch at the end of the last segment is a torn tail:
the node was stopped, or is still writing. If a valid batch follows anywhere, or if the CRC of the malformed batch is
right, it is damage: no record from there on counts, because replay needs every record.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final, Protocol

import numpy as np

from kframe.plugin.columns import Int64
from kframe_kraft.batches import BatchHeader, RecordBatch
from kframe_kraft.disk.batch_files import BatchFile, BatchSource
from kframe_kraft.disk.committed import voters_in
from kframe_kraft.disk.search import readable_batches
from kframe_kraft.errors import BatchError, LogError, RecordError

#: Segments that stay open while a log is in use, the oldest first, because a node deletes them first.
OPEN_FILES_MAX: Final = 256


class LogBatches(Protocol):
    """Batches of a log in order. They may be read from a file in each iteration."""

    def __iter__(self) -> Iterator[RecordBatch]:
        """Iterate over the batches."""

    def headers(self) -> Iterator[BatchHeader]:
        """Iterate over their headers."""

    def following(self, count: int, size: int) -> Iterator[RecordBatch]:
        """Iterate over the batches after the first ``count``, which have ``size`` bytes together."""

    def find(self, pattern: bytes, ends: Int64) -> Iterator[int]:
        """Iterate over the numbers of the batches with a pattern in their bytes, which may be compressed, ascending.

        ``ends`` are the bytes up to the end of each batch.
        """


class ListedBatches(tuple[RecordBatch, ...]):
    """Batches in memory."""

    __slots__ = ()

    def headers(self) -> Iterator[BatchHeader]:
        """See ``LogBatches.headers``."""
        return (batch.header for batch in self)

    def following(self, count: int, size: int) -> Iterator[RecordBatch]:
        """See ``LogBatches.following``."""
        return iter(self[count:])

    def find(self, pattern: bytes, ends: Int64) -> Iterator[int]:
        """See ``LogBatches.find``."""
        return (number for number, batch in enumerate(self) if pattern in batch.payload.tobytes())


NO_BATCHES: Final = ListedBatches()


class SegmentBatches:
    """Batches of segments, which are read anew in each iteration."""

    def __init__(self) -> None:
        self._ranges: list[tuple[BatchFile, int, int]] = []

    def append(self, file: BatchFile, position: int, end: int) -> None:
        """Append the batches of a segment from byte ``position`` to ``end``."""
        self._ranges.append((file, position, end))

    def extended(self, file: BatchFile, position: int, end: int) -> SegmentBatches:
        """These batches, and those of a segment from byte ``position`` to ``end``, which follow them."""
        result = SegmentBatches()
        result._ranges = [*self._ranges]
        if result._ranges and result._ranges[-1][0].name == file.name:
            position = result._ranges.pop()[1]
        result.append(file, position, end)
        return result

    def __iter__(self) -> Iterator[RecordBatch]:
        for file, position, end in self._ranges:
            yield from file.batches(position, end)

    def headers(self) -> Iterator[BatchHeader]:
        """See ``LogBatches.headers``."""
        for file, position, end in self._ranges:
            yield from file.headers(position, end)

    def following(self, count: int, size: int) -> Iterator[RecordBatch]:
        """See ``LogBatches.following``. The bytes before are not read."""
        for file, position, end in self._ranges:
            skipped = min(size, end - position)
            size -= skipped
            yield from file.batches(position + skipped, end)

    def find(self, pattern: bytes, ends: Int64) -> Iterator[int]:
        """See ``LogBatches.find``."""
        before = 0
        for file, position, end in self._ranges:
            positions = np.fromiter(file.find(pattern, position, end), np.int64) - position + before
            yield from np.unique(np.searchsorted(ends, positions, side="right")).tolist()
            before += end - position


@dataclass(frozen=True, slots=True, eq=False)
class LogDamage:
    """The first damage of a log: ``error`` names file, byte and problem.

    Records of the offsets from ``first`` to below ``end`` are left out. ``end`` is None if no batch behind the damage
    can be read.
    """

    error: LogError
    first: int
    end: int | None = None

    def __str__(self) -> str:
        """The problem and the offsets that are left out."""
        return f"{self.error}; offsets {self._offsets} are left out"

    @property
    def _offsets(self) -> str:
        return f"from {self.first} on" if self.end is None else f"{self.first} to {self.end - 1}"

    def as_error(self) -> LogError:
        """The error for readers that need the whole log."""
        expected = (
            f"{self.error.expected} (offsets {self._offsets} cannot be read; kframe log at shows the state before)"
        )
        return type(self.error)(self.error.where, self.error.actual, expected)


@dataclass(frozen=True, slots=True, eq=False)
class MetadataLog:
    """The batches of a log, and the header of the last one. ``torn_bytes`` follow it; ``torn_reason`` says what is
    wrong there. ``voters`` are those of the newest record that names them. A log with ``damage`` ends before it."""

    start: int
    end: int
    batches: LogBatches = NO_BATCHES
    last: BatchHeader | None = None
    voters: tuple[int, ...] | None = None
    torn_bytes: int = 0
    torn_reason: str = ""
    damage: LogDamage | None = None

    @property
    def last_epoch(self) -> int:
        """The epoch of the last batch. -1 in an empty log."""
        return -1 if self.last is None else self.last.leader_epoch


def read_segments(segments: Mapping[int, BatchSource], first: int = 0, *, to_damage: bool = False) -> MetadataLog:
    """Return the batches with offsets from ``first`` on, of segments by base offset, ascending. The segments may be
    growing.

    All batches are checked. ``start`` is the first offset of the log on disk. Raises LogError if the log is damaged,
    unless it is read ``to_damage``; FileNotFoundError if a segment was deleted meanwhile.
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
        file = BatchFile(segments[base], keep_open=number < OPEN_FILES_MAX)
        scan.read(file, base, is_last=base == bases[-1])
    damage = scan.damage
    if damage is not None and not to_damage:
        raise damage.as_error()
    return MetadataLog(
        bases[0], scan.end, scan.batches, scan.last, scan.voters, scan.torn_bytes, scan.torn_reason, damage
    )


class _Scan:
    """Checks segments in their order, and collects the batches from offset ``first`` on, up to the first damage."""

    def __init__(self, first: int, end: int) -> None:
        self.end = end
        self.batches = SegmentBatches()
        self.last: BatchHeader | None = None
        self.voters: tuple[int, ...] | None = None
        self.torn_bytes, self.torn_reason = 0, ""
        self.damage: LogDamage | None = None
        self._first, self._epoch = first, -1

    def read(self, file: BatchFile, base: int, *, is_last: bool) -> None:
        """Check the segment with base offset ``base``. After damage, only its last readable offset counts."""
        if self.damage is None and base != self.end:
            error = LogError(file.name, f"base offset {base}", f"{self.end}, the end of the segment before")
            self.damage = LogDamage(error, self.end)
        if self.damage is not None:
            self._pass_over(file, 0)
            return
        position, begin = 0, None
        try:
            for batch in file.batches():
                self._check(batch)
                if self.end > self._first:
                    begin = position if begin is None else begin
                    self._record_header(batch)
                position += batch.header.size
        except RecordError:
            raise
        except LogError as error:
            self._stop(file, position, error, is_last=is_last)
        if begin is not None:
            self.batches.append(file, begin, position)

    def _stop(self, file: BatchFile, position: int, error: LogError, *, is_last: bool) -> None:
        """End the log at ``position``: before a torn tail, or before damage."""
        is_torn = is_last and isinstance(error, BatchError) and not file.has_valid_crc(position)
        if is_torn and not batch_follows(file, position, self.end):
            self.torn_bytes, self.torn_reason = file.size - position, str(error)
            return
        self.damage = LogDamage(error, self.end)
        self._pass_over(file, position + 1)

    def _pass_over(self, file: BatchFile, position: int) -> None:
        """Extend the damage to the end of the last batch that can be read from ``position`` on."""
        damage = self.damage
        assert damage is not None
        for batch in readable_batches(file, position, self.end):
            end = max(batch.header.next_offset, damage.end or 0)
            self.damage = damage = LogDamage(damage.error, damage.first, end)

    def _check(self, batch: RecordBatch) -> None:
        header = batch.header
        if header.base_offset != self.end or header.leader_epoch < self._epoch:
            raise LogError(
                batch.where,
                f"offset {header.base_offset} in epoch {header.leader_epoch}",
                f"offset {self.end} in epoch {max(self._epoch, 0)} or later",
            )
        self.end, self._epoch = header.next_offset, header.leader_epoch

    def _record_header(self, batch: RecordBatch) -> None:
        self.last = batch.header
        if batch.header.is_control:
            voters = voters_in(batch)
            self.voters = self.voters if voters is None else voters


def batch_follows(file: BatchFile, position: int, offset: int) -> bool:
    """Whether a valid batch of ``offset`` or later follows the malformed one at ``position``: then the file is damaged,
    not torn."""
    return next(readable_batches(file, position + 1, offset), None) is not None
