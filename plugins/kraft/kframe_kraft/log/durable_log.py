"""The log of this node. ``append`` writes, ``sync`` makes durable; only then may a record be acknowledged.

One thread appends, truncates and deletes; ``sync`` and ``read`` may run in others. An append that fails leaves the log
as it was. After a sync that failed, the content of the disk is unknown: the log then refuses everything but reading.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from kframe_kraft.disk import SnapshotId
from kframe_kraft.disk.names import snapshots_in
from kframe_kraft.errors import LogError, LogWriteError
from kframe_kraft.log.acknowledged import FILE_NAME, acknowledged_bytes
from kframe_kraft.log.epochs import FILE_NAME as EPOCHS_NAME
from kframe_kraft.log.epochs import EpochStarts
from kframe_kraft.log.files import LogFile, LogFiles, LogSection
from kframe_kraft.log.offsets import FetchPosition, LogBounds, check_position, next_header
from kframe_kraft.log.segment import Segment, segment_name

#: So many bytes are sent from their file. Fewer are read once for all replicas.
_SECTION_BYTES: Final = 1 << 16


@dataclass(frozen=True, slots=True)
class LogSettings:
    """``metadata.log.segment.bytes`` and ``metadata.log.segment.ms``."""

    segment_bytes: int = 2**30
    segment_ms: int = 7 * 24 * 3_600_000


class DurableLog:
    """The batches from offset ``start`` to below ``end``, in segments; ``open_log`` makes it.

    Records below ``synced_end`` are durable. Methods that write raise LogWriteError.
    """

    def __init__(
        self, files: LogFiles, segments: Sequence[Segment], epochs: EpochStarts, settings: LogSettings, start: int
    ) -> None:
        """``segments`` are in the order of their offsets, at least one, and durable."""
        self.start = start
        self.synced_end = segments[-1].end
        #: Bytes of all batches since the log was opened.
        self.appended_bytes = 0
        self._files = files
        self._segments = list(segments)
        self.snapshots = tuple(sorted(snapshots_in(files.directory)))
        """The complete snapshots, ascending."""
        self._epochs = epochs
        self._settings = settings
        self._acknowledged: LogFile | None = None
        self._failure = ""

    @property
    def directory(self) -> Path:
        """The directory of the files."""
        return self._files.directory

    @property
    def end(self) -> int:
        """The offset of the next record."""
        return self._segments[-1].end

    @property
    def size(self) -> int:
        """The bytes of all segments."""
        return sum(segment.size for segment in self._segments)

    @property
    def last_epoch(self) -> int:
        """The epoch of the last record, or that of the snapshot that the log begins with; 0 without either."""
        if self._epochs.last >= 0:
            return self._epochs.last
        return self.snapshots[-1].epoch if self.snapshots else 0

    def append(self, batch: bytes) -> int:
        """Append a batch with the next offset, in the last epoch or a later one. Returns the new end.

        It is not durable before ``sync``. After LogWriteError the log is as before.
        """
        header = next_header(batch, self.end, self._epochs.last)
        self._check_usable()
        try:
            if self._is_full(header.size, header.max_timestamp):
                self._roll()
            if self._epochs.note(header.leader_epoch, header.base_offset):
                self._files.replace(EPOCHS_NAME, self._epochs.to_bytes())
            self._segments[-1].append(batch, header)
            self.appended_bytes += header.size
        except OSError as error:
            self._epochs.truncate(self.end)
            raise self._error(error) from error
        return self.end

    def add_snapshot(self, snapshot_id: SnapshotId) -> None:
        """Note a snapshot that has just been written into the directory."""
        self.snapshots = tuple(sorted((*self.snapshots, snapshot_id)))

    def sync(self) -> int:
        """Make durable what was appended before this call. Returns the end of what is durable.

        The log cannot be written any more after LogWriteError.
        """
        self._check_usable()
        segment = self._segments[-1]
        end = segment.end
        self._sync(segment)
        self.synced_end = max(self.synced_end, end)
        try:
            self._note_acknowledged(self.synced_end)
        except OSError as error:
            raise self._error(error) from error
        return self.synced_end

    def read(self, offset: int, max_bytes: int) -> bytes:
        """Whole batches from the one that has ``offset`` on, of one segment: at most ``max_bytes``, at least one batch.

        Empty at the end of the log. Raises LogError for offsets outside the log.
        """
        section = self._section(offset, max_bytes)
        return section.read(0, len(section))

    def fetch(self, offset: int, max_bytes: int) -> bytes | LogSection:
        """As ``read``, but many bytes as a section of their file."""
        section = self._section(offset, max_bytes)
        return section if len(section) >= _SECTION_BYTES else section.read(0, len(section))

    def _section(self, offset: int, max_bytes: int) -> LogSection:
        if not self.start <= offset <= self.end:
            raise LogError("offset", str(offset), f"{self.start} to {self.end}")
        return self._segment_of(offset).section(offset, max_bytes)

    def check_position(self, offset: int, epoch: int) -> FetchPosition:
        """Whether a log that ends at ``offset`` with a record of ``epoch`` is a beginning of this one."""
        bounds = LogBounds(self.start, self.end, self.last_epoch, self.snapshots)
        return check_position(offset, epoch, bounds, self._epochs)

    def truncate(self, offset: int) -> None:
        """Drop the batches that end above ``offset``: a follower does so before it follows another leader."""
        self._check_usable()
        try:
            while self._segments[-1].base > max(offset, self.start):
                segment = self._segments.pop()
                self._files.remove(segment.file.path.name)
            segment = self._segments[-1]
            segment.truncate(offset)
            segment.file.sync()
            self._epochs.truncate(self.end)
            self._files.replace(EPOCHS_NAME, self._epochs.to_bytes())
        except OSError as error:
            self._failure = str(error)
            raise self._error(error) from error
        self.synced_end = self.end

    def delete_before(self, snapshot_id: SnapshotId) -> None:
        """Begin the log at a stored snapshot: remove the segments and snapshots before it."""
        self._check_usable()
        try:
            self.start = max(self.start, snapshot_id.offset)
            while len(self._segments) > 1 and self._segments[1].base <= self.start:
                self._files.remove(self._segments[0].file.path.name)
                self._segments = self._segments[1:]
            older = [each for each in self.snapshots if each < snapshot_id]
            self.snapshots = self.snapshots[len(older) :]
            for each in older:
                self._files.remove(each.file_name)
            self._epochs.delete_before(self.start)
            self._files.replace(EPOCHS_NAME, self._epochs.to_bytes())
        except OSError as error:
            raise self._error(error) from error

    def _segment_of(self, offset: int) -> Segment:
        segments = self._segments  # Another thread may remove segments meanwhile.
        return segments[bisect_right(segments, offset, key=_base_of) - 1]

    def _is_full(self, size: int, timestamp: int) -> bool:
        segment = self._segments[-1]
        if not segment.size:
            return False
        first = segment.first_timestamp
        is_old = first is not None and timestamp - first > self._settings.segment_ms
        return is_old or segment.size + size > self._settings.segment_bytes

    def _roll(self) -> None:
        """Begin another segment; the one before is durable, so that ``sync`` has one file to sync."""
        before = self._segments[-1]
        self._sync(before)
        file = self._files.create(segment_name(before.end))
        self._segments.append(Segment(before.end, file))

    def _sync(self, segment: Segment) -> None:
        try:
            segment.file.sync()
        except OSError as error:
            self._failure = str(error)
            raise self._error(error) from error

    def _note_acknowledged(self, end: int) -> None:
        if self._acknowledged is None:
            self._files.replace(FILE_NAME, acknowledged_bytes(end))
            self._acknowledged = self._files.open(FILE_NAME)
        else:
            self._acknowledged.overwrite(acknowledged_bytes(end))

    def _check_usable(self) -> None:
        if self._failure:
            raise LogWriteError(f"{self.directory}: not written any more after a failure: {self._failure}")

    def _error(self, error: OSError) -> LogWriteError:
        return LogWriteError(f"{self.directory}: {error.strerror or error}")


def _base_of(segment: Segment) -> int:
    return segment.base
