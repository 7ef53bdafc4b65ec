"""Reads the batches that a running node appends to the log in its directory, without locks.

A node may roll to the next segment, delete old ones, and truncate uncommitted records. So each poll lists the files
again, and checks that the last batch is still at its position.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final, NamedTuple

from kframe_kraft.batches import BatchHeader, RecordBatch
from kframe_kraft.disk.batch_files import BatchFile
from kframe_kraft.disk.checkpoints import Checkpoint, read_checkpoint
from kframe_kraft.disk.committed import CommittedEnd, committed_end, voters_in
from kframe_kraft.disk.history import LogHistory
from kframe_kraft.disk.names import segments_in, snapshots_in
from kframe_kraft.disk.segments import SegmentBatches, batch_follows
from kframe_kraft.errors import BatchError, LogError

#: Bytes of batches that a poll returns, unless a single batch is larger.
POLL_BYTES_MAX: Final = 8 << 20
#: Batches whose truncation is noticed. A node truncates only those that are not committed.
RECENT_BATCHES: Final = 4096
PAUSE_S: Final = 0.2


@dataclass(frozen=True, slots=True, eq=False)
class NewBatches:
    """Batches that follow the previous ones. ``replaced`` is a message about offsets that the log no longer has.

    ``snapshot`` has the records of offsets that were deleted before they were read. ``part`` is the segment with the
    batches, the byte at which the first begins, and that after the last; None without batches.
    """

    batches: Sequence[RecordBatch]
    committed: CommittedEnd
    replaced: str = ""
    snapshot: Checkpoint | None = None
    part: tuple[BatchFile, int, int] | None = None


def extended_history(history: LogHistory, new_batches: NewBatches) -> LogHistory:
    """The history of a directory with batches that follow it."""
    batches, segments = new_batches.batches, history.log.batches
    assert new_batches.part is not None
    assert isinstance(segments, SegmentBatches)
    named = [voters for batch in batches if batch.header.is_control and (voters := voters_in(batch)) is not None]
    log = replace(
        history.log,
        end=batches[-1].header.next_offset,
        batches=segments.extended(*new_batches.part),
        last=batches[-1].header,
        voters=named[-1] if named else history.log.voters,
        torn_bytes=0,
        torn_reason="",
    )
    return replace(history, log=log, committed_below=new_batches.committed.offset)


class _ReadBatch(NamedTuple):
    next_offset: int
    epoch: int
    crc: int


class DirectoryFollower:
    """Reads the batches after a history. One thread calls it."""

    pause_s = PAUSE_S

    def __init__(self, directory: Path, history: LogHistory) -> None:
        """``directory`` is the log's. Raises LogError if it has changed since the history was read."""
        self._directory = directory
        self._end = history.log.end
        self._voters = history.voters
        self._recent = deque[_ReadBatch](maxlen=RECENT_BATCHES)
        for header in history.log.batches.headers():
            self._recent.append(_read_batch(header))
        self._base = -1
        """Base offset of the segment with the last batch. -1 if it is not known."""
        self._last_position = self._next_position = 0
        """Start and end of the last batch in this segment."""
        self._problem = ""

    @property
    def end(self) -> int:
        """The offset after the last batch."""
        return self._end

    def poll(self) -> NewBatches:
        """Return appended complete batches, at most POLL_BYTES_MAX bytes of them.

        Raises LogError for damage before the tail, if two polls find it: the node may have been truncating the log.
        """
        try:
            new_batches = self._poll(segments_in(self._directory))
        except FileNotFoundError:  # A segment was deleted after the directory was listed.
            return NewBatches((), self._committed())
        except LogError as error:
            if str(error) == self._problem:
                raise
            self._problem = str(error)
            return NewBatches((), self._committed())
        self._problem = ""
        return new_batches

    def _poll(self, segments: Mapping[int, Path]) -> NewBatches:
        if not segments:
            return NewBatches((), self._committed())
        if (start := min(segments)) > self._end:
            return self._skip_deleted(start)
        replaced = self._check_last(segments)
        base = max(base for base in segments if base <= self._end)
        file = BatchFile(segments[base])
        position = self._position(file, base)
        batches = self._read(file, base, position, is_last=base == max(segments))
        part = (file, position, self._next_position) if batches else None
        return NewBatches(batches, self._committed(), replaced, part=part)

    def _read(self, file: BatchFile, base: int, position: int, *, is_last: bool) -> list[RecordBatch]:
        batches: list[RecordBatch] = []
        first = position
        try:
            for batch in file.batches(position):
                epoch = self._recent[-1].epoch if self._recent else -1
                if batch.header.base_offset != self._end or batch.header.leader_epoch < epoch:
                    raise LogError(batch.where, f"offset {batch.header.base_offset}", f"offset {self._end}")
                if batch.header.is_control and (voters := voters_in(batch)) is not None:
                    self._voters = voters
                batches.append(batch)
                self._recent.append(_read_batch(batch.header))
                self._end = batch.header.next_offset
                self._base, self._last_position, self._next_position = base, position, position + batch.header.size
                position = self._next_position
                if position - first >= POLL_BYTES_MAX:
                    break
        except BatchError:
            # The node is writing the last batch, unless something follows it.
            if not batches and (not is_last or batch_follows(file, position, self._end)):
                raise
        except LogError:
            if not batches:
                raise
        return batches

    def _position(self, file: BatchFile, base: int) -> int:
        """The position of the next batch in a segment."""
        if base == self._end:
            return 0
        if base == self._base:
            return self._next_position
        position = 0
        for header in file.headers(0, file.size):
            self._last_position, position = position, position + header.size
            if header.next_offset >= self._end:
                break
        self._base, self._next_position = base, position
        return position

    def _check_last(self, segments: Mapping[int, Path]) -> str:
        """Go back to the last common batch after a truncation. Returns a message about the truncated offsets, or ""."""
        if not self._recent or self._base < min(segments) or self._is_last(segments):
            return ""
        batches_by_end: dict[int, _ReadBatch] = {}
        for path in segments.values():
            file = BatchFile(path)
            try:
                for header in file.headers(0, file.size):
                    if header.next_offset >= self._recent[0].next_offset:
                        batches_by_end[header.next_offset] = _read_batch(header)
            except BatchError:  # The tail.
                break
        common = [batch for batch in self._recent if batches_by_end.get(batch.next_offset) == batch]
        if not common:
            raise LogError(str(self._directory), "another log", f"the records below offset {self._end} that it had")
        while self._recent[-1] != common[-1]:
            self._recent.pop()
        former, self._end, self._base = self._end, self._recent[-1].next_offset, -1
        return f"offsets {self._end} to {former - 1} were truncated: they were not committed"

    def _is_last(self, segments: Mapping[int, Path]) -> bool:
        """Whether the last batch is still at its position."""
        path = segments.get(self._base)
        if path is None:
            return False
        try:
            header = next(BatchFile(path).headers(self._last_position, self._next_position))
        except BatchError:
            return False
        return _read_batch(header) == self._recent[-1]

    def _skip_deleted(self, start: int) -> NewBatches:
        newest = max(snapshots_in(self._directory).items(), default=None)
        snapshot = None if newest is None else read_checkpoint(newest[1])
        deleted = f"offsets {self._end} to {start - 1} were deleted before they were read"
        self._end, self._base = start, -1
        self._recent.clear()
        return NewBatches((), self._committed(), deleted, snapshot)

    def _committed(self) -> CommittedEnd:
        newest = max((snapshot_id.offset for snapshot_id in snapshots_in(self._directory)), default=0)
        return committed_end(self._end, newest, self._voters)


def _read_batch(header: BatchHeader) -> _ReadBatch:
    return _ReadBatch(header.next_offset, header.leader_epoch, header.crc)
