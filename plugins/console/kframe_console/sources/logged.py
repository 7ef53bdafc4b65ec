"""A source with a history: the metadata log of a KRaft node, at any of its offsets."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from threading import Lock
from typing import Final

from kframe.plugin import ParameterError, SnapshotError
from kframe.plugin.live import ClusterHistory, HistoryPoint
from kframe.plugin.snapshot import Snapshot
from kframe_console.sources.reading import ClusterChanges, Reading

#: Positions whose clusters are retained.
_RETAINED: Final = 4
_CHANGES: Final = timedelta(hours=1)


@dataclass(slots=True)
class LoggedSource:
    """The cluster at the end of a history, or at an offset or time of it. ``complete`` adds what users state of every
    snapshot."""

    name: str
    history: ClusterHistory
    complete: Callable[[Snapshot], Snapshot]
    is_live: bool = False
    problem: str | None = None
    _readings: OrderedDict[int, Reading] = field(default_factory=OrderedDict)
    _lock: Lock = field(default_factory=Lock)

    def reading(self, at: str) -> Reading:
        """The cluster at an offset, at a time of ISO 8601, or at the end. Raises ParameterError."""
        try:
            point = self.history.point(at.strip() or "end")
            return self._at(point)
        except SnapshotError as problem:
            if not at.strip():
                raise
            raise ParameterError("at", problem.actual, problem.expected) from problem

    def changes(self, reading: Reading) -> ClusterChanges | None:
        """The differences from an hour before, or from the begin of the history."""
        if reading.point is None:
            return None
        begin = self.history.points(2)[0]
        hour_before = reading.read_at - _CHANGES
        if begin.time_ms is not None and time_of(begin) < hour_before:
            begin = self.history.point(hour_before.isoformat())
        if begin.end >= reading.point.end:
            return None
        return ClusterChanges.of(time_of(begin), self.history.differences(begin, reading.point))

    def start(self) -> None:
        """See ClusterSource."""

    def close(self) -> None:
        """See ClusterSource."""

    def _at(self, point: HistoryPoint) -> Reading:
        with self._lock:
            if point.end in self._readings:
                self._readings.move_to_end(point.end)
                return self._readings[point.end]
        snapshot = self.complete(self.history.snapshot(point))
        with self._lock:
            reading = self._readings.setdefault(point.end, Reading(point.end, snapshot, time_of(point), point))
            while len(self._readings) > _RETAINED:
                self._readings.popitem(last=False)
            return reading


def time_of(point: HistoryPoint) -> datetime:
    """The time of a position; that of its begin if the log has none."""
    return datetime.fromtimestamp((point.time_ms or 0) / 1000, UTC)
