"""The log of a replica: records, leader epochs, high watermark (Kafka 3.9 ``UnifiedLog``, ``LeaderEpochFileCache``)."""

from __future__ import annotations

from kframe_simulator.broker.messages import UNDEFINED, EpochEnd, Record
from kframe_simulator.broker.producers import Producers

_NOWHERE = EpochEnd(UNDEFINED, UNDEFINED)


class Log:
    """Records from offset 0 to ``end`` (log end offset). A log survives restarts of its broker."""

    __slots__ = ("checkpoint", "epochs", "high_watermark", "log_dir", "producers", "records", "topic_id")

    def __init__(self, topic_id: bytes, log_dir: str) -> None:
        self.topic_id = topic_id
        self.log_dir = log_dir
        self.records: list[Record] = []
        self.epochs: list[tuple[int, int]] = []
        """(leader epoch, its first offset), ascending in both."""
        self.high_watermark = 0
        self.checkpoint = 0
        """The high watermark at its last checkpoint."""
        self.producers = Producers()

    @property
    def end(self) -> int:
        """The offset of the next record."""
        return len(self.records)

    @property
    def latest_epoch(self) -> int:
        """The last leader epoch, -1 if there is none."""
        return self.epochs[-1][0] if self.epochs else UNDEFINED

    def append(self, record: Record) -> int:
        """Add a record and return its offset."""
        offset = len(self.records)
        self.records.append(record)
        if not self.epochs or self.epochs[-1][0] != record.leader_epoch:
            self.begin_epoch(record.leader_epoch, offset)
        if record.producer_id != UNDEFINED:
            self.producers.add(record, offset)
        return offset

    def begin_epoch(self, leader_epoch: int, offset: int) -> None:
        """Begin a leader epoch at this offset, and remove entries that contradict it."""
        if self.epochs and self.epochs[-1][0] == leader_epoch and offset >= self.epochs[-1][1]:
            return
        while self.epochs and (self.epochs[-1][0] >= leader_epoch or self.epochs[-1][1] >= offset):
            self.epochs.pop()
        self.epochs.append((leader_epoch, offset))

    def end_of_epoch(self, leader_epoch: int) -> EpochEnd:
        """The largest epoch up to this one, and its end offset. For an epoch before all known ones: that epoch and the
        first known offset. For a later epoch than the last: undefined."""
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
        """At most ``count`` records from ``offset``, all below offset ``below``."""
        return tuple(self.records[offset : min(offset + count, below)])

    def set_high_watermark(self, offset: int) -> None:
        """Set the high watermark, limited to the offsets of the log."""
        self.high_watermark = max(0, min(offset, self.end))

    def last_stable_offset(self) -> int:
        """The offset up to which read_committed consumers may read."""
        return self.producers.last_stable_offset(self.high_watermark)

    def truncate(self, offset: int) -> None:
        """Drop records from ``offset``, and epochs that begin there. If ``offset`` is the end, drop epochs that begin
        at the end."""
        if offset < self.end:
            del self.records[offset:]
            self._rebuild_producers()
        while self.epochs and self.epochs[-1][1] >= self.end:
            self.epochs.pop()
        self.set_high_watermark(self.high_watermark)

    def _rebuild_producers(self) -> None:
        self.producers = Producers()
        for index, record in enumerate(self.records):
            if record.producer_id != UNDEFINED:
                self.producers.add(record, index)
