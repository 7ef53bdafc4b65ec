"""Reassignments: start, cancel and list (Kafka 4.4 ``alterPartitionReassignments``)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from kframe.core.kraft.context import KraftContext
from kframe.core.kraft.controller_result import RECORDS_MAX, ControllerResult, PartitionResult, RequestRefused
from kframe.core.kraft.replication.isr_changes import configured_kinds
from kframe.core.kraft.replication.partition_changes import TargetReplicas, plan_changes
from kframe.core.kraft.topics.assignments import check_assignment
from kframe.errors import ErrorCode
from kframe.model.arrays import Ragged
from kframe.model.kraft.ids import KraftElection
from kframe.model.kraft.record_versions import RecordAndVersion
from kframe.model.kraft.records import PartitionRecord
from kframe.model.kraft.views import partition_record


@dataclass(frozen=True, slots=True)
class RequestedReassignment:
    """The target replicas of a partition. None cancels its reassignment."""

    topic: str
    partition: int
    replicas: tuple[int, ...] | None = None


@dataclass(frozen=True, slots=True)
class OngoingReassignment:
    """A reassignment in progress."""

    topic: str
    partition: int
    replicas: tuple[int, ...]
    adding: tuple[int, ...]
    removing: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class _ReassignmentTarget:
    row: int
    kind: int
    isr: tuple[int, ...]
    replicas: tuple[int, ...]
    adding: tuple[int, ...]
    removing: tuple[int, ...]


def reassign_partitions(
    context: KraftContext, reassignments: Sequence[RequestedReassignment], *, allow_factor_change: bool = True
) -> ControllerResult[list[PartitionResult]]:
    """Start or cancel reassignments. The response is a list of PartitionResult, one for each of ``reassignments``.

    Each is decided from the stored state, and all records are atomic.
    """
    targets: list[_ReassignmentTarget] = []
    results = []
    for reassignment in reassignments:
        try:
            targets.append(_target(context, reassignment, allow_factor_change))
            results.append(PartitionResult(reassignment.topic, reassignment.partition))
        except RequestRefused as refusal:
            results.append(PartitionResult(reassignment.topic, reassignment.partition, refusal.error, refusal.message))
    records: list[RecordAndVersion] = []
    changes = iter(_change(context, targets))
    for index, result in enumerate(results):
        change = next(changes) if result.error is ErrorCode.NONE else None
        if change is not None and len(records) == RECORDS_MAX:
            message = f"The request has more than {RECORDS_MAX:,} changes."
            results[index] = PartitionResult(result.topic, result.partition, ErrorCode.UNKNOWN_SERVER_ERROR, message)
        elif change is not None:
            records.append(change)
    return ControllerResult(records, results, atomic=True)


def list_reassignments(
    context: KraftContext, topics: Sequence[tuple[str, Sequence[int]]] | None
) -> list[OngoingReassignment]:
    """The reassignments in progress of named partitions, or all."""
    metadata = context.metadata
    p = metadata.partitions
    if topics is None:
        rows = np.flatnonzero((p.adding_count > 0) | (p.removing_count > 0)).tolist()
    else:
        named = [metadata.row(topic, partition) for topic, partitions in topics for partition in partitions]
        rows = [row for row in named if row is not None and (p.adding_count[row] or p.removing_count[row])]
    ids_of = metadata.brokers.ids_of
    return [
        OngoingReassignment(
            metadata.topics.names[int(p.topic[row])],
            int(p.partition[row]),
            *(ids_of(p.list_of(name, row)) for name in ("replica", "adding", "removing")),
        )
        for row in rows
    ]


def _change(context: KraftContext, targets: Sequence[_ReassignmentTarget]) -> list[RecordAndVersion | None]:
    if not targets:
        return []
    metadata = context.metadata
    rows = np.array([target.row for target in targets], np.int32)
    indexes_of = metadata.brokers.indexes_of
    target_replicas = TargetReplicas(
        rows=rows,
        kinds=np.array([target.kind for target in targets], np.uint8),
        isr=Ragged.of([indexes_of(target.isr) for target in targets]),
        replicas=Ragged.of([indexes_of(target.replicas) for target in targets]),
        directories=Ragged.of([_directories(context, target) for target in targets]),
        adding=Ragged.of([indexes_of(target.adding) for target in targets]),
        removing=Ragged.of([indexes_of(target.removing) for target in targets]),
    )
    return plan_changes(context, target_replicas).records_by_row()


def _directories(context: KraftContext, target: _ReassignmentTarget) -> list[int]:
    """The stored directory of each replica, or the default directory of a new one."""
    p, brokers = context.metadata.partitions, context.metadata.brokers
    stored_replicas = brokers.ids_of(p.list_of("replica", target.row))
    stored = dict(zip(stored_replicas, p.list_of("directory", target.row), strict=True))
    return [stored[replica] if replica in stored else brokers.default_directory(replica) for replica in target.replicas]


def _target(
    context: KraftContext, reassignment: RequestedReassignment, allow_factor_change: bool
) -> _ReassignmentTarget:
    """The target of a request. Raises RequestRefused."""
    row = context.metadata.row(reassignment.topic, reassignment.partition)
    if row is None:
        message = f"Unable to find partition {reassignment.topic}-{reassignment.partition}."
        raise RequestRefused(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, message)
    partition = partition_record(context.metadata, row)
    if reassignment.replicas is None:
        return _cancelled(context, row, partition)
    replicas = reassignment.replicas
    check_assignment(context, replicas)
    if not allow_factor_change:
        _check_factor(partition, replicas)
    removing = tuple(sorted(set(partition.replicas) - set(replicas)))
    adding = tuple(sorted(set(replicas) - set(partition.replicas)))
    return _ReassignmentTarget(
        row=row,
        kind=KraftElection.ONLINE,
        isr=partition.isr,
        replicas=replicas + removing,
        adding=adding or partition.adding_replicas,
        removing=removing or partition.removing_replicas,
    )


def _cancelled(context: KraftContext, row: int, partition: PartitionRecord) -> _ReassignmentTarget:
    """The replicas and ISR without the adding replicas (Kafka ``PartitionReassignmentRevert``)."""
    if not (partition.adding_replicas or partition.removing_replicas):
        raise RequestRefused(ErrorCode.NO_REASSIGNMENT_IN_PROGRESS, "No partition reassignment is in progress.")
    replicas = tuple(replica for replica in partition.replicas if replica not in partition.adding_replicas)
    isr = tuple(member for member in partition.isr if member not in partition.adding_replicas)
    kind = int(configured_kinds(context, np.array([row], np.int32))[0])
    if not isr:
        if not replicas:
            message = "Invalid replica assignment: addingReplicas contains all replicas."
            raise RequestRefused(ErrorCode.INVALID_REPLICA_ASSIGNMENT, message)
        if kind != KraftElection.UNCLEAN:
            message = "Unable to revert the assignment because it would require an unclean leader election."
            raise RequestRefused(ErrorCode.INVALID_REPLICA_ASSIGNMENT, message)
        isr = replicas[:1]
    return _ReassignmentTarget(row, kind, isr, replicas, (), ())


def _check_factor(partition: PartitionRecord, replicas: tuple[int, ...]) -> None:
    current: tuple[int, ...] | set[int] = partition.replicas
    if partition.adding_replicas or partition.removing_replicas:
        current = {*partition.replicas, *partition.adding_replicas} - set(partition.removing_replicas)
    if len(current) != len(replicas):
        message = f"The replication factor is changed from {len(current)} to {len(replicas)}"
        raise RequestRefused(ErrorCode.INVALID_REPLICATION_FACTOR, message)
