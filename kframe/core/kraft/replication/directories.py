"""Log directories to which brokers assign replicas (Kafka 4.4 ``ReplicationControlManager``)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from uuid import UUID

import numpy as np

from kframe.core.kraft.context import KraftContext
from kframe.core.kraft.controller_result import ControllerResult, RequestRefused
from kframe.core.kraft.replication.isr_changes import remove_broker
from kframe.core.kraft.replication.partition_changes import TargetReplicas, plan_changes
from kframe.errors import ErrorCode
from kframe.model.arrays import Ragged
from kframe.model.kraft.ids import KraftElection, MetadataLevel
from kframe.model.kraft.record_versions import RecordAndVersion
from kframe.model.kraft.releases import ReleaseRule


@dataclass(frozen=True, slots=True)
class DirectoryAssignment:
    """A replica that its broker has put into a directory."""

    directory: UUID
    topic_id: UUID
    partition: int


@dataclass(frozen=True, slots=True)
class DirectoryAssignmentResult:
    """The result for one replica."""

    assignment: DirectoryAssignment
    error: ErrorCode


def assign_directories(
    context: KraftContext, broker_id: int, broker_epoch: int, assignments: Sequence[DirectoryAssignment]
) -> ControllerResult[list[DirectoryAssignmentResult]]:
    """Store the directories of a broker's replicas. A replica in an offline directory loses ISR and leadership.

    The response is a list of DirectoryAssignmentResult. Both changes of a replica are decided from the stored state.
    """
    if context.level < MetadataLevel.DIRECTORIES:
        raise RequestRefused(ErrorCode.UNSUPPORTED_VERSION, "Directory assignment is not supported yet.")
    registration = context.registration(broker_id, broker_epoch)
    results = [
        DirectoryAssignmentResult(assignment, _assignment_error(context, broker_id, assignment))
        for assignment in assignments
    ]
    valid = [result.assignment for result in results if result.error is ErrorCode.NONE]
    rows = [context.metadata.topics.row_by_id(assignment.topic_id, assignment.partition) for assignment in valid]
    stored = _store_directories(context, broker_id, [row for row in rows if row is not None], valid)
    offline = {
        row
        for row, assignment in zip(rows, valid, strict=True)
        if row is not None and not registration.has_online_directory(assignment.directory)
    }
    removed = remove_broker(context, broker_id, np.array(sorted(offline), np.int32))
    return ControllerResult([*stored, removed], results)


def _store_directories(
    context: KraftContext, broker_id: int, rows: list[int], assignments: Sequence[DirectoryAssignment]
) -> list[RecordAndVersion]:
    if not rows:
        return []
    metadata, broker = context.metadata, context.metadata.brokers.index_of(broker_id)
    indexes = np.array(rows, np.int32)
    replicas, directories = (metadata.partitions.lists(name, indexes) for name in ("replica", "directory"))
    new = np.array(metadata.directories.indexes_of(assignment.directory for assignment in assignments), np.int32)
    values = np.where(replicas.values == broker, new[replicas.owners], directories.values)
    kinds = np.full(len(rows), KraftElection.ONLINE, np.uint8)
    p = metadata.partitions
    has_elr = metadata.elr_enabled and bool((p.elr_count[indexes] | p.last_known_elr_count[indexes]).any())
    targets = TargetReplicas(
        rows=indexes,
        kinds=kinds,
        directories=Ragged(directories.offsets, values),
        ignores_elr=has_elr and not context.follows(ReleaseRule.ASSIGNMENT_KEEPS_ELR),
    )
    return plan_changes(context, targets).records()


def _assignment_error(context: KraftContext, broker_id: int, assignment: DirectoryAssignment) -> ErrorCode:
    if assignment.topic_id not in context.metadata.topics.index_by_id:
        return ErrorCode.UNKNOWN_TOPIC_ID
    row = context.metadata.topics.row_by_id(assignment.topic_id, assignment.partition)
    if row is None:
        return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    broker = context.metadata.brokers.find(broker_id)
    if broker not in context.metadata.partitions.list_of("replica", row):
        return ErrorCode.NOT_LEADER_OR_FOLLOWER
    return ErrorCode.NONE
