"""A source with a history: the metadata log of a KRaft node, at any of its offsets, also while the node writes it."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final

from kframe.plugin import ParameterError, SnapshotError
from kframe.plugin.live import ClusterHistory, HistoryPoint
from kframe.plugin.snapshot import Snapshot
from kframe_console.sources.reading import ClusterChanges, ClusterSource, Reading
from kframe_console.sources.reading_cache import ReadingCache
from kframe_console.sources.refresh import Refresher

#: Most positions that the slider has.
_POINTS_MAX: Final = 500
_CHANGES: Final = timedelta(hours=1)


class LoggedSource(ClusterSource):
    """The cluster at the end of a history, or at an offset or time of it.

    ``complete`` adds what users state of every snapshot. A thread extends the history of a running node's ``folder`` by
    its new records, or opens it again by ``reopen`` if the node has replaced or deleted records.
    """

    def __init__(
        self,
        name: str,
        history: ClusterHistory,
        complete: Callable[[Snapshot], Snapshot],
        folder: Path | None = None,
        reopen: Callable[[], ClusterHistory | None] = lambda: None,
        interval_s: float = 5.0,
    ) -> None:
        self.name = name
        self.history: ClusterHistory = history
        self.points = history.points(_POINTS_MAX)
        self._complete = complete
        self._folder = folder
        self._reopen = reopen
        self._refresher = Refresher(self.refresh, interval_s)
        self._readings = ReadingCache()
        self._newest = self._reading(history, history.point("end")).prepare()

    @property
    def is_live(self) -> bool:
        """See ClusterSource."""
        return self._folder is not None

    @property
    def problem(self) -> str | None:
        """See ClusterSource."""
        return self._refresher.problem

    def refresh(self) -> None:
        """Read what the node has written since. Raises SnapshotError if the log is damaged."""
        history = self.history.extended()
        if history is self.history:
            return
        if history is None:
            history = self._reopen()
            self._readings.clear()  # A node may have replaced records that were not committed.
        if history is not None:
            points = history.points(_POINTS_MAX)
            newest = self._reading(history, history.point("end")).prepare()
            self.history, self.points, self._newest = history, points, newest

    def reading(self, position: str) -> Reading:
        """The cluster at an offset, at a time of ISO 8601, or at the end. Raises ParameterError."""
        if not position.strip():
            return self._newest
        try:
            return self._reading(self.history, self.history.point(position.strip()))
        except SnapshotError as problem:
            raise ParameterError("at", problem.actual, problem.expected) from problem

    def changes(self, reading: Reading) -> ClusterChanges | None:
        """The differences from an hour before, or from the start of the history."""
        history, begin = self.history, self.points[0]
        if reading.point is None:
            return None
        hour_before = reading.read_at - _CHANGES
        if begin.time_ms is not None and time_of(begin) < hour_before:
            begin = history.point(hour_before.isoformat())
        if begin.end >= reading.point.end:
            return None
        return ClusterChanges.of(time_of(begin), history.differences(begin, reading.point))

    def start(self) -> None:
        """See ClusterSource."""
        if self.is_live:
            self._refresher.start()

    def close(self) -> None:
        """See ClusterSource."""
        self._refresher.close()

    def _reading(self, history: ClusterHistory, point: HistoryPoint) -> Reading:
        def read(number: int) -> Reading:
            return Reading(number, self._complete(history.snapshot(point)), time_of(point), point)

        return self._readings.get(point.end, read)


def time_of(point: HistoryPoint) -> datetime:
    """The time of a position; 1970 if the log has none."""
    return datetime.fromtimestamp((point.time_ms or 0) / 1000, UTC)
