"""When a log begins a segment, and what its retention removes: a plain model of files."""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final
from uuid import UUID

from kframe_kraft.disk import SnapshotId, read_checkpoint
from kframe_kraft.log import DurableLog, LogSettings, RetentionSettings
from kframe_kraft.log.epochs import read_epochs
from kframe_kraft.server.snapshotting import SnapshotSettings

from kframe.plugin.kraft_controller import broker_events, registration
from verification.kraft.simulation.history import WrittenBatch

#: The greatest timestamp in the header of a batch.
_TIMESTAMP: Final = struct.Struct(">q")
_TIMESTAMP_AT: Final = 35
_DEFAULTS: Final = (
    LogSettings(segment_bytes=1_073_741_824, segment_ms=604_800_000),
    RetentionSettings(bytes_max=104_857_600, ms_max=604_800_000),
    SnapshotSettings(bytes_max=20_971_520, interval_ms=3_600_000),
)
#: Requests with default values only, and with those of Kafka's protocol.
_REQUESTS: Final[tuple[tuple[object, object], ...]] = (
    (
        broker_events.BrokerHeartbeat(1, 2, 3),
        broker_events.BrokerHeartbeat(1, 2, 3, False, False, (), None),
    ),
    (
        registration.BrokerRegistrationRequest(1, "c", UUID(int=7)),
        registration.BrokerRegistrationRequest(1, "c", UUID(int=7), (), (), None, (), -1),
    ),
)


def default_problems() -> Iterator[str]:
    """Settings whose defaults are not Kafka's."""
    for expected in _DEFAULTS:
        if type(expected)() != expected:
            yield f"K12: {type(expected)()} is the default, and Kafka's is {expected}"
    for default, request in _REQUESTS:
        if default != request:
            yield f"K12: {default} is the default, and Kafka's is {request}"


class SegmentModel:
    """The last segment of a log that a process writes, and the bytes that it has appended."""

    def __init__(self, log: DurableLog, settings: LogSettings, first: Sequence[WrittenBatch]) -> None:
        """``first`` are the batches that the process has appended."""
        self._log, self._settings = log, settings
        self._base = _last_base(log.directory)
        content = (log.directory / f"{self._base:020}.log").read_bytes()
        self._size = len(content)
        self._first = _timestamp(content) if content else None
        self._appended = sum(len(batch.content) for batch in first)

    def begun(self) -> Iterator[str]:
        """What is wrong at the begin of an epoch: its first batch and its entry are there, and need a sync."""
        stored = dict(read_epochs(self._log.directory) or ())
        if self._log.last_epoch not in stored:
            yield f"the epochs {stored} are stored, without {self._log.last_epoch}"
        if self._log.synced_end != stored.get(self._log.last_epoch):
            yield f"the epochs {stored} are stored, and all below {self._log.synced_end} is durable"
        yield from self._counted()

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
            self._appended += size
        base = _last_base(self._log.directory)
        size = (self._log.directory / f"{base:020}.log").stat().st_size
        if (base, size) != (self._base, self._size):
            yield f"the last segment begins at {base} and has {size} bytes, expected {self._base} and {self._size}"
        yield from self._counted()

    def _counted(self) -> Iterator[str]:
        if self._log.appended_bytes != self._appended:
            yield f"the log has counted {self._log.appended_bytes} appended bytes, expected {self._appended}"


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
