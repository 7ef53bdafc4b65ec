"""The committed end of a log on disk, according to one directory.

The high watermark is in memory only. With one voter, the end of its log is committed. With several, any record after
the newest snapshot may still be truncated, because a snapshot is at or below the high watermark.
"""

from __future__ import annotations

from dataclasses import dataclass

from kframe.plugin.kraft import control
from kframe_kraft.batches import RecordBatch


@dataclass(frozen=True, slots=True)
class CommittedEnd:
    """Records below ``offset`` are committed. ``exact``: no record above it is."""

    offset: int
    exact: bool


def committed_end(log_end: int, snapshot_end: int, voters: tuple[int, ...]) -> CommittedEnd:
    """Return the committed end of a log that ends at ``log_end``. ``voters`` are the node ids of the quorum."""
    if len(voters) == 1:
        return CommittedEnd(max(log_end, snapshot_end), exact=True)
    return CommittedEnd(snapshot_end, exact=log_end <= snapshot_end)


def voters_in(batch: RecordBatch) -> tuple[int, ...] | None:
    """The node ids of the voters in a control batch, or None."""
    for record in reversed(batch.control_records()):
        if isinstance(record, control.VotersRecord | control.LeaderChangeMessage):
            return tuple(voter.voter_id for voter in record.voters)
    return None
