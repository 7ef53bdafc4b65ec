"""Positions in a log as users state them: an offset or a time."""

from __future__ import annotations

import itertools
from datetime import UTC, datetime

from kframe.plugin.settings import INT64_MAX, parse_whole
from kframe_kraft.disk import LogHistory
from kframe_kraft.errors import LogError


def end_of(history: LogHistory, position: str) -> int:
    """The end of the records up to an offset or a time, on the boundary of a batch.

    ``position`` is an offset, ``end``, or a time of ISO 8601, UTC unless it has a zone. An offset stands for the whole
    batch with it, because a controller decides batches. Raises LogError if it is outside of the history.
    """
    if position == "end":
        return history.log.end
    if (offset := parse_whole(position, INT64_MAX)) is not None:
        return _end_of_offset(history, offset)
    return _end_of_time(history, position)


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
    if history.log.last is not None and end >= history.log.end:
        return history.log.last.max_timestamp
    time = history.snapshot.timestamp if history.snapshot else None
    for header in itertools.takewhile(lambda header: header.base_offset < end, history.log.batches.headers()):
        time = header.max_timestamp
    return time


def time_text(timestamp: int | None) -> str | None:
    """Milliseconds since the epoch as ISO 8601 in UTC."""
    if timestamp is None:
        return None
    return datetime.fromtimestamp(timestamp / 1000, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _end_of_offset(history: LogHistory, offset: int) -> int:
    first, end = history.snapshot_id.offset, history.log.end
    if not max(first - 1, 0) <= offset < end and not (first == end and offset == first - 1):
        raise LogError("offset", str(offset), f"{max(first - 1, 0)} to {end - 1}, the offsets of the log")
    if offset < first:
        return first
    return next(header.next_offset for header in history.log.batches.headers() if header.next_offset > offset)


def _end_of_time(history: LogHistory, text: str) -> int:
    limit = _milliseconds(text)
    earliest = history.snapshot.timestamp if history.snapshot else None
    end = history.snapshot_id.offset
    for header in history.log.batches.headers():
        earliest = header.base_timestamp if earliest is None else earliest
        if header.max_timestamp > limit:
            break
        end = header.next_offset
    if earliest is not None and limit < earliest:
        raise LogError("time", text, f"{time_text(earliest)} or later, the first time of the log")
    return end


def _milliseconds(text: str) -> int:
    """A time as milliseconds since the epoch."""
    try:
        time = datetime.fromisoformat(text)
    except ValueError:
        raise LogError("position", repr(text), "an offset, end, or a time such as 2026-11-24T09:30:00Z") from None
    return int((time if time.tzinfo else time.replace(tzinfo=UTC)).timestamp() * 1000)
