"""What brokers leave word of in storage: ISRs that leaders changed by themselves, and log directories that died."""

from __future__ import annotations

import numpy as np

from kframe.core.admin import purgatory
from kframe.core.brokers import membership, unassigned_isr_members
from kframe.core.context import Context, Operation, ask
from kframe.core.event_log import names_of
from kframe.core.reassignment import offline_log_dirs, protocols
from kframe.core.state_machines import replica_state_machine
from kframe.core.state_machines.replica_state_machine import Replicas
from kframe.errors import ErrorCode
from kframe.model.asks import DropNotifications, ReadIsrChanges, ReadLogDirEvents
from kframe.model.columns import Int32
from kframe.model.events import LeaderAndIsrAnswered, UpdateMetadataAnswered
from kframe.model.ids import ReplicaFlag, ReplicaState
from kframe.model.log_entries import Message

_OFFLINE = np.uint8(ReplicaFlag.OFFLINE_DIR)


def isr_changes(context: Context) -> Operation[None]:
    """Leaders have changed ISRs in storage: take them over, tell everybody, finish reassignments that waited for it.

    Kafka 3.9 ``processIsrChangeNotification``; brokers before 2.7-IV2 do this in place of AlterPartition.
    """
    cluster = context.cluster
    left = yield from ask(ReadIsrChanges())
    named = {cluster.row(*partition) for partition in left.items} - {None}
    rows = np.array(sorted(row for row in named if row is not None), np.int32)
    if len(rows):
        yield from context.refresh(rows)
        registered = context.registered()
        yield from context.announce(registered, rows)
        yield from protocols.protocol_of(context).on_isr_change(context, rows)
        yield from unassigned_isr_members.correct_leaders(context, rows, context.cluster.partitions.lists("isr", rows))
    yield from ask(DropNotifications(left.paths))


def log_dir_events(context: Context) -> Operation[None]:
    """Brokers have lost log directories: tell them everything they host; their answers say what is gone.

    Kafka 3.9 ``processLogDirEventNotification``.
    """
    cluster = context.cluster
    left = yield from ask(ReadLogDirEvents())
    brokers = [index for broker_id in left.items if (index := cluster.brokers.find(broker_id)) is not None]
    context.log.add(Message.LOG_DIR_FAILURE, brokers=tuple(left.items))
    chosen = context.mask(np.array(brokers, np.int32))
    yield from replica_state_machine.transition(
        context, replica_state_machine.replicas_on(context, chosen), ReplicaState.ONLINE
    )
    yield from ask(DropNotifications(left.paths))


def leader_and_isr_answered(context: Context, answer: LeaderAndIsrAnswered) -> Operation[None]:
    """Learn from a broker's answer which of its replicas are on dead log directories, and which are not any more.

    Only what has become offline has consequences (Kafka 3.9 ``processLeaderAndIsrResponseReceived``).
    """
    cluster = context.cluster
    broker = cluster.brokers.find(answer.broker_id)
    if answer.error is not ErrorCode.NONE:
        context.log.add(Message.RESPONSE_ERROR, error=answer.error.name, api="LeaderAndIsr", broker=answer.broker_id)
    if broker is None or answer.error is not ErrorCode.NONE or answer.controller_epoch != context.controller_epoch:
        return
    errors = {cluster.row(*partition): error for partition, error in answer.partition_errors}
    dead = _rows([row for row, error in errors.items() if error is ErrorCode.KAFKA_STORAGE_ERROR and row is not None])
    _forget_recovered(context, broker, answer.rows, _rows([row for row in errors if row is not None]))
    if len(dead) == 0:
        return
    p = cluster.partitions
    replicas = replica_state_machine.replicas_of_broker(context, broker, dead)
    fresh = replicas.where((p.replica_flags[replicas.slots(p)] & _OFFLINE) == 0)
    p.replica_flags[fresh.slots(p)] |= _OFFLINE
    if len(fresh):
        names = names_of(cluster, fresh.rows)
        context.log.add(Message.REPLICAS_OFFLINE, partitions=names, broker=answer.broker_id)
        yield from membership.on_replicas_offline(context, fresh)


def update_metadata_answered(context: Context, answer: UpdateMetadataAnswered) -> Operation[None]:
    """Record which batch the broker has answered, for callers that wait for it. An error has no further consequence."""
    if answer.error is not ErrorCode.NONE:
        context.log.add(Message.RESPONSE_ERROR, error=answer.error.name, api="UpdateMetadata", broker=answer.broker_id)
    if answer.controller_epoch == context.controller_epoch:
        purgatory.metadata_answered(context, answer)
    yield from ()


def _forget_recovered(context: Context, broker: int, answered: Int32, in_error: Int32) -> None:
    """Replicas answered for without any error are not on a dead log directory."""
    p = context.cluster.partitions
    flagged = bool((p.replica_flags & _OFFLINE).any())
    if not (flagged or context.term.offline_log_dirs):
        return  # nearly always, and a broker may answer for a hundred thousand replicas
    well = np.setdiff1d(answered, in_error).astype(np.int32)
    offline_log_dirs.healed(context, broker, well)
    if not flagged:
        return
    replicas: Replicas = replica_state_machine.replicas_of_broker(context, broker, well)
    p.replica_flags[replicas.slots(p)] &= ~_OFFLINE


def _rows(found: list[int]) -> Int32:
    return np.array(sorted(found), np.int32)
