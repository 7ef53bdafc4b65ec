"""A log in memory, for tests and for controllers that are embedded without a directory."""

from __future__ import annotations

from bisect import bisect_right

from kframe_kraft.errors import LogError
from kframe_kraft.log.epochs import EpochStarts
from kframe_kraft.log.offsets import FetchPosition, LogBounds, check_position, next_header


class MemoryLog:
    """The batches from offset 0 to below ``end``. It has the methods of ``DurableLog`` that a leader needs."""

    def __init__(self) -> None:
        self.start = 0
        self.end = 0
        self._epochs = EpochStarts()
        self._bases: list[int] = []
        self._batches: list[bytes] = []

    @property
    def last_epoch(self) -> int:
        """The epoch of the last record; 0 without records."""
        return max(self._epochs.last, 0)

    def append(self, batch: bytes) -> int:
        """See ``DurableLog.append``."""
        header = next_header(batch, self.end, self._epochs.last)
        self._epochs.note(header.leader_epoch, header.base_offset)
        self._bases.append(header.base_offset)
        self._batches.append(batch)
        self.end = header.next_offset
        return self.end

    def sync(self) -> int:
        """The end: nothing outlives the process."""
        return self.end

    def read(self, offset: int, max_bytes: int) -> bytes:
        """See ``DurableLog.read``."""
        if not self.start <= offset <= self.end:
            raise LogError("offset", str(offset), f"{self.start} to {self.end}")
        if offset == self.end:
            return b""
        first = bisect_right(self._bases, offset) - 1
        last, size = first + 1, len(self._batches[first])
        while last < len(self._batches) and size + len(self._batches[last]) <= max_bytes:
            size += len(self._batches[last])
            last += 1
        return b"".join(self._batches[first:last])

    def fetch(self, offset: int, max_bytes: int) -> bytes:
        """See ``DurableLog.fetch``."""
        return self.read(offset, max_bytes)

    def check_position(self, offset: int, epoch: int) -> FetchPosition:
        """See ``DurableLog.check_position``."""
        return check_position(offset, epoch, LogBounds(self.start, self.end, self.last_epoch), self._epochs)
