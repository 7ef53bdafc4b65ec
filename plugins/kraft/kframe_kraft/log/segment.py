"""A segment that is appended to and read: a file of batches, and where some of them begin."""

from __future__ import annotations

import struct
from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from typing import Final, NamedTuple

from kframe_kraft.batches import BatchHeader
from kframe_kraft.batches.header import HEADER_BYTES, PREFIX
from kframe_kraft.errors import LogError
from kframe_kraft.log.files import LogFile, LogSection

#: Bytes between two entries of the index.
_INDEX_BYTES: Final = 1 << 14
#: Bytes that a search reads at once.
_SEARCH_BYTES: Final = 1 << 16
#: Base offset, length, leader epoch, magic, CRC, attributes, last offset delta, first and last timestamp.
_HEAD: Final = struct.Struct(">qiibIhiqq")


class BatchLocation(NamedTuple):
    """The first ``base_offset`` and the ``next_offset`` of a batch, and its bytes from ``position`` to ``end``."""

    base_offset: int
    next_offset: int
    position: int
    end: int
    epoch: int
    timestamp: int


def segment_name(base: int) -> str:
    """The name of the segment's file."""
    return f"{base:020}.log"


class Segment:
    """The batches from offset ``base`` to below ``end`` in the first ``size`` bytes of a file."""

    def __init__(self, base: int, file: LogFile) -> None:
        """A segment without batches."""
        self.base = base
        self.end = base
        self.size = 0
        self.file = file
        #: The time of the first batch in milliseconds. None without batches.
        self.first_timestamp: int | None = None
        self._offsets = array("q")
        self._positions = array("q")

    def add(self, batch: BatchLocation) -> None:
        """Note a batch that the file has after the others."""
        if not self._positions or batch.position - self._positions[-1] >= _INDEX_BYTES:
            # Readers look for an offset first.
            self._positions.append(batch.position)
            self._offsets.append(batch.base_offset)
        if self.first_timestamp is None:
            self.first_timestamp = batch.timestamp
        self.size, self.end = batch.end, batch.next_offset

    def append(self, batch: bytes, header: BatchHeader) -> None:
        """Append a batch, all or nothing. Raises OSError."""
        self.file.append(batch)
        location = (header.base_offset, header.next_offset, self.size, self.size + header.size)
        self.add(BatchLocation(*location, header.leader_epoch, header.max_timestamp))

    def section(self, offset: int, max_bytes: int) -> LogSection:
        """Whole batches from the one that has ``offset`` on, of at most ``max_bytes`` unless the first one is larger.

        Empty at the end of the segment. Raises LogError for an offset before it.
        """
        if offset < self.base:
            raise LogError(self.file.path.name, f"offset {offset}", f"{self.base} or later")
        size, first = self.size, self._batch_at(offset)
        if first is None:
            return LogSection(self.file, size, 0)
        limit, end = first.position + max_bytes, first.end
        if limit >= size:
            end = size
        elif limit > end:
            indexed = self._positions[bisect_right(self._positions, limit) - 1]
            for batch in batches_in(self.file, max(indexed, end), size):
                if batch.end > limit:
                    break
                end = batch.end
            end = max(end, indexed)
        return LogSection(self.file, first.position, end - first.position)

    def truncate(self, offset: int) -> None:
        """Drop the batches that end above ``offset``."""
        first = self._batch_at(offset)
        if first is None:
            return
        self.file.truncate(first.position)
        self.size, self.end = first.position, first.base_offset
        count = bisect_left(self._positions, first.position)
        del self._positions[count:], self._offsets[count:]
        if not count:
            self.first_timestamp = None

    def _batch_at(self, offset: int) -> BatchLocation | None:
        """The batch that has ``offset``. None at the end."""
        if offset >= self.end:
            return None
        position = self._positions[bisect_right(self._offsets, offset) - 1]
        return next(batch for batch in batches_in(self.file, position, self.size) if batch.next_offset > offset)


def batches_in(file: LogFile, position: int, size: int) -> Iterator[BatchLocation]:
    """The batches from byte ``position`` to ``size``, up to the first one that is not there completely.

    Only their lengths are checked.
    """
    while size - position >= HEADER_BYTES:
        data = file.read(position, min(_SEARCH_BYTES, size - position))
        start, location = position, _location(data, 0, position)
        while location.position < location.end <= size:
            yield location
            position = location.end
            if position - start + HEADER_BYTES > len(data):
                break
            location = _location(data, position - start, position)
        else:
            return


def _location(data: bytes, index: int, position: int) -> BatchLocation:
    base, length, epoch, _, _, _, last_delta, _, timestamp = _HEAD.unpack_from(data, index)
    return BatchLocation(base, base + last_delta + 1, position, position + PREFIX.size + length, epoch, timestamp)
