"""Compares the logs of the replicas of a metadata quorum, byte by byte and record by record.

Followers append the batches of the leader unchanged. So two logs with a batch of the same epoch at the same offset are
equal up to there (Raft's log matching). A replica may have a tail of an older epoch that was never committed; its node
truncates it when it follows the next leader.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from kframe.plugin import counted
from kframe_kraft.batches import RecordBatch
from kframe_kraft.disk import LogHistory, read_history, read_properties
from kframe_kraft.disk.properties import FILE_NAME
from kframe_kraft.errors import LogError
from kframe_kraft.sources.paths import find_log_directory

#: How a log relates to the reference.
EQUAL: Final = "equal"
BEHIND: Final = "behind"
STALE_TAIL: Final = "stale tail"
DIVERGED: Final = "diverged"
#: No offset is in both logs.
NO_OVERLAP: Final = "no overlap"


@dataclass(frozen=True, slots=True)
class ReplicaLog:
    """A replica's directory."""

    name: str
    node_id: int | None
    cluster_id: str | None
    history: LogHistory

    @property
    def end(self) -> int:
        """The end of the log."""
        return max(self.history.log.end, self.history.committed_below)

    @property
    def last_epoch(self) -> int:
        """The epoch of the last record, -1 without any."""
        return max(self.history.log.last_epoch, self.history.snapshot_id.epoch if self.history.snapshot else -1)

    @property
    def position(self) -> tuple[int, int]:
        """The order of logs in elections of the quorum: last epoch, then end."""
        return self.last_epoch, self.end


@dataclass(frozen=True, slots=True)
class DamagedReplica:
    """A replica's directory that is damaged. ``damage`` says where."""

    name: str
    node_id: int | None
    cluster_id: str | None
    damage: str


@dataclass(frozen=True, slots=True)
class ReplicaComparison:
    """A replica compared with the reference. ``first_difference`` is an offset; ``detail`` describes the records there.

    ``can_lead`` is None if it depends on replicas that were not compared.
    """

    replica: ReplicaLog
    state: str
    first_difference: int | None = None
    detail: str | None = None
    can_lead: bool | None = None


@dataclass(frozen=True, slots=True)
class QuorumComparison:
    """All replicas. The reference is the one with the highest last epoch, then the longest log."""

    reference: ReplicaLog
    replicas: tuple[ReplicaComparison, ...]
    voters: tuple[int, ...]
    committed: int
    """Records below are committed: a snapshot has them, or a majority in the newest epoch. There may be more."""

    @property
    def diverged(self) -> bool:
        """Whether a difference cannot be an uncommitted tail: a log is damaged, or is of another cluster."""
        return any(row.state == DIVERGED for row in self.replicas)


def read_replica(path: Path) -> ReplicaLog | DamagedReplica:
    """Return the log in a node's directory, or its damage. Raises LogError if there is no such directory."""
    directory = find_log_directory(path)
    properties, damage = None, ""
    try:
        if (directory.parent / FILE_NAME).exists():
            properties = read_properties(directory.parent)
        history = read_history(directory, from_oldest=True, to_damage=True)
        damage = "; ".join(history.damage)
    except LogError as error:
        damage = str(error)
    node_id, cluster_id = (properties.node_id, properties.cluster_id) if properties else (None, None)
    if damage:
        return DamagedReplica(str(path), node_id, cluster_id, damage)
    return ReplicaLog(str(path), node_id, cluster_id, history)


def compare_replicas(replicas: Sequence[ReplicaLog]) -> QuorumComparison:
    """Compare replicas, at least one. The reference is of the cluster that most of them name. Voters are those that the
    reference names, else all replicas."""
    clusters = Counter(replica.cluster_id for replica in replicas if replica.cluster_id is not None)
    cluster_ids = {None, *(cluster_id for cluster_id, _ in clusters.most_common(1))}
    candidates = [replica for replica in replicas if replica.cluster_id in cluster_ids]
    reference = max(candidates, key=lambda replica: replica.position)
    nodes = tuple(replica.node_id for replica in replicas if replica.node_id is not None)
    voters = reference.history.voters or nodes
    compared = [_compare(reference, replica) for replica in replicas]
    rows = tuple(replace(row, can_lead=_can_lead(row, compared, voters)) for row in compared)
    return QuorumComparison(reference, rows, voters, _committed(reference, compared, voters))


