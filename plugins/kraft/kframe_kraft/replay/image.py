"""The metadata of a cluster at an offset of its log."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from copy import copy
from dataclasses import dataclass

import numpy as np

from kframe.plugin.kraft import ClusterMetadata, control
from kframe_kraft.batches import RecordBatch, blocks_of
from kframe_kraft.disk import CommittedEnd, LogHistory
from kframe_kraft.errors import LogError
from kframe_kraft.replay.records import Replay
from kframe_kraft.replay.transactions import Rows, TransactionFilter


@dataclass(frozen=True, slots=True, eq=False)
class MetadataImage:
    """All records below ``offset``, without those of a transaction that is open there.

    ``epoch`` is that of the last record, ``timestamp`` its time in milliseconds, None in an empty log. ``leader_id`` is
    the leader of that epoch, None if the source does not name it. ``voters`` is empty if it names none. Records from
    ``committed.offset`` on may be lost.
    """

    metadata: ClusterMetadata
    offset: int
    epoch: int
    timestamp: int | None
    committed: CommittedEnd
    voters: tuple[int, ...]
    leader_id: int | None = None
    kraft_version: int = 0
    voters_record: control.VotersRecord | None = None


def image_of(history: LogHistory, end: int | None = None, timeline: Timeline | None = None) -> MetadataImage:
    """Return the metadata at the end of the log, or from all records below ``end``. Raises as ``Timeline.advance``.

    With a ``timeline`` of the history it begins at its offset, and takes its metadata.
    """
    timeline = Timeline(history) if timeline is None else timeline
    metadata = timeline.advance(end)
    metadata.partitions.trim()
    state, leader_id = history.quorum_state, timeline.leader_id
    if leader_id is None and state is not None and state.leader_epoch == timeline.epoch and state.leader_id >= 0:
        leader_id = state.leader_id
    return MetadataImage(
        metadata,
        timeline.offset,
        timeline.epoch,
        timeline.timestamp,
        history.committed,
        timeline.voters or history.voters,
        leader_id,
        timeline.kraft_version,
        timeline.voters_record,
    )


class Timeline:
    """Replays a history forward, batch by batch. Its fields are those of ``MetadataImage`` so far."""

    def __init__(self, history: LogHistory) -> None:
        snapshot = history.snapshot
        self.metadata = ClusterMetadata()
        self.offset, self.epoch = history.snapshot_id
        self.timestamp = snapshot.timestamp if snapshot else None
        self.kraft_version = snapshot.kraft_version if snapshot else 0
        self.voters_record = snapshot.voters if snapshot else None
        self.leader_id: int | None = None
        self.voters = _node_ids(self.voters_record.voters if self.voters_record else ())
        self._replay = Replay(self.metadata)
        self._transactions = TransactionFilter()
        self._batches = iter(history.log.batches)
        self._next: RecordBatch | None = None
        """The next batch to replay, if it was read."""
        # A broker that is registered in a snapshot counts as registered at the snapshot's last offset.
        for block in blocks_of(snapshot.batches if snapshot else ()):
            self._replay.apply(Rows(block, block.frames(), np.arange(len(block))), self.offset - 1)

    def advance(self, end: int | None = None) -> ClusterMetadata:
        """Replay the batches below ``end``, or all. Records of an open transaction are buffered.

        Raises LogError if ``end`` is within a batch or below ``offset``, and for the first record that is malformed or
        contradicts the metadata.
        """
        if end is not None and end < self.offset:
            raise LogError("log", f"offset {end}", f"offset {self.offset} or later")
        for block in blocks_of(self._batches_below(end)):
            for rows in self._transactions.apply(block):
                self._replay.apply(rows)
        return self.metadata

    def copy(self, following: Iterable[RecordBatch] = ()) -> Timeline:
        """An independent timeline at the same offset. ``following`` are the batches from there on.

        No transaction may be open.
        """
        assert not self.in_transaction
        clone = copy(self)
        clone.metadata = self.metadata.copy()
        clone._replay, clone._transactions = Replay(clone.metadata), TransactionFilter()
        clone._batches, clone._next = iter(following), None
        return clone

    @property
    def in_transaction(self) -> bool:
        """Whether a transaction is open."""
        return self._transactions.begin_offset is not None

    def with_open_transaction(self) -> ClusterMetadata:
        """A copy of the metadata with the records of the open transaction."""
        metadata = self.metadata.copy()
        uncommitted = Replay(metadata)
        for rows in self._transactions.pending:
            uncommitted.apply(rows)
        return metadata

    def _batches_below(self, end: int | None) -> Iterator[RecordBatch]:
        while (batch := self._next or next(self._batches, None)) is not None:
            header, self._next = batch.header, None
            if end is not None and header.next_offset > end:
                if header.base_offset < end:
                    raise LogError(batch.where, f"offset {end} within the batch", "the end of a batch")
                self._next = batch
                break
            self.offset, self.epoch, self.timestamp = header.next_offset, header.leader_epoch, header.max_timestamp
            if header.is_control:
                self._note_control(batch)
            yield batch

    def _note_control(self, batch: RecordBatch) -> None:
        for record in batch.control_records():
            match record:
                case control.LeaderChangeMessage():
                    self.leader_id, self.voters = record.leader_id, _node_ids(record.voters)
                case control.KRaftVersionRecord():
                    self.kraft_version = record.k_raft_version
                case control.VotersRecord():
                    self.voters_record, self.voters = record, _node_ids(record.voters)


def _node_ids(voters: Iterable[control.LeaderChangeVoter | control.Voter]) -> tuple[int, ...]:
    return tuple(voter.voter_id for voter in voters)
