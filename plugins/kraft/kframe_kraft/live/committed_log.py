"""Implements ``kframe.plugin.live.CommittedLog``: the committed batches of a running quorum, decoded."""

from __future__ import annotations

from kframe.plugin.kraft import ClusterMetadata, control
from kframe.plugin.live import CommittedBatch, CommittedRecord, Progress, ignore_progress
from kframe_kraft.batches import RecordBatch
from kframe_kraft.live.observer import QuorumObserver
from kframe_kraft.records import decode_record
from kframe_kraft.replay.image import Timeline
from kframe_kraft.replay.transactions import Rows, TransactionFilter


class QuorumLog:
    """See ``CommittedLog``. Batches that were returned are released."""

    def __init__(self, observer: QuorumObserver) -> None:
        self._observer = observer
        self._transactions = TransactionFilter()
        self._leader_id = -1
        self.generation = 0
        self.end = 0

    @property
    def leader_id(self) -> int:
        """See ``CommittedLog.leader_id``. Until the log names a leader it is that of the quorum."""
        return self._leader_id if self._leader_id >= 0 else self._observer.leader.leader_id

    def open(self, progress: Progress = ignore_progress, *, from_start: bool = False) -> None:
        """See ``CommittedLog.open``."""
        self._observer.catch_up(progress)
        self._start_at_snapshot()
        if not from_start:
            for batch in self._observer.log.committed_batches(self.end):
                self._advance(batch)

    def metadata(self) -> ClusterMetadata:
        """See ``CommittedLog.metadata``."""
        return Timeline(self._observer.history()).advance(self.end)

    def poll(self) -> list[CommittedBatch]:
        """See ``CommittedLog.poll``."""
        log = self._observer.log
        batches = log.committed_batches(self.end)
        if not batches:
            self._observer.poll()
            if self._observer.generation != self.generation:
                self._start_at_snapshot()
                return []
            batches = log.committed_batches(self.end)
        committed = [self._decode(batch) for batch in batches if not self._is_control(batch)]
        log.drop(self.end)
        return committed

    def close(self) -> None:
        """See ``CommittedLog.close``."""
        self._observer.close()

    def _start_at_snapshot(self) -> None:
        """Start at the observer's snapshot."""
        self.generation = self._observer.generation
        self.end = self._observer.log.snapshot_id.offset
        self._transactions = TransactionFilter()

    def _is_control(self, batch: RecordBatch) -> bool:
        """Whether a batch has control records. They are skipped, and set the leader."""
        if batch.header.is_control:
            self._advance(batch)
        return batch.header.is_control

    def _advance(self, batch: RecordBatch) -> list[Rows]:
        """Advance to the end of a batch. Returns the records that may be replayed."""
        self.end = batch.header.next_offset
        if not batch.header.is_control:
            return self._transactions.apply(batch)
        for record in batch.control_records():
            if isinstance(record, control.LeaderChangeMessage):
                self._leader_id = record.leader_id
        return []

    def _decode(self, batch: RecordBatch) -> CommittedBatch:
        header = batch.header
        begins_inside = self._transactions.begin_offset is not None
        replayable = self._advance(batch)
        is_whole = len(replayable) == 1 and len(replayable[0].rows) == header.record_count
        records = tuple(
            CommittedRecord(
                rows.batch.offset(number), *decode_record(rows.batch.value(number), rows.batch.name(number))
            )
            for rows in replayable
            for number in rows.rows.tolist()
        )
        return CommittedBatch(
            header.base_offset,
            header.max_timestamp,
            self.leader_id,
            header.leader_epoch,
            records,
            in_transaction=begins_inside or not is_whole,
        )
