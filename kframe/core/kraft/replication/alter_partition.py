"""Changes of ISRs that leaders propose (Kafka 4.4 ``ReplicationControlManager.alterPartition``)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from uuid import UUID

import numpy as np

from kframe.core.kraft.context import KraftContext
from kframe.core.kraft.controller_result import ControllerResult, RequestRefused
from kframe.core.kraft.replication.isr_changes import configured_kinds
from kframe.core.kraft.replication.partition_changes import TargetReplicas, plan_changes
from kframe.errors import ErrorCode
from kframe.model.arrays import Ragged
from kframe.model.ids import RecoveryState
from kframe.model.kraft.record_versions import RecordAndVersion
from kframe.model.kraft.records import NO_LEADER_CHANGE, NO_RECOVERY_CHANGE, PartitionChangeRecord
from kframe.model.kraft.views import partition_record

#: Broker epoch of an ISR member whose epoch the leader does not know.
UNKNOWN_EPOCH = -1


@dataclass(frozen=True, slots=True)
class KraftIsrProposal:
    """The ISR that a leader proposes: broker ids, each with the broker epoch that the leader knows."""

    topic_id: UUID
    partition: int
    isr: tuple[tuple[int, int], ...]
    leader_epoch: int
    partition_epoch: int
    recovery: int = RecoveryState.RECOVERED


@dataclass(frozen=True, slots=True)
class IsrResult:
    """The response for one partition. It is an error, or the resulting state."""

    topic_id: UUID
    partition: int
    error: ErrorCode = ErrorCode.NONE
    leader: int = -1
    isr: tuple[int, ...] = ()
    leader_epoch: int = -1
    partition_epoch: int = -1
    recovery: int = RecoveryState.RECOVERED


def alter_partitions(
    context: KraftContext, broker_id: int, broker_epoch: int, proposals: Sequence[KraftIsrProposal]
) -> ControllerResult[list[IsrResult]]:
    """Change ISRs as a leader proposes. The response is a list of IsrResult.

    Raises RequestRefused for a stale broker epoch, and for an unknown recovery state. Each proposal is decided from the
    stored state.
    """
    context.registration(broker_id, broker_epoch)
    errors = [_check(context, broker_id, proposal) for proposal in proposals]
    valid = [proposal for proposal, error in zip(proposals, errors, strict=True) if error is ErrorCode.NONE]
    changes = iter(_change(context, valid))
    results, records = [], []
    for proposal, error in zip(proposals, errors, strict=True):
        if error is not ErrorCode.NONE:
            results.append(IsrResult(proposal.topic_id, proposal.partition, error))
            continue
        change = next(changes)
        if change is not None:
            records.append(change)
        record = change.record if change is not None else None
        assert record is None or isinstance(record, PartitionChangeRecord)
        results.append(_result(context, broker_id, proposal, record))
    return ControllerResult(records, results)


def _change(context: KraftContext, proposals: Sequence[KraftIsrProposal]) -> list[RecordAndVersion | None]:
    if not proposals:
        return []
    row_by_id = context.metadata.topics.row_by_id
    rows = np.array([row_by_id(proposal.topic_id, proposal.partition) for proposal in proposals], np.int32)
    index_of = context.metadata.brokers.index_of
    targets = TargetReplicas(
        rows=rows,
        kinds=configured_kinds(context, rows),
        isr=Ragged.of([[index_of(broker_id) for broker_id, _ in proposal.isr] for proposal in proposals]),
        recovery=np.array([proposal.recovery for proposal in proposals], np.uint8),
    )
    return plan_changes(context, targets).records_by_row()


def _result(
    context: KraftContext, broker_id: int, proposal: KraftIsrProposal, change: PartitionChangeRecord | None
) -> IsrResult:
    """NEW_LEADER_ELECTED if another broker leads now, else the state after the change."""
    row = context.metadata.topics.row_by_id(proposal.topic_id, proposal.partition)
    assert row is not None
    state = partition_record(context.metadata, row)
    leader, leader_epoch, recovery, isr = state.leader, state.leader_epoch, state.leader_recovery_state, state.isr
    partition_epoch = state.partition_epoch
    if change is not None:
        partition_epoch += 1
        isr = isr if change.isr is None else change.isr
        if change.leader not in (NO_LEADER_CHANGE, broker_id):
            return IsrResult(proposal.topic_id, proposal.partition, ErrorCode.NEW_LEADER_ELECTED)
        if change.leader != NO_LEADER_CHANGE:
            leader, leader_epoch = change.leader, leader_epoch + 1
        if change.leader_recovery_state != NO_RECOVERY_CHANGE:
            recovery = change.leader_recovery_state
    return IsrResult(
        proposal.topic_id, proposal.partition, ErrorCode.NONE, leader, isr, leader_epoch, partition_epoch, recovery
    )


def _check(context: KraftContext, broker_id: int, proposal: KraftIsrProposal) -> ErrorCode:
    """The first error of a proposal (Kafka ``validateAlterPartitionData``)."""
    metadata = context.metadata
    if proposal.topic_id not in metadata.topics.index_by_id:
        return ErrorCode.UNKNOWN_TOPIC_ID
    row = context.metadata.topics.row_by_id(proposal.topic_id, proposal.partition)
    if row is None:
        return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    p = metadata.partitions
    leader_epoch, partition_epoch = int(p.leader_epoch[row]), int(p.partition_epoch[row])
    if proposal.leader_epoch > leader_epoch or proposal.partition_epoch > partition_epoch:
        return ErrorCode.NOT_CONTROLLER
    if proposal.leader_epoch < leader_epoch:
        return ErrorCode.FENCED_LEADER_EPOCH
    if metadata.brokers.find(broker_id) != int(p.leader[row]):
        return ErrorCode.INVALID_REQUEST
    if proposal.partition_epoch < partition_epoch:
        return ErrorCode.INVALID_UPDATE_VERSION
    return _check_isr(context, broker_id, proposal, row)


def _check_isr(context: KraftContext, broker_id: int, proposal: KraftIsrProposal, row: int) -> ErrorCode:
    p, brokers = context.metadata.partitions, context.metadata.brokers
    members = [member for member, _ in proposal.isr]
    replicas = brokers.ids_of(p.list_of("replica", row))
    if len(set(members)) != len(members) or not set(members) <= set(replicas) or broker_id not in members:
        return ErrorCode.INVALID_REQUEST
    if proposal.recovery not in tuple(RecoveryState):
        message = f"Value {proposal.recovery} is not a valid leader recovery state."
        raise RequestRefused(ErrorCode.UNKNOWN_SERVER_ERROR, message)
    if proposal.recovery == RecoveryState.RECOVERING and (len(members) > 1 or not p.recovery[row]):
        return ErrorCode.INVALID_REQUEST
    for member, member_epoch in proposal.isr:
        registration = brokers.registrations.get(member)
        if registration is None or not registration.is_active:
            return ErrorCode.INELIGIBLE_REPLICA
        if member_epoch not in (UNKNOWN_EPOCH, registration.broker_epoch):
            return ErrorCode.INELIGIBLE_REPLICA
    return ErrorCode.NONE
