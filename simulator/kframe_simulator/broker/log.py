"""The log of a replica: records, leader epochs, high watermark (Kafka 3.9 ``UnifiedLog``, ``LeaderEpochFileCache``)."""

from __future__ import annotations

from kframe_simulator.broker.messages import UNDEFINED, EpochEnd, Record
from kframe_simulator.broker.producers import Producers

_NOWHERE = EpochEnd(UNDEFINED, UNDEFINED)


class Log:
    """Records from ``start`` (log start offset) up to ``end`` (log end offset). Outlasts its broker's life."""

    __slots__ = (
        "checkpoint",
        "epochs",
        "future",
        "high_watermark",
        "log_dir",
        "producers",
        "records",
        "start",
        "topic_id",
    )

    def __init__(self, topic_id: bytes, log_dir: str) -> None:
        self.topic_id = topic_id
        self.log_dir = log_dir
        self.start = 0
        self.records: list[Record] = []
        self.epochs: list[tuple[int, int]] = []
        """(leader epoch, its first offset), ascending in both."""
        self.high_watermark = 0
        self.checkpoint = 0
        """The high watermark as it was last written to disk."""
        self.producers = Producers()
        self.future: FutureLog | None = None

    @property
    def end(self) -> int:
        """The offset of the next record."""
        return self.start + len(self.records)

    @property
    def latest_epoch(self) -> int:
        """The last leader epoch that began, -1 if none did."""
        return self.epochs[-1][0] if self.epochs else UNDEFINED

    def append(self, record: Record) -> int:
        """Add a record and return its offset."""
        offset = self.start + len(self.records)
        self.records.append(record)
        if not self.epochs or self.epochs[-1][0] != record.leader_epoch:
            self.begin_epoch(record.leader_epoch, offset)
        if record.producer_id != UNDEFINED:
            self.producers.add(record, offset)
        return offset

    def begin_epoch(self, leader_epoch: int, offset: int) -> None:
        """A leader epoch begins here; what contradicts it is forgotten."""
        if self.epochs and self.epochs[-1][0] == leader_epoch and offset >= self.epochs[-1][1]:
            return
        while self.epochs and (self.epochs[-1][0] >= leader_epoch or self.epochs[-1][1] >= offset):
            self.epochs.pop()
        self.epochs.append((leader_epoch, offset))

    def end_of_epoch(self, leader_epoch: int) -> EpochEnd:
        """The largest epoch up to this one and where it ends. An epoch before all known ones is answered with itself
        and the first known offset, one that is yet to come with nothing."""
        epochs = self.epochs
        if leader_epoch == UNDEFINED or not epochs or leader_epoch > epochs[-1][0]:
            return _NOWHERE
        end, floor = self.end, leader_epoch
        for epoch, offset in reversed(epochs):
            if epoch <= leader_epoch:
                floor = epoch
                break
            end = offset
        return EpochEnd(floor, end)

    def read(self, offset: int, count: int, below: int) -> tuple[Record, ...]:
        """At most ``count`` records from ``offset`` on, all below offset ``below``."""
        first = offset - self.start
        return tuple(self.records[first : min(first + count, below - self.start)])

    def set_high_watermark(self, offset: int) -> None:
        """Put it here, or as near as the log allows."""
        self.high_watermark = max(self.start, min(offset, self.end))

    def last_stable_offset(self) -> int:
        """Up to where consumers of committed records may read."""
        return self.producers.last_stable_offset(self.high_watermark)

    def truncate(self, offset: int) -> None:
        """Drop records from ``offset`` on, and epochs that begin there or, if it is the end already, at the end."""
        if offset < self.start:
            self.restart(offset)
            return
        if offset < self.end:
            del self.records[offset - self.start :]
            self._rebuild_producers()
        while self.epochs and self.epochs[-1][1] >= self.end:
            self.epochs.pop()
        self.set_high_watermark(self.high_watermark)
        if self.future is not None:
            self.future.end = min(self.future.end, self.end)

    def restart(self, offset: int) -> None:
        """Drop everything and go on from ``offset``."""
        self.records.clear()
        self.epochs.clear()
        self.start = offset
        self.producers = Producers()
        self.set_high_watermark(self.high_watermark)
        if self.future is not None:
            self.future.end = offset

    def raise_start(self, offset: int) -> None:
        """Drop records below ``offset``, which is at most the high watermark."""
        if offset <= self.start:
            return
        del self.records[: offset - self.start]
        self.start = offset
        begun = [epoch for epoch in self.epochs if epoch[1] <= offset]
        if begun:
            self.epochs = [(begun[-1][0], offset), *self.epochs[len(begun) :]]
        if self.future is not None:
            self.future.end = max(self.future.end, offset)

    def _rebuild_producers(self) -> None:
        self.producers = Producers()
        for index, record in enumerate(self.records):
            if record.producer_id != UNDEFINED:
                self.producers.add(record, self.start + index)


class FutureLog:
    """The copy of a log that another log directory is given: so far the records below ``end``."""

    __slots__ = ("end", "log_dir")

    def __init__(self, log_dir: str, end: int) -> None:
        self.log_dir = log_dir
        self.end = end
