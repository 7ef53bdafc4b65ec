"""Positions in a log as users state them: an offset or a time."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from copy import copy
from datetime import UTC, datetime
from itertools import islice
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from kframe.plugin.columns import Int64
from kframe.plugin.kraft import RECORDS_MAX
from kframe.plugin.live import HistoryPoint
from kframe.plugin.settings import INT64_MAX, parse_whole
from kframe_kraft.batches import BatchHeader, RecordBatch
from kframe_kraft.disk import LogHistory
from kframe_kraft.errors import LogError

_BATCH: Final = np.dtype(
    [
        ("base", np.int64),
        ("end", np.int64),
        ("size", np.int64),
        ("record_count", np.int64),
        ("base_timestamp", np.int64),
        ("max_timestamp", np.int64),
        ("is_control", np.bool_),
        ("is_compressed", np.bool_),
    ]
)


def end_of(history: LogHistory, position: str) -> int:
    """The end of the records up to an offset or a time, on the boundary of a batch.

    ``position`` is an offset, ``end``, or a time of ISO 8601, UTC unless it has a zone. An offset stands for the whole
    batch with it, because a controller decides batches. Raises LogError if it is outside of the history.
    """
    return history.log.end if position == "end" else BatchIndex(history).end_of(position)


def start_of(history: LogHistory, position: str) -> int:
    """The first offset of the records from an offset or time on; ``end`` is the end of the log.

    Raises LogError for a malformed position.
    """
    if position == "end":
        return history.log.end
    if (offset := parse_whole(position, INT64_MAX)) is not None:
        return offset
    limit = _milliseconds(position)
    later = (header.base_offset for header in history.log.batches.headers() if header.max_timestamp >= limit)
    return next(later, history.log.end)


def time_before(history: LogHistory, end: int) -> int | None:
    """The time of the last record below ``end`` in milliseconds since the epoch. None without any record."""
    return BatchIndex(history).time_before(end)


def time_text(timestamp: int | None) -> str | None:
    """Milliseconds since the epoch as ISO 8601 in UTC."""
    if timestamp is None:
        return None
    return datetime.fromtimestamp(timestamp / 1000, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


class BatchIndex:
    """Offsets, times and bytes of the batches of a history, which are read once."""

    def __init__(self, history: LogHistory) -> None:
        self._history = history
        self._batches: NDArray[Any] = _rows(history.log.batches.headers())
        self._sizes: Int64 = np.cumsum(self._batches["size"])

    def extended(self, history: LogHistory, headers: Iterable[BatchHeader]) -> BatchIndex:
        """The index of a history that has further batches with these headers."""
        index = copy(self)
        index._history = history
        index._batches = np.concatenate([self._batches, _rows(headers)])
        index._sizes = np.cumsum(index._batches["size"])
        return index

    def points(self, count_max: int) -> list[HistoryPoint]:
        """At most ``count_max`` of the ends of the batches of data, at even distances, with the times of their newest
        records. The first one is the snapshot, if the history begins with one."""
        data, first = self._batches[~self._batches["is_control"]], self._history.snapshot_id.offset
        begin = [HistoryPoint(first, self.time_before(first))]
        if self._history.snapshot is None and len(data):
            begin = []
        count = len(begin) + len(data)
        chosen = np.arange(min(count, count_max))
        if count > count_max:
            chosen = chosen * (count - 1) // (count_max - 1)
        rows = data[chosen[len(begin) :] - len(begin)]
        return [*begin, *map(HistoryPoint, rows["end"].tolist(), rows["max_timestamp"].tolist())]

    def stops(self, count: int) -> Int64:
        """At most ``count`` ends of batches at even distances in bytes."""
        if not len(self._batches):
            return self._batches["end"]
        positions = np.arange(1, count + 1) * (int(self._sizes[-1]) / count)
        return np.unique(self._batches["end"][np.searchsorted(self._sizes, np.floor(positions))])

    def end_of(self, position: str) -> int:
        """See the function ``end_of``."""
        if position == "end":
            return self._history.log.end
        if (offset := parse_whole(position, INT64_MAX)) is not None:
            return self._end_of_offset(offset)
        return self._end_of_time(position)

    def time_before(self, end: int) -> int | None:
        """See the function ``time_before``."""
        count = int(np.searchsorted(self._batches["base"], end, side="left"))
        snapshot = self._history.snapshot
        if count:
            return int(self._batches["max_timestamp"][count - 1])
        return snapshot.timestamp if snapshot else None

    def following(self, end: int) -> Iterator[RecordBatch]:
        """The batches from the end of a batch on."""
        return self.batches(int(np.searchsorted(self._batches["end"], end, side="right")))

    def batches(self, first: int, end: int | None = None) -> Iterator[RecordBatch]:
        """The batches from number ``first`` to below number ``end``, or to the last one."""
        size = int(self._sizes[first - 1]) if first else 0
        return islice(self._history.log.batches.following(first, size), None if end is None else end - first)

    def find(self, pattern: bytes, end: int) -> list[int]:
        """The numbers of the batches of data below offset ``end`` that may have a pattern in their records."""
        numbers = np.fromiter(self._history.log.batches.find(pattern, self._sizes), np.int64)
        numbers = np.union1d(numbers, np.flatnonzero(self._batches["is_compressed"]))
        chosen = self._batches[numbers]
        numbers_below: list[int] = numbers[~chosen["is_control"] & (chosen["base"] < end)].tolist()
        return numbers_below

    def start_of_decision(self, offset: int) -> int:
        """The base offset of the first of the batches before ``offset`` that are as large as a part of a decision."""
        before = self._batches[: np.searchsorted(self._batches["base"], offset, side="left")]
        others = np.flatnonzero(before["is_control"] | (before["record_count"] < RECORDS_MAX))
        return int(before["end"][others[-1]]) if len(others) else self._history.snapshot_id.offset

    def _end_of_offset(self, offset: int) -> int:
        first, end = self._history.snapshot_id.offset, self._history.log.end
        if not max(first - 1, 0) <= offset < end and not (first == end and offset == first - 1):
            raise LogError("offset", str(offset), f"{max(first - 1, 0)} to {end - 1}, the offsets of the log")
        if offset < first:
            return first
        return int(self._batches["end"][np.searchsorted(self._batches["end"], offset, side="right")])

    def _end_of_time(self, text: str) -> int:
        limit, batches, snapshot = _milliseconds(text), self._batches, self._history.snapshot
        if snapshot or len(batches):
            earliest = snapshot.timestamp if snapshot else int(batches["base_timestamp"][0])
            if limit < earliest:
                raise LogError("time", text, f"{time_text(earliest)} or later, the first time of the log")
        later = np.flatnonzero(batches["max_timestamp"] > limit)
        count = int(later[0]) if len(later) else len(batches)
        return int(batches["end"][count - 1]) if count else self._history.snapshot_id.offset


def _rows(headers: Iterable[BatchHeader]) -> NDArray[Any]:
    rows = (
        (
            header.base_offset,
            header.next_offset,
            header.size,
            header.record_count,
            header.base_timestamp,
            header.max_timestamp,
            header.is_control,
            header.is_compressed,
        )
        for header in headers
    )
    return np.fromiter(rows, _BATCH)


def _milliseconds(text: str) -> int:
    """A time as milliseconds since the epoch."""
    try:
        time = datetime.fromisoformat(text)
    except ValueError:
        raise LogError("position", repr(text), "an offset, end, or a time such as 2026-11-24T09:30:00Z") from None
    return int((time if time.tzinfo else time.replace(tzinfo=UTC)).timestamp() * 1000)
