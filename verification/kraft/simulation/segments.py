"""When a log begins a segment, and what its retention removes: a plain model of files."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from kframe_kraft.disk import SnapshotId, read_checkpoint
from kframe_kraft.log import DurableLog, LogSettings, RetentionSettings
from kframe_kraft.server.snapshotting import SnapshotSettings

from verification.kraft.simulation.history import WrittenBatch

#: The greatest timestamp in the header of a batch.
_TIMESTAMP: Final = struct.Struct(">q")
_TIMESTAMP_AT: Final = 35
_DEFAULTS: Final = (
    LogSettings(segment_bytes=1_073_741_824, segment_ms=604_800_000),
    RetentionSettings(bytes_max=104_857_600, ms_max=604_800_000),
    SnapshotSettings(bytes_max=20_971_520, interval_ms=3_600_000),
)


def default_problems() -> Iterator[str]:
    """Settings whose defaults are not Kafka's."""
    for expected in _DEFAULTS:
        if type(expected)() != expected:
            yield f"K12: {type(expected)()} is the default, and Kafka's is {expected}"


class SegmentModel:
    """The last segment of a log that a process writes."""

    def __init__(self, log: DurableLog, settings: LogSettings) -> None:
        self._log, self._settings = log, settings
        self._base = _last_base(log.directory)
        content = (log.directory / f"{self._base:020}.log").read_bytes()
        self._size = len(content)
        self._first = _timestamp(content) if content else None

    def follow(self, batches: list[WrittenBatch]) -> Iterator[str]:
        """Note appended batches. Yields what is wrong with the files."""
        for batch in batches:
            size, time = len(batch.content), _timestamp(batch.content)
            is_old = self._first is not None and time - self._first > self._settings.segment_ms
            if self._size and (is_old or self._size + size > self._settings.segment_bytes):
                self._base, self._size = batch.base, 0
            if not self._size:
                self._first = time
            self._size += size
        base = _last_base(self._log.directory)
        size = (self._log.directory / f"{base:020}.log").stat().st_size
        if (base, size) != (self._base, self._size):
            yield f"the last segment begins at {base} and has {size} bytes, expected {self._base} and {self._size}"


def _last_base(directory: Path) -> int:
    return max(int(path.stem) for path in directory.glob("*.log"))


def _timestamp(batch: bytes) -> int:
    (time,) = _TIMESTAMP.unpack_from(batch, _TIMESTAMP_AT)
    return int(time)


@dataclass(frozen=True, slots=True)
class Retained:
    """The snapshots of a log with their times and sizes, ascending, and its segments with their sizes."""

    snapshots: tuple[tuple[SnapshotId, int, int], ...]
    segments: tuple[tuple[int, int], ...]

    @staticmethod
    def of(log: DurableLog) -> Retained:
        """What the directory has. ``log`` says which snapshots are complete."""
        paths = [(each, log.directory / each.file_name) for each in log.snapshots]
        segments = sorted((int(path.stem), path.stat().st_size) for path in log.directory.glob("*.log"))
        return Retained(
            tuple((each, read_checkpoint(path).timestamp, path.stat().st_size) for each, path in paths), tuple(segments)
        )

    def cleaned(self, settings: RetentionSettings, now: int) -> Retained:
        """What remains."""
        snapshots, segments = self.snapshots, self.segments
        while len(snapshots) > 1:
            total = sum(size for _, _, size in snapshots) + sum(size for _, size in segments)
            is_old = settings.ms_max >= 0 and now - snapshots[0][1] > settings.ms_max
            is_large = settings.bytes_max >= 0 and total > settings.bytes_max
            if not (is_old or is_large):
                break
            snapshots = snapshots[1:]
            while len(segments) > 1 and segments[1][0] <= snapshots[0][0].offset:
                segments = segments[1:]
        return Retained(snapshots, segments)
