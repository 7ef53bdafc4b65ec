"""Leaders propose in-sync replica sets (AlterPartition; Kafka 3.9 ``tryProcessAlterPartition``)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from kframe.core.context import Context, Operation, stale
from kframe.core.event_log import names_of
from kframe.errors import ErrorCode
from kframe.model.changes import StateChange, StoredStates
from kframe.model.columns import Bool, Int16, Int32, Ragged
from kframe.model.events import AlterPartitionRequested
from kframe.model.ids import NO_BROKER_EPOCH, NO_STATE, RecoveryState
from kframe.model.lists import last_of_equal, members, same_lists
from kframe.model.log_entries import Message

#: From this version of AlterPartition on, topics are named by id and a replica that may not join has its own error.
_TOPIC_IDS_SINCE = 2
#: Brokers before 3.2 send version 0.
_REFUSED_SINCE = 1


@dataclass(frozen=True, slots=True, eq=False)
class AlterPartitionResponse:
    """The answer: a top-level error, or a code for each partition asked for and, where that is NONE, its state now.

    ``states`` stands beside ``codes``; rows that are not known are -1 and not found.
    """

    error: ErrorCode
    codes: Int16
    states: StoredStates | None = None


def refused(error: ErrorCode) -> AlterPartitionResponse:
    """The answer of a controller that does not look at the request."""
    return AlterPartitionResponse(error, np.empty(0, np.int16))


def accepted_rows(response: AlterPartitionResponse) -> Int32:
    """Rows whose ISR is as proposed."""
    if response.states is None:
        return np.empty(0, np.int32)
    accepted: Int32 = response.states.rows[response.codes == ErrorCode.NONE]
    return accepted


def proposed_isrs(context: Context, request: AlterPartitionRequested) -> tuple[Int32, Ragged]:
    """Rows whose leader, of the present leader epoch, has sent the request, and the ISRs (indexes) that it wants."""
    cluster = context.cluster
    p, sender = cluster.partitions, cluster.brokers.find(request.broker_id)
    rows, _ = _resolve(context, request)
    current = (rows >= 0) & (p.leader[rows] == sender) & (p.leader_epoch[rows] == request.leader_epoch)
    here = np.flatnonzero(current & (sender is not None))
    isr = Ragged(request.isr.offsets, cluster.brokers.look_up(request.isr.values))
    return rows[here], isr.take(here)


def alter_partitions(context: Context, request: AlterPartitionRequested) -> Operation[AlterPartitionResponse]:
    """Check every proposal, store those that pass, and tell all brokers of every partition named, also of refused ones.

    Leader epochs stay as they are: an ISR that a leader has asked for is no change of leadership.
    """
    cluster = context.cluster
    sender = cluster.brokers.find(request.broker_id)
    if sender is None or not cluster.brokers.registered[sender]:
        context.log.add(Message.ALTER_PARTITION_UNKNOWN_BROKER, broker=request.broker_id)
        return refused(ErrorCode.STALE_BROKER_EPOCH)
    if cluster.brokers.broker_epoch[sender] != request.broker_epoch:
        current = int(cluster.brokers.broker_epoch[sender])
        context.log.add(
            Message.ALTER_PARTITION_STALE_EPOCH, broker=request.broker_id, epoch=request.broker_epoch, current=current
        )
        return refused(ErrorCode.STALE_BROKER_EPOCH)
    rows, codes = _resolve(context, request)
    isr = Ragged(request.isr.offsets, cluster.brokers.look_up(request.isr.values))
    last = last_of_equal(np.where(rows >= 0, rows, -1 - np.arange(len(rows))))
    accepted = np.flatnonzero(_judge(context, request, sender, rows, isr, codes) & (last == np.arange(len(rows))))
    change = StateChange(
        rows[accepted], np.full(len(accepted), sender, np.int32), request.leader_epoch[accepted],
        request.recovery[accepted], isr.take(accepted), request.partition_epoch[accepted], context.controller_epoch,
    )  # fmt: skip
    result = yield from context.write(change)
    codes[accepted[stale(result)]] = ErrorCode.INVALID_UPDATE_VERSION
    codes[accepted[~result.accepted & ~stale(result)]] = ErrorCode.UNKNOWN_SERVER_ERROR
    codes = codes[last]
    context.log.add_partitions(Message.ISR_UPDATED, cluster, change.rows[result.accepted])
    _report_rejected(context, request.broker_id, rows, codes)
    told = np.unique(rows[rows >= 0])
    yield from context.announce(context.registered(), told)
    return AlterPartitionResponse(ErrorCode.NONE, codes, _states(context, rows, codes == ErrorCode.NONE))


def _report_rejected(context: Context, broker_id: int, rows: Int32, codes: Int16) -> None:
    """Report the partitions of the request that were refused, once for each error."""
    if not codes.any():
        return
    for code in np.unique(codes[(codes != 0) & (rows >= 0)]).tolist():
        names = names_of(context.cluster, rows[(codes == code) & (rows >= 0)])
        context.log.add(
            Message.ALTER_PARTITION_REJECTED, broker=broker_id, partitions=names, error=ErrorCode(code).name
        )


def _resolve(context: Context, request: AlterPartitionRequested) -> tuple[Int32, Int16]:
    """Row of each partition asked for, -1 where there is none, and its code so far. The last of equal names counts."""
    topics, indexes, unknown = context.cluster.topics, dict[str | bytes, int](), dict[str | bytes, ErrorCode]()
    for name in dict.fromkeys([name for name, _ in request.partitions]):
        index = topics.find(name) if isinstance(name, str) else topics.find_id(name)
        indexes[name] = -1 if index is None else index
        named = isinstance(name, str) or index is not None
        unknown[name] = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION if named else ErrorCode.UNKNOWN_TOPIC_ID
    topic = np.array([indexes[name] for name, _ in request.partitions], np.int32)
    partition = np.array([number for _, number in request.partitions], np.int32)
    rows, known = np.full(len(topic), -1, np.int32), topic >= 0
    rows[known] = topics.locate(topic[known], partition[known])
    codes = np.array([unknown[name] for name, _ in request.partitions], np.int16)
    codes[rows >= 0] = ErrorCode.NONE
    return rows, codes


def _judge(
    context: Context, request: AlterPartitionRequested, sender: int, rows: Int32, isr: Ragged, codes: Int16
) -> Bool:
    """Give every partition that has no code yet the first that applies; return which are to be stored."""
    p, brokers = context.cluster.partitions, context.cluster.brokers
    # Leaders of 2.7 and 2.8 that are refused for a member that is shutting down never propose an ISR for that partition
    # again until it is led anew (2.8 ``Partition.sendAlterIsrRequest``); controllers of their time took it. It is in
    # sync, and leaves the ISR when it goes.
    there = brokers.registered if request.version < _REFUSED_SINCE else brokers.live
    open_: Bool = codes == ErrorCode.NONE
    stateless = open_ & (p.partition_epoch[rows] == NO_STATE)
    older_leader = request.leader_epoch < p.leader_epoch[rows]
    newer = (request.partition_epoch > p.partition_epoch[rows]) | (request.leader_epoch > p.leader_epoch[rows])
    recovering = request.recovery == RecoveryState.RECOVERING
    repeated = (p.leader[rows] == sender) & (request.recovery == p.recovery[rows])
    repeated &= same_lists(isr, p.lists("isr", rows))
    ineligible = isr.any((isr.values < 0) | (np.append(there, 0)[isr.values] == 0) | _rebooted(context, request, isr))
    too_many = recovering & (isr.counts > 1)
    back = recovering & (p.recovery[rows] == RecoveryState.RECOVERED)
    not_eligible = (
        ErrorCode.INELIGIBLE_REPLICA if request.version >= _TOPIC_IDS_SINCE else ErrorCode.OPERATION_NOT_ATTEMPTED
    )
    verdicts = (
        (stateless, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        (newer, ErrorCode.NOT_CONTROLLER),
        (older_leader, ErrorCode.FENCED_LEADER_EPOCH),
        (repeated, ErrorCode.NONE),
        (request.partition_epoch < p.partition_epoch[rows], ErrorCode.INVALID_UPDATE_VERSION),
        (too_many | back | _unsound(context, sender, rows, isr), ErrorCode.INVALID_REQUEST),
        (ineligible, not_eligible),
    )
    for applies, code in verdicts:
        hit = open_ & applies
        codes[hit] = code
        open_ &= ~hit
    return open_


def _rebooted(context: Context, request: AlterPartitionRequested, isr: Ragged) -> Bool:
    """Beside the proposed members: whether the leader means an earlier registration of the broker than the present one.

    Such a replica may have come back empty. Kafka's ZooKeeper-mode controller does not look (``reliability.md`` X1);
    nor does kframe without ``kframe.alter.partition.check.epochs``.
    """
    if request.isr_epochs is None or not context.config["kframe.alter.partition.check.epochs"]:
        return np.zeros(len(isr.values), np.bool_)
    now = np.append(context.cluster.brokers.broker_epoch, NO_BROKER_EPOCH)[isr.values]
    other: Bool = (request.isr_epochs != NO_BROKER_EPOCH) & (request.isr_epochs != now)
    return other


def _unsound(context: Context, sender: int, rows: Int32, isr: Ragged) -> Bool:
    """With ``kframe.alter.partition.strict``: a sender that does not lead, an ISR that is empty, lacks the leader or
    names a broker that is not assigned. KRaft refuses all four, ZooKeeper-mode Kafka none (``reliability.md`` X2)."""
    p = context.cluster.partitions
    if not context.config["kframe.alter.partition.strict"]:
        return np.zeros(len(rows), np.bool_)
    strangers = isr.any(~members(isr, p.lists("replica", rows)))
    leaderless = ~isr.any(isr.values == sender)
    unsound: Bool = (p.leader[rows] != sender) | leaderless | strangers
    return unsound


def _states(context: Context, rows: Int32, known: Bool) -> StoredStates:
    p = context.cluster.partitions
    return StoredStates(
        rows, known, p.leaders_of(rows), p.leader_epoch[rows], p.controller_epoch[rows], p.partition_epoch[rows],
        p.recovery[rows], p.lists("isr", rows),
    )  # fmt: skip
