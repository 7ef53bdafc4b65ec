"""The committed log of an observer in a temporary file, so that it needs no memory."""

from __future__ import annotations

from kframe_kraft.disk import CommittedEnd, LogHistory, QuorumState
from kframe_kraft.disk.committed import voters_of
from kframe_kraft.disk.segments import read_segments
from kframe_kraft.disk.temporary import TemporaryContent
from kframe_kraft.live.followed_log import RECORDS
from kframe_kraft.live.observer import QuorumObserver


class SpooledLog:
    """Moves the committed batches of an observer to a temporary file."""

    def __init__(self, observer: QuorumObserver) -> None:
        self._observer = observer
        self._end = 0
        self._content = TemporaryContent(RECORDS)
        self._start_at_snapshot()

    def spool(self) -> None:
        """Move the committed batches to the file. Restart if a snapshot has replaced the log."""
        if self._observer.generation != self._generation:
            self._start_at_snapshot()
        log = self._observer.log
        for batch in log.committed_batches(self._end):
            self._content.append(batch.content.data)
            self._end = batch.header.next_offset
        log.drop(self._end)

    def history(self) -> LogHistory:
        """The current log."""
        log = read_segments({self._snapshot_id.offset: self._content})
        leader = self._observer.leader
        return LogHistory(
            self._snapshot_id, self._snapshot, log, QuorumState(leader.leader_epoch, leader.leader_id),
            voters_of(log.voters, self._snapshot.voters if self._snapshot else None, None),
            CommittedEnd(log.end, exact=True),
        )  # fmt: skip

    def _start_at_snapshot(self) -> None:
        log = self._observer.log
        self._generation = self._observer.generation
        self._snapshot_id, self._snapshot = log.snapshot_id, log.snapshot
        self._end = log.snapshot_id.offset
        self._content = TemporaryContent(RECORDS)
