"""The fetched log of an observer: a snapshot, the batches after it, and the committed end."""

from __future__ import annotations

from typing import Final

import numpy as np

from kframe.plugin import counted
from kframe_kraft.batches import BATCH_BYTES_MAX, RecordBatch, read_batch
from kframe_kraft.batches.header import HEADER_BYTES, PREFIX
from kframe_kraft.disk import Checkpoint, LogHistory, MetadataLog, QuorumState, SnapshotId
from kframe_kraft.disk.batch_files import BatchFile
from kframe_kraft.disk.checkpoints import checkpoint_of
from kframe_kraft.disk.committed import voters_in
from kframe_kraft.disk.names import BOOTSTRAP_ID
from kframe_kraft.disk.segments import ListedBatches
from kframe_kraft.errors import BatchError, LogError

#: The name of fetched records in error messages.
RECORDS: Final = "records of the leader"


class FollowedLog:
    """A copy of a leader's log from its newest snapshot on. ``end`` is the next offset to fetch."""

    def __init__(self) -> None:
        self.snapshot_id = BOOTSTRAP_ID
        self.snapshot: Checkpoint | None = None
        self.committed = 0
        """The largest high watermark of any leader, but at most ``end``."""
        self._batches: list[RecordBatch] = []
        self._start = BOOTSTRAP_ID
        """Offset and epoch before the batches: of the snapshot, or of the last dropped batch."""

    @property
    def end(self) -> int:
        """The offset after the last batch."""
        return self._batches[-1].header.next_offset if self._batches else self._start.offset

    @property
    def last_epoch(self) -> int:
        """The epoch of the last batch, else of the snapshot."""
        return self._batches[-1].header.leader_epoch if self._batches else self._start.epoch

    def append(self, records: bytes, leader_epoch: int) -> None:
        """Append the complete batches in a response. The last one may be truncated.

        Raises BatchError, without a change, for damaged batches, and for offsets or epochs that do not continue
        the log.
        """
        data, position = np.frombuffer(records, np.uint8), 0
        end, epoch, batches = self.end, self.last_epoch, []
        while position + HEADER_BYTES <= len(data):
            size = PREFIX.unpack_from(records, position)[1] + PREFIX.size
            if len(data) - position < size <= BATCH_BYTES_MAX + HEADER_BYTES and position:
                break
            batch = read_batch(data, position, RECORDS)
            header = batch.header
            if header.base_offset != end or not epoch <= header.leader_epoch <= leader_epoch:
                raise BatchError(
                    batch.where,
                    f"offset {header.base_offset} in epoch {header.leader_epoch}",
                    f"offset {end} in epochs {epoch} to {leader_epoch}",
                )
            end, epoch = header.next_offset, header.leader_epoch
            position += header.size
            batches.append(batch)
        if records and not batches:
            raise BatchError(RECORDS, counted(len(records), "byte"), "a complete batch")
        self._batches += batches

    def commit(self, high_watermark: int) -> None:
        """Raise the committed end to the leader's high watermark. A lower one, as of a new leader, is ignored."""
        self.committed = max(self.committed, min(high_watermark, self.end))

    def truncate(self, epoch: int, end_offset: int) -> None:
        """Remove the batches that differ from the leader's log: those after ``end_offset`` or of a later epoch.

        Raises LogError if a committed record is among them (Kafka ``KafkaRaftLog.truncateToEndOffset``).
        """
        count = len(self._batches)
        while count and (
            self._batches[count - 1].header.next_offset > end_offset
            or self._batches[count - 1].header.leader_epoch > epoch
        ):
            count -= 1
        end = self._batches[count - 1].header.next_offset if count else self._start.offset
        # All records before the batches are committed.
        if end < self.committed or end_offset < self._start.offset or epoch < self._start.epoch:
            raise LogError(
                "diverging epoch",
                f"epoch {epoch} that ends at offset {end_offset}",
                f"an offset from {self.committed} on, the committed end",
            )
        if count == len(self._batches):
            raise LogError(
                "diverging epoch", f"epoch {epoch} that ends at offset {end_offset}", f"an end before {self.end}"
            )
        del self._batches[count:]

    def replace(self, snapshot_id: SnapshotId, content: BatchFile) -> None:
        """Replace the log by a snapshot. Raises LogError if it is malformed or ends before the committed end."""
        if snapshot_id.offset < self.committed:
            raise LogError(snapshot_id.file_name, f"offset {snapshot_id.offset}", f"{self.committed} or later")
        self.snapshot = checkpoint_of(content)
        self.snapshot_id = self._start = snapshot_id
        self.committed, self._batches = snapshot_id.offset, []

    def drop(self, end: int) -> None:
        """Release the snapshot and the committed batches below ``end``. There is no ``history`` from then on."""
        dropped = [batch.header for batch in self.committed_batches(self._start.offset)]
        dropped = [header for header in dropped if header.next_offset <= end]
        self.snapshot = None
        if dropped:
            self._start = SnapshotId(dropped[-1].next_offset, dropped[-1].leader_epoch)
            del self._batches[: len(dropped)]

    def committed_batches(self, first: int) -> list[RecordBatch]:
        """The committed batches from offset ``first`` on."""
        return [
            batch
            for batch in self._batches
            if batch.header.base_offset >= first and batch.header.next_offset <= self.committed
        ]

    def history(self, state: QuorumState) -> LogHistory:
        """The committed log. Raises LogError after ``drop`` has released a part of it."""
        has_snapshot = self.snapshot is not None or self.snapshot_id == BOOTSTRAP_ID
        if self._start != self.snapshot_id or not has_snapshot:
            raise LogError("log", f"offset {self._start.offset} as its start", f"offset {self.snapshot_id.offset}")
        batches = ListedBatches(self.committed_batches(self.snapshot_id.offset))
        last = batches[-1].header if batches else None
        end = self.snapshot_id.offset if last is None else last.next_offset
        named = [voters for batch in batches if batch.header.is_control and (voters := voters_in(batch)) is not None]
        log = MetadataLog(self.snapshot_id.offset, end, batches, last, named[-1] if named else None)
        return LogHistory(self.snapshot_id, self.snapshot, log, state, end)