def _compare(reference: ReplicaLog, replica: ReplicaLog) -> ReplicaComparison:
    if None not in (reference.cluster_id, replica.cluster_id) and replica.cluster_id != reference.cluster_id:
        detail = f"cluster {replica.cluster_id} here, {reference.cluster_id} in the reference"
        return ReplicaComparison(replica, DIVERGED, detail=detail)
    difference = _first_difference(reference.history.log.batches, replica.history.log.batches)
    if difference is None:
        starts = [log.history.snapshot_id.offset for log in (reference, replica)]
        if replica.end == reference.end:
            return ReplicaComparison(replica, EQUAL, detail=_torn_text(replica))
        state = NO_OVERLAP if replica.end < max(starts) else BEHIND
        return ReplicaComparison(replica, state, detail=_torn_text(replica))
    expected, actual = difference
    offset, detail = _first_record(expected, actual)
    is_older = actual.header.leader_epoch < expected.header.leader_epoch
    is_committed = actual.header.base_offset < min(replica.history.committed_below, reference.end)
    state = STALE_TAIL if is_older and not is_committed else DIVERGED
    return ReplicaComparison(replica, state, offset, detail)


def _torn_text(replica: ReplicaLog) -> str | None:
    log = replica.history.log
    return (
        f"{counted(log.torn_bytes, 'byte')} without a batch at the end: {log.torn_reason}" if log.torn_bytes else None
    )


def _first_difference(
    reference: Iterable[RecordBatch], replica: Iterable[RecordBatch]
) -> tuple[RecordBatch, RecordBatch] | None:
    """The first pair of batches that differ at offsets which both logs have."""
    remaining = iter(reference)
    other = next(remaining, None)
    for batch in replica:
        offset = batch.header.base_offset
        while other is not None and other.header.next_offset <= offset:
            other = next(remaining, None)
        if other is None:
            return None  # the reference ends here
        if other.header.base_offset > offset:
            continue  # the reference begins later
        if other.header != batch.header or other.payload.tobytes() != batch.payload.tobytes():
            return other, batch
    return None


def _first_record(expected: RecordBatch, actual: RecordBatch) -> tuple[int, str]:
    """The offset of the first record that differs, and a description of the difference."""
    count = min(len(expected.value_start), len(actual.value_start))
    epochs = f"epoch {actual.header.leader_epoch} here, {expected.header.leader_epoch} in the reference"
    if expected.header.base_offset != actual.header.base_offset:
        return actual.header.base_offset, f"another batch, {epochs}"
    for number in range(count):
        if (expected.key(number), expected.value(number)) != (actual.key(number), actual.value(number)):
            return expected.offset(number), f"another record, {epochs}"
    if len(expected.value_start) != len(actual.value_start):
        return expected.offset(
            count
        ), f"{counted(len(actual.value_start), 'record')} here, {len(expected.value_start)} in the reference, {epochs}"
    return expected.header.base_offset, f"equal records in another batch header, {epochs}"


def _can_lead(row: ReplicaComparison, rows: Sequence[ReplicaComparison], voters: Sequence[int]) -> bool | None:
    """Whether a majority of voters would vote for the replica: those whose logs are not ahead of its own."""
    if row.state == DIVERGED or (row.replica.node_id is not None and row.replica.node_id not in voters):
        return False
    voting = [other.replica for other in rows if other.replica.node_id is None or other.replica.node_id in voters]
    votes = sum(other.position <= row.replica.position for other in voting)
    majority = len(voters) // 2 + 1
    if votes >= majority:
        return True
    return None if votes + max(len(voters) - len(voting), 0) >= majority else False


def _committed(reference: ReplicaLog, rows: Sequence[ReplicaComparison], voters: Sequence[int]) -> int:
    newest = max(row.replica.history.committed_below for row in rows if row.state != DIVERGED)
    common = [
        row.replica.end if row.first_difference is None else row.first_difference
        for row in rows
        if row.state != DIVERGED and (row.replica.node_id is None or row.replica.node_id in voters)
    ]
    majority = len(voters) // 2 + 1
    if len(common) < majority:
        return newest
    end = min(sorted(common, reverse=True)[majority - 1], reference.end)
    headers = itertools.takewhile(lambda header: header.base_offset < end, reference.history.log.batches.headers())
    epoch = max((header.leader_epoch for header in headers), default=None)
    return max(newest, end) if epoch == reference.last_epoch else newest
