"""What the controller has appended, by all of its processes: a later log continues what was committed."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from kframe_kraft.batches import read_batches
from kframe_kraft.log import DurableLog

from kframe.plugin.kraft import records

_ALL: Final = 1 << 30


@dataclass(frozen=True, slots=True, eq=False)
class WrittenBatch:
    """A batch of the log; ``records`` is empty for one of control records."""

    base: int
    end: int
    epoch: int
    content: bytes
    records: tuple[records.MetadataRecord, ...]


def batches_of(data: bytes) -> Iterator[WrittenBatch]:
    """The batches in a part of the log."""
    for batch in read_batches(data):
        header = batch.header
        content = () if header.is_control else tuple(each.record for each in batch.records())
        yield WrittenBatch(
            header.base_offset, header.next_offset, header.leader_epoch, batch.content.tobytes(), content
        )


class History:
    """All batches from offset 0 on that were appended and not lost. Those below ``committed`` may never be lost."""

    def __init__(self) -> None:
        self.batches: list[WrittenBatch] = []
        self.committed = 0

    @property
    def end(self) -> int:
        """The offset after the last batch."""
        return self.batches[-1].end if self.batches else 0

    @property
    def epoch(self) -> int:
        """The epoch of the last batch, 0 without any."""
        return self.batches[-1].epoch if self.batches else 0

    def follow(self, log: DurableLog) -> list[WrittenBatch]:
        """Read what was appended since the last call."""
        added = list(_read(log, self.end)) if log.end > self.end else []
        self.batches += added
        return added

    def reopened(self, log: DurableLog, epoch: int) -> Iterator[str]:
        """Compare a log that a leader of ``epoch`` has opened, and forget what a crash has lost.

        Yields what is wrong with it.
        """
        stored = [batch for batch in _read(log, log.start) if batch.epoch < epoch]
        first = bisect_right(self.batches, log.start, key=lambda batch: batch.end)
        same = first
        for written, read in zip(self.batches[first:], stored, strict=False):
            if written.content != read.content:
                break
            same += 1
        if self.batches[same:] and self.batches[same].base < self.committed:
            yield f"the log lacks records from {self.batches[same].base} on, although {self.committed} was committed"
        del self.batches[same:]
        # A batch whose writer ended in the call that wrote it.
        added = stored[same - first :]
        if any(batch.epoch < self.epoch for batch in added):
            yield f"the log has records from {added[0].base} on that were never appended"
        self.batches += added


def _read(log: DurableLog, offset: int) -> Iterator[WrittenBatch]:
    """The batches of the log from the one that has ``offset`` on."""
    while offset < log.end:
        for batch in batches_of(log.read(offset, _ALL)):
            yield batch
            offset = batch.end
