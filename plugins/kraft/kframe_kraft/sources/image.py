"""The metadata of a cluster at an offset of its log."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from kframe.plugin.kraft import ClusterMetadata, control
from kframe_kraft.batches import RecordBatch
from kframe_kraft.disk import CommittedEnd, LogHistory
from kframe_kraft.replay import Replay


@dataclass(frozen=True, slots=True, eq=False)
class MetadataImage:
    """All records below ``offset``, without those of a transaction that is open there.

    ``epoch`` is that of the last record, ``timestamp`` its time in milliseconds, None in an empty log. ``leader_id`` is
    the leader of that epoch, None if the source does not name it. Records from ``committed.offset`` on may be lost.
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


def image_of(history: LogHistory, end: int | None = None) -> MetadataImage:
    """Return the metadata at the end of the log, or from all records below ``end``.

    Raises LogError if ``end`` is within a batch or below the snapshot's end, and for the first record that is
    malformed or contradicts the metadata.
    """
    metadata = ClusterMetadata()
    replay, log = Replay(metadata), _ReplayedLog(history)
    # A broker that is registered in a snapshot counts as registered at the snapshot's last offset.
    registered = history.snapshot_id.offset - 1
    for rows, in_snapshot in history.blocks(log.replayed(history.batches(end))):
        replay.apply(rows, registered if in_snapshot else None)
    metadata.partitions.trim()
    state, leader_id = history.quorum_state, log.leader_id
    if leader_id is None and state is not None and state.leader_epoch == log.epoch and state.leader_id >= 0:
        leader_id = state.leader_id
    return MetadataImage(
        metadata, log.offset, log.epoch, log.timestamp, history.committed, history.voters, leader_id, log.kraft_version,
        log.voters_record,
    )  # fmt: skip


class _ReplayedLog:
    """The fields of an image from the headers and control records of replayed batches."""

    def __init__(self, history: LogHistory) -> None:
        snapshot = history.snapshot
        self.offset, self.epoch = history.snapshot_id
        self.timestamp = snapshot.timestamp if snapshot else None
        self.kraft_version = snapshot.kraft_version if snapshot else 0
        self.voters_record = snapshot.voters if snapshot else None
        self.leader_id: int | None = None

    def replayed(self, batches: Iterable[RecordBatch]) -> Iterator[RecordBatch]:
        """Yield all batches, and update the fields."""
        for batch in batches:
            header = batch.header
            self.offset, self.epoch, self.timestamp = header.next_offset, header.leader_epoch, header.max_timestamp
            if header.is_control:
                self._note_control(batch)
            yield batch

    def _note_control(self, batch: RecordBatch) -> None:
        for record in batch.control_records():
            match record:
                case control.LeaderChangeMessage():
                    self.leader_id = record.leader_id
                case control.KRaftVersionRecord():
                    self.kraft_version = record.k_raft_version
                case control.VotersRecord():
                    self.voters_record = record
