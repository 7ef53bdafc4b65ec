"""The metadata of a cluster at an offset of its log."""

from __future__ import annotations

from dataclasses import dataclass

from kframe.plugin.kraft import ClusterMetadata, control
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
    replay = Replay(metadata)
    # A broker that is registered in a snapshot counts as registered at the snapshot's last offset.
    registered = history.snapshot_id.offset - 1
    for rows, in_snapshot in history.blocks(end):
        replay.apply(rows, registered if in_snapshot else None)
    metadata.partitions.trim()
    snapshot, batches = history.snapshot, history.batches(end)
    timestamp = snapshot.timestamp if snapshot else None
    epoch, offset = history.snapshot_id
    epoch, offset = offset, epoch
    kraft_version = snapshot.kraft_version if snapshot else 0
    voters_record, leader_id = snapshot.voters if snapshot else None, None
    for batch in batches:
        if batch.header.is_control:
            for record in batch.control_records():
                if isinstance(record, control.LeaderChangeMessage):
                    leader_id = record.leader_id
                elif isinstance(record, control.KRaftVersionRecord):
                    kraft_version = record.k_raft_version
                elif isinstance(record, control.VotersRecord):
                    voters_record = record
    if batches:
        last = batches[-1].header
        epoch, offset, timestamp = last.leader_epoch, last.next_offset, last.max_timestamp
    state = history.quorum_state
    if leader_id is None and state is not None and state.leader_epoch == epoch and state.leader_id >= 0:
        leader_id = state.leader_id
    return MetadataImage(
        metadata, offset, epoch, timestamp, history.committed, history.voters, leader_id, kraft_version, voters_record
    )
