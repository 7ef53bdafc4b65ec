"""Timelines of a history that are retained, so that the cluster at an offset is replayed from the nearest one."""

from __future__ import annotations

from itertools import pairwise
from threading import Lock
from typing import Final

from kframe_kraft.disk import LogHistory
from kframe_kraft.replay.image import Timeline
from kframe_kraft.time_travel.positions import BatchIndex

#: Timelines of a history at most, and partitions of all of them.
TIMELINES_MAX: Final = 32
PARTITIONS_MAX: Final = 500_000


class RetainedTimelines:
    """Timelines at even distances in the bytes of a log. Large clusters have fewer of them. Thread-safe."""

    def __init__(self, history: LogHistory) -> None:
        self.history: Final = history
        self.index: Final = BatchIndex(history)
        self._stops: Final[list[int]] = self.index.stops(TIMELINES_MAX).tolist()
        self._retained: dict[int, Timeline] = {}
        self._lock = Lock()

    @property
    def offsets(self) -> list[int]:
        """The offsets of the retained timelines, ascending."""
        with self._lock:
            return sorted(self._retained)

    def at(self, end: int) -> Timeline:
        """A timeline for the caller to keep, which has replayed all batches below ``end``. Raises LogError."""
        timeline = self._nearest(end)
        for stop in self._stops:
            if timeline.offset < stop <= end:
                timeline.advance(stop)
                self._retain(timeline)
        timeline.advance(end)
        return timeline

    def _nearest(self, end: int) -> Timeline:
        with self._lock:
            offset = max((offset for offset in self._retained if offset <= end), default=None)
            nearest = None if offset is None else self._retained[offset]
        if nearest is None:
            return Timeline(self.history)
        return nearest.copy(self.index.following(nearest.offset))

    def _retain(self, timeline: Timeline) -> None:
        """Retain a copy, unless a transaction is open. Of too many, the one nearest to that before it is released."""
        if timeline.in_transaction:
            return
        copied = timeline.copy()
        copied.metadata.partitions.trim()
        with self._lock:
            self._retained[copied.offset] = copied
            while sum(len(each.metadata.partitions) for each in self._retained.values()) > PARTITIONS_MAX:
                offsets = [self.history.snapshot_id.offset, *sorted(self._retained)]
                distances = {offset: offset - before for before, offset in pairwise(offsets)}
                del self._retained[min(distances, key=distances.__getitem__)]
