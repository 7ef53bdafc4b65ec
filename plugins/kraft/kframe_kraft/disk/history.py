"""The history of a cluster: the newest snapshot of a directory and the batches after it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from kframe_kraft.disk.checkpoints import Checkpoint, read_checkpoint
from kframe_kraft.disk.committed import CommittedEnd, committed_end
from kframe_kraft.disk.names import BOOTSTRAP_ID, SnapshotId, segments_in, snapshots_in
from kframe_kraft.disk.quorum_state import QuorumState, read_quorum_state
from kframe_kraft.disk.segments import MetadataLog, read_segments
from kframe_kraft.errors import LogError

#: A running node may delete old files while they are read. Then the directory is read again.
_ATTEMPTS: Final = 5


@dataclass(frozen=True, slots=True, eq=False)
class LogHistory:
    """The content of a log's directory. ``snapshot`` is None if the log begins at offset 0. Records below
    ``committed_below`` are committed, as those in the snapshot.

    ``damage`` names what was left out, a text for each damaged file. It is empty unless damage was to be tolerated.
    """

    snapshot_id: SnapshotId
    snapshot: Checkpoint | None
    log: MetadataLog
    quorum_state: QuorumState | None = None
    committed_below: int = 0
    damage: tuple[str, ...] = ()
    absent: Mapping[str, str] = field(default_factory=dict)
    """Why facts of the log are unknown, by the columns of ``Snapshot.provenance``: a dump may lack them."""

    @property
    def voters(self) -> tuple[int, ...]:
        """The node ids of the voters in the log, else in the snapshot, else in the state, else none."""
        if self.log.voters is not None:
            return self.log.voters
        if self.snapshot is not None and self.snapshot.voters is not None:
            return tuple(voter.voter_id for voter in self.snapshot.voters.voters)
        return () if self.quorum_state is None else self.quorum_state.voters

    @property
    def committed(self) -> CommittedEnd:
        """The committed end, according to the directory."""
        return committed_end(self.log.end, max(self.committed_below, self.snapshot_id.offset), self.voters)


def read_history(directory: Path, *, from_oldest: bool = False, to_damage: bool = False) -> LogHistory:
    """Return the history in a log's directory, which a node may be writing.

    It begins with the newest snapshot, or with the oldest offset of the log from which it is complete: offset 0 or a
    snapshot. Raises LogError if a file is damaged, or the log begins after the snapshot's end. With ``to_damage`` it
    ends before the first damage, and begins with the next snapshot that is valid; ``damage`` names both.
    """
    for _ in range(_ATTEMPTS):
        names = _names(directory)
        try:
            history = _read_history(directory, from_oldest, to_damage)
            if not history.damage or _names(directory) == names:
                return history
        except (FileNotFoundError, LogError):
            if _names(directory) == names:
                raise
    return _read_history(directory, from_oldest, to_damage)


def _names(directory: Path) -> set[str]:
    return {path.name for path in directory.iterdir()}


def _read_history(directory: Path, from_oldest: bool, to_damage: bool) -> LogHistory:
    # Segments are listed before snapshots: a node deletes segments only after the snapshot that replaces them.
    segments = segments_in(directory)
    snapshots = {snapshot_id: path for snapshot_id, path in snapshots_in(directory).items() if snapshot_id.offset}
    damage = _drop_damaged(snapshots) if to_damage else []
    newest_id = max(snapshots, default=BOOTSTRAP_ID)
    snapshot_id = _oldest_id(segments, snapshots) if from_oldest else newest_id
    log = read_segments(segments, snapshot_id.offset, to_damage=to_damage)
    if log.end < newest_id.offset and snapshot_id != newest_id and log.damage is None:
        snapshot_id, log = newest_id, read_segments(segments, newest_id.offset, to_damage=to_damage)
    snapshot = read_checkpoint(snapshots[snapshot_id]) if snapshot_id in snapshots else None
    if log.start > snapshot_id.offset:
        reason = "".join(f" ({text})" for text in damage)
        raise LogError(
            str(directory),
            f"a log from offset {log.start}",
            f"a snapshot at or above it, not {snapshot_id.offset}{reason}",
        )
    if log.damage is not None:
        damage.append(str(log.damage))
    if log.end < snapshot_id.offset:  # the snapshot replaces a log that ends before it
        log = MetadataLog(snapshot_id.offset, snapshot_id.offset)
    first = next(iter(log.batches), None)
    if first is not None and first.header.base_offset < snapshot_id.offset:
        raise LogError(first.where, f"a batch across offset {snapshot_id.offset}", "a batch that begins there")
    quorum_state = read_quorum_state(directory)
    return LogHistory(snapshot_id, snapshot, log, quorum_state, newest_id.offset, tuple(damage))


def _drop_damaged(snapshots: dict[SnapshotId, Path]) -> list[str]:
    """Remove the snapshots that are damaged. Returns a text for each."""
    damage: list[str] = []
    for snapshot_id, path in list(snapshots.items()):
        try:
            read_checkpoint(path)
        except LogError as error:
            damage.append(str(error))
            del snapshots[snapshot_id]
    return damage


def _oldest_id(segments: Mapping[int, Path], snapshots: Mapping[SnapshotId, Path]) -> SnapshotId:
    """The oldest snapshot that the log continues; BOOTSTRAP_ID if the log begins at offset 0."""
    start = min(segments, default=None)
    if start == 0 or not snapshots:
        return BOOTSTRAP_ID
    usable = [snapshot_id for snapshot_id in snapshots if start is not None and snapshot_id.offset >= start]
    return min(usable, default=max(snapshots))
