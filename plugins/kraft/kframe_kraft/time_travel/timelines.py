"""Timelines of a history that are retained, so that the cluster at an offset is replayed from the nearest one."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import pairwise
from threading import Lock
from typing import Final

from kframe_kraft.batches import BatchHeader
from kframe_kraft.disk import LogHistory
from kframe_kraft.replay.image import Timeline
from kframe_kraft.time_travel.positions import BatchIndex

#: Timelines of a history at most, and partitions of all of them.
TIMELINES_MAX: Final = 32
PARTITIONS_MAX: Final = 500_000


class RetainedTimelines:
    """Timelines at even distances in the bytes of a log. Large clusters have fewer of them. Thread-safe."""

    def __init__(self, history: LogHistory, index: BatchIndex | None = None) -> None:
        self.history: Final = history
        self.index: Final = index or BatchIndex(history)
        self._stops: Final[list[int]] = self.index.stops(TIMELINES_MAX).tolist()
        self._retained: dict[int, Timeline] = {}
        self._lock = Lock()
        self._follows = False
        """Whether the newest timeline stays in any case: the next batches are replayed from there."""

    def extended(self, history: LogHistory, headers: Iterable[BatchHeader]) -> RetainedTimelines:
        """The timelines of a history that has further batches with these headers. Both share the retained ones."""
        result = RetainedTimelines(history, self.index.extended(history, headers))
        result._retained, result._lock, result._follows = self._retained, self._lock, True
        return result

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
            while len(self._retained) > self._follows and self._are_too_many():
                offsets = [self.history.snapshot_id.offset, *sorted(self._retained)]
                distances = {offset: offset - before for before, offset in pairwise(offsets)}
                if self._follows:
                    del distances[offsets[-1]]
                del self._retained[min(distances, key=distances.__getitem__)]

    def _are_too_many(self) -> bool:
        partitions = sum(len(each.metadata.partitions) for each in self._retained.values())
        return partitions > PARTITIONS_MAX or len(self._retained) > TIMELINES_MAX
