"""ISRs that leaders propose (AlterPartition; Kafka 3.9 ``tryProcessAlterPartition``)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from kframe import kernels
from kframe.core.context import Context, Operation, stale
from kframe.core.event_log import names_of
from kframe.errors import ErrorCode
from kframe.model.arrays import Bool, Int16, Int32, Ragged
from kframe.model.changes import StateChange, StoredStates
from kframe.model.events import AlterPartitionRequested
from kframe.model.ids import NO_BROKER_EPOCH, ProposalCheck
from kframe.model.lists import distinct_values, last_of_equal, members
from kframe.model.log_entries import Message

#: The first version of AlterPartition with topic ids and INELIGIBLE_REPLICA.
_TOPIC_IDS_SINCE = 2
#: Brokers before 3.2 send version 0.
_REFUSED_SINCE = 1
#: A leader that gets one of these codes proposes nothing before it gets a new leader epoch.
_UNKNOWN = (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.UNKNOWN_TOPIC_ID)


@dataclass(frozen=True, slots=True, eq=False)
class AlterPartitionResponse:
    """The response: a top-level error, or a code for each requested partition and its state where the code is NONE.

    ``states`` and ``codes`` have the same order; unknown rows are -1 and not found.
    """

    error: ErrorCode
    codes: Int16
    states: StoredStates | None = None


def refused(error: ErrorCode) -> AlterPartitionResponse:
    """The refusal of a request."""
    return AlterPartitionResponse(error, np.empty(0, np.int16))


def accepted_rows(response: AlterPartitionResponse) -> Int32:
    """Rows whose ISR is the proposed one."""
    if response.states is None:
        return np.empty(0, np.int32)
    accepted: Int32 = response.states.rows[response.codes == ErrorCode.NONE]
    return accepted


def proposed_isrs(context: Context, request: AlterPartitionRequested) -> tuple[Int32, Ragged]:
    """Rows whose leader sent the request with the present leader epoch. Also the ISRs (indexes) that it proposes."""
    cluster = context.cluster
    p, sender = cluster.partitions, cluster.brokers.find(request.broker_id)
    rows, _ = _resolve(context, request)
    current = (rows >= 0) & (p.leader[rows] == sender) & (p.leader_epoch[rows] == request.leader_epoch)
    selected = np.flatnonzero(current & (sender is not None))
    isr = Ragged(request.isr.offsets, cluster.brokers.look_up(request.isr.values))
    return rows[selected], isr.take(selected)


def alter_partitions(context: Context, request: AlterPartitionRequested) -> Operation[AlterPartitionResponse]:
    """Validate proposals, store the accepted ones, and announce every requested partition, even refused ones.

    Leader epochs do not change. Before a partition is refused as unknown, storage confirms the role, because another
    controller may have created it.
    """
    cluster = context.cluster
    sender = _sender(context, request)
    if sender is None:
        return refused(ErrorCode.STALE_BROKER_EPOCH)
    rows, codes = _resolve(context, request)
    isr = Ragged(request.isr.offsets, cluster.brokers.look_up(request.isr.values))
    proposed = StateChange(
        rows,
        np.full(len(rows), sender, np.int32),
        np.ascontiguousarray(request.leader_epoch),
        np.ascontiguousarray(request.recovery),
        isr,
        np.ascontiguousarray(request.partition_epoch),
        context.controller_epoch,
    )
    known, positions = rows >= 0, np.arange(len(rows), dtype=np.int32)
    last = last_of_equal(rows if known.all() else np.where(known, rows, -1 - positions))
    accepted = np.flatnonzero(_validate(context, request, sender, proposed, codes) & (last == positions))
    if codes.any() and np.isin(codes, _UNKNOWN).any():
        yield from context.confirm_role()
    change = proposed if len(accepted) == len(rows) else proposed.take(accepted)
    result = yield from context.write(change)
    stored = result.accepted
    if not stored.all():
        codes[accepted[stale(result)]] = ErrorCode.INVALID_UPDATE_VERSION
        codes[accepted[~stored & ~stale(result)]] = ErrorCode.UNKNOWN_SERVER_ERROR
    if codes.any():
        codes = codes[last]
    context.log.add_partitions(Message.ISR_UPDATED, cluster, change.rows[stored])
    _report_rejected(context, request.broker_id, rows, codes)
    named = distinct_values(rows if known.all() else rows[known])
    yield from context.announce(context.registered(), named)
    if len(change) == len(rows) and stored.all():
        return AlterPartitionResponse(ErrorCode.NONE, codes, change.stored_at(result.partition_epoch))
    return AlterPartitionResponse(ErrorCode.NONE, codes, _states(context, rows, codes == ErrorCode.NONE))


def _sender(context: Context, request: AlterPartitionRequested) -> int | None:
    """The index of the broker that sent the request; None, logged, unless it is registered under the epoch it names."""
    brokers = context.cluster.brokers
    sender = brokers.find(request.broker_id)
    if sender is None or not brokers.registered[sender]:
        context.log.add(Message.ALTER_PARTITION_UNKNOWN_BROKER, broker=request.broker_id)
        return None
    current = int(brokers.broker_epoch[sender])
    if current != request.broker_epoch:
        context.log.add(
            Message.ALTER_PARTITION_STALE_EPOCH, broker=request.broker_id, epoch=request.broker_epoch, current=current
        )
        return None
    return sender


def _report_rejected(context: Context, broker_id: int, rows: Int32, codes: Int16) -> None:
    """Log the refused partitions of the request, one entry per error."""
    if not codes.any():
        return
    for code in distinct_values(codes[(codes != 0) & (rows >= 0)]).tolist():
        names = names_of(context.cluster, rows[(codes == code) & (rows >= 0)])
        context.log.add(
            Message.ALTER_PARTITION_REJECTED, broker=broker_id, partitions=names, error=ErrorCode(code).name
        )


def _resolve(context: Context, request: AlterPartitionRequested) -> tuple[Int32, Int16]:
    """The row of each requested partition, -1 if unknown. Also its code so far."""
    topics, requested = context.cluster.topics, request.partitions
    topic, partition = topics.find_all(requested.topics)[requested.topic], requested.partition
    codes, known = np.full(len(topic), ErrorCode.NONE, np.int16), topic >= 0
    if known.all():
        rows = topics.locate(topic, partition)
        codes[rows < 0] = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        return rows, codes
    rows = np.full(len(topic), -1, np.int32)
    rows[known] = topics.locate(topic[known], partition[known])
    codes[rows < 0] = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    if isinstance(requested.topics[0], bytes):
        codes[~known] = ErrorCode.UNKNOWN_TOPIC_ID
    return rows, codes


def _validate(
    context: Context, request: AlterPartitionRequested, sender: int, proposed: StateChange, codes: Int16
) -> Bool:
    """Set the first applicable code of every partition without one. Return the mask of partitions to store."""
    p, brokers, rows, isr = context.cluster.partitions, context.cluster.brokers, proposed.rows, proposed.isr
    check = np.empty(len(rows), np.uint8)
    kernels.check_isr_proposals(
        rows,
        sender,
        proposed.leader_epoch,
        proposed.expected,
        proposed.recovery,
        isr.offsets,
        isr.values,
        _is_reregistered(context, request, isr).view(np.uint8),
        _is_malformed(context, sender, rows, isr).view(np.uint8),
        # Leaders of 2.7 and 2.8 whose proposal is refused for a member that is shutting down propose no other ISR until
        # the next election (2.8 ``Partition.sendAlterIsrRequest``). Controllers of those versions accept it.
        brokers.registered if request.version < _REFUSED_SINCE else brokers.live,
        p.slot_start,
        p.isr_count,
        p.isr,
        p.leader,
        p.leader_epoch,
        p.partition_epoch,
        p.status,
        check,
    )
    undecided: Bool = codes == ErrorCode.NONE
    if check.any():
        failed = undecided & (check != ProposalCheck.VALID)
        codes[failed] = _codes(request.version)[check[failed]]
    stored: Bool = undecided & (check == ProposalCheck.VALID)
    return stored


def _codes(version: int) -> Int16:
    """The error code of each ProposalCheck in this version of AlterPartition."""
    codes = {
        ProposalCheck.STATELESS: ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ProposalCheck.NEWER_EPOCH: ErrorCode.NOT_CONTROLLER,
        ProposalCheck.OLDER_LEADER_EPOCH: ErrorCode.FENCED_LEADER_EPOCH,
        ProposalCheck.OLDER_PARTITION_EPOCH: ErrorCode.INVALID_UPDATE_VERSION,
        ProposalCheck.MALFORMED: ErrorCode.INVALID_REQUEST,
        ProposalCheck.INELIGIBLE_MEMBER: (
            ErrorCode.INELIGIBLE_REPLICA if version >= _TOPIC_IDS_SINCE else ErrorCode.OPERATION_NOT_ATTEMPTED
        ),
    }
    return np.array([codes.get(check, ErrorCode.NONE) for check in ProposalCheck], np.int16)


def _is_reregistered(context: Context, request: AlterPartitionRequested, isr: Ragged) -> Bool:
    """For each proposed member, whether the leader names another broker epoch than the present one.

    Such a replica may have come back empty. Kafka's ZooKeeper-mode controller does not check it. This one does with
    ``kframe.alter.partition.check.epochs``.
    """
    if request.isr_epochs is None or not context.config["kframe.alter.partition.check.epochs"]:
        return np.zeros(len(isr.values), np.bool_)
    present = np.append(context.cluster.brokers.broker_epoch, NO_BROKER_EPOCH)[isr.values]
    rebooted: Bool = (request.isr_epochs != NO_BROKER_EPOCH) & (request.isr_epochs != present)
    return rebooted


def _is_malformed(context: Context, sender: int, rows: Int32, isr: Ragged) -> Bool:
    """With ``kframe.alter.partition.strict``, whether KRaft would refuse the proposal, unlike ZooKeeper-mode Kafka.

    The sender does not lead, or the ISR is empty, lacks the leader or has an unassigned broker.
    """
    p = context.cluster.partitions
    if not context.config["kframe.alter.partition.strict"]:
        return np.zeros(len(rows), np.bool_)
    unassigned = isr.any(~members(isr, p.lists("replica", rows)))
    leaderless = ~isr.any(isr.values == sender)
    malformed: Bool = (p.leader[rows] != sender) | leaderless | unassigned
    return malformed


def _states(context: Context, rows: Int32, known: Bool) -> StoredStates:
    p = context.cluster.partitions
    return StoredStates(
        rows,
        known,
        p.leaders_of(rows),
        p.leader_epoch[rows],
        p.controller_epochs_of(rows),
        p.partition_epoch[rows],
        p.recovery_of(rows),
        p.lists("isr", rows),
    )
