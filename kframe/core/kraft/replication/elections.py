"""Elections by request and by the timers (Kafka 4.4 ``ReplicationControlManager.electLeaders``)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from kframe.core.kraft.context import KraftContext
from kframe.core.kraft.controller_result import ControllerResult, PartitionResult, check_record_count
from kframe.core.kraft.replication.isr_changes import leaderless_rows
from kframe.core.kraft.replication.partition_changes import TargetReplicas, plan_changes
from kframe.errors import ErrorCode
from kframe.model.arrays import Bool, Int32
from kframe.model.ids import NO_LEADER
from kframe.model.kraft.ids import KraftElection
from kframe.model.kraft.metadata import ClusterMetadata
from kframe.model.kraft.record_versions import RecordAndVersion

#: The error of a row that needs an election but gets no record.
_UNAVAILABLE = {
    KraftElection.PREFERRED: ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE,
    KraftElection.UNCLEAN: ErrorCode.ELIGIBLE_LEADERS_NOT_AVAILABLE,
}


def elect_leaders(
    context: KraftContext, kind: KraftElection, partitions: Sequence[tuple[str, int]] | None
) -> ControllerResult[list[PartitionResult]]:
    """Elect leaders of named partitions, or of all; the response is a list of PartitionResult.

    PREFERRED elects where the first replica does not lead, UNCLEAN where no broker leads. For all partitions the
    response leaves out those that need no election.
    """
    metadata = context.metadata
    names: Sequence[tuple[str, int]]
    if partitions is None:
        rows = np.flatnonzero(metadata.partitions.topic >= 0).astype(np.int32)
        rows = rows[_needs_election(metadata, kind, rows)]
        elected = _elect(context, kind, rows)
        names = _names(metadata, rows)
        errors = [ErrorCode.NONE if record is not None else _UNAVAILABLE[kind] for record in elected]
    else:
        names, stored_rows = partitions, [metadata.row(topic, partition) for topic, partition in partitions]
        known = np.array([row for row in stored_rows if row is not None], np.int32)
        needed = _needs_election(metadata, kind, known)
        elected = _elect(context, kind, known[needed])
        outcomes, needs = iter(elected), iter(needed.tolist())
        errors = []
        for row in stored_rows:
            if row is None:
                errors.append(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
            elif not next(needs):
                errors.append(ErrorCode.ELECTION_NOT_NEEDED)
            else:
                errors.append(ErrorCode.NONE if next(outcomes) is not None else _UNAVAILABLE[kind])
    records = [record for record in elected if record is not None]
    check_record_count(records)
    results = [PartitionResult(*name, error) for name, error in zip(names, errors, strict=True)]
    return ControllerResult(records, results)


def balance_leaders(context: KraftContext) -> ControllerResult[bool]:
    """A pass of the timer for preferred leaders. The response is whether there may be more elections."""
    p = context.metadata.partitions
    rows = np.flatnonzero(p.topic >= 0).astype(np.int32)
    return _timer_pass(context, KraftElection.PREFERRED, rows)


def elect_unclean_leaders(context: KraftContext) -> ControllerResult[bool]:
    """A pass of the timer for unclean elections. It covers leaderless partitions whose configuration allows them."""
    rows = leaderless_rows(context.metadata)
    return _timer_pass(context, KraftElection.UNCLEAN, rows[context.unclean_enabled(rows) != 0])


def _timer_pass(context: KraftContext, kind: KraftElection, rows: Int32) -> ControllerResult[bool]:
    rows = rows[_needs_election(context.metadata, kind, rows)]
    limit, records = context.settings.max_elections, list[RecordAndVersion]()
    for start in range(0, len(rows), limit):
        records += [record for record in _elect(context, kind, rows[start : start + limit]) if record is not None]
        if len(records) >= limit:
            break
    return ControllerResult(records[:limit], len(records) >= limit)


def _elect(context: KraftContext, kind: KraftElection, rows: Int32) -> list[RecordAndVersion | None]:
    if not len(rows):
        return []
    targets = TargetReplicas(rows=rows, kinds=np.full(len(rows), kind, np.uint8))
    return plan_changes(context, targets).records_by_row()


def _needs_election(metadata: ClusterMetadata, kind: KraftElection, rows: Int32) -> Bool:
    """(k,) whether an election of this kind can change the leader of a row."""
    leaders = metadata.partitions.leaders_of(rows)
    preferred = metadata.partitions.preferred_of(rows)
    needed: Bool = leaders == NO_LEADER if kind is KraftElection.UNCLEAN else leaders != preferred
    return needed


def _names(metadata: ClusterMetadata, rows: Int32) -> list[tuple[str, int]]:
    p, names = metadata.partitions, metadata.topics.names
    return [(names[topic], int(partition)) for topic, partition in zip(p.topic[rows], p.partition[rows], strict=True)]
