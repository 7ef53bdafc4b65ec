"""Notifications of brokers: ISR changes, log directory failures, and responses to requests."""

from __future__ import annotations

import numpy as np

from kframe.core.context import Context, Operation, ask
from kframe.core.event_log import names_of
from kframe.core.operations import membership, purgatory, unassigned_isr_members
from kframe.core.reassignment import offline_log_dirs, protocols
from kframe.core.state_machines import replica_state_machine
from kframe.core.state_machines.replica_state_machine import PartitionReplicas
from kframe.errors import ErrorCode
from kframe.model.arrays import Int32
from kframe.model.events import LeaderAndIsrResponseReceived, UpdateMetadataResponseReceived
from kframe.model.ids import ReplicaFlag, ReplicaState
from kframe.model.lists import without_values
from kframe.model.log_entries import Message
from kframe.ports.store_requests import DropNotifications, ReadIsrChanges, ReadLogDirEvents

_OFFLINE = np.uint8(ReplicaFlag.OFFLINE_DIR)


def isr_changes(context: Context) -> Operation[None]:
    """Leaders have changed ISRs in storage: read and announce them, and complete reassignments.

    Kafka 3.9 ``processIsrChangeNotification``; brokers before 2.7-IV2 use it instead of AlterPartition.
    """
    cluster = context.cluster
    notifications = yield from ask(ReadIsrChanges())
    named = {cluster.row(*partition) for partition in notifications.items} - {None}
    rows = np.array(sorted(row for row in named if row is not None), np.int32)
    if len(rows):
        yield from context.refresh(rows)
        registered = context.registered()
        yield from context.announce(registered, rows)
        yield from protocols.protocol_of(context).on_isr_change(context, rows)
        yield from unassigned_isr_members.correct_leaders(context, rows, context.cluster.partitions.lists("isr", rows))
    yield from ask(DropNotifications(notifications.paths))


def log_dir_events(context: Context) -> Operation[None]:
    """Log directories of brokers have failed: send them all their states; their responses name the failed replicas.

    Kafka 3.9 ``processLogDirEventNotification``.
    """
    cluster = context.cluster
    notifications = yield from ask(ReadLogDirEvents())
    brokers = [index for broker_id in notifications.items if (index := cluster.brokers.find(broker_id)) is not None]
    context.log.add(Message.LOG_DIR_FAILURE, brokers=tuple(notifications.items))
    chosen = context.mask(np.array(brokers, np.int32))
    yield from replica_state_machine.transition(
        context, replica_state_machine.replicas_on(context, chosen), ReplicaState.ONLINE
    )
    yield from ask(DropNotifications(notifications.paths))


def leader_and_isr_response_received(context: Context, response: LeaderAndIsrResponseReceived) -> Operation[None]:
    """Update offline log directories from a broker's response.

    Only newly offline replicas cause elections (Kafka 3.9 ``processLeaderAndIsrResponseReceived``). Responses of an
    earlier registration are ignored.
    """
    cluster = context.cluster
    broker = cluster.brokers.find(response.broker_id)
    if response.error is not ErrorCode.NONE:
        context.log.add(
            Message.RESPONSE_ERROR, error=response.error.name, api="LeaderAndIsr", broker=response.broker_id
        )
    if broker is None or response.error is not ErrorCode.NONE or not context.is_current(response):
        return
    errors = {cluster.row(*partition): error for partition, error in response.partition_errors}
    offline = _rows(
        [row for row, error in errors.items() if error is ErrorCode.KAFKA_STORAGE_ERROR and row is not None]
    )
    _forget_recovered(context, broker, response.rows, _rows([row for row in errors if row is not None]))
    if len(offline) == 0:
        return
    p = cluster.partitions
    replicas = replica_state_machine.replicas_of_broker(context, broker, offline)
    newly_offline = replicas.where(~p.are_flagged(replicas.slots(p), _OFFLINE))
    p.replica_status[newly_offline.slots(p)] |= _OFFLINE
    if len(newly_offline):
        names = names_of(cluster, newly_offline.rows)
        context.log.add(Message.REPLICAS_OFFLINE, partitions=names, broker=response.broker_id)
        yield from membership.on_replicas_offline(context, newly_offline)


def update_metadata_response_received(context: Context, response: UpdateMetadataResponseReceived) -> Operation[None]:
    """Record the batch that the broker has acknowledged, for delayed requests. An error has no other effect."""
    if response.error is not ErrorCode.NONE:
        context.log.add(
            Message.RESPONSE_ERROR, error=response.error.name, api="UpdateMetadata", broker=response.broker_id
        )
    if response.controller_epoch == context.controller_epoch:
        purgatory.on_metadata_response(context, response)
    yield from ()


def _forget_recovered(context: Context, broker: int, rows: Int32, in_error: Int32) -> None:
    """Replicas without an error in the response are not on an offline log directory."""
    p = context.cluster.partitions
    flagged = bool((p.replica_status & _OFFLINE).any())
    if not (flagged or context.term.offline_log_dirs):
        return  # the usual case, for up to a hundred thousand replicas
    recovered = without_values(rows, in_error).astype(np.int32)
    offline_log_dirs.forget_recovered(context, broker, recovered)
    if not flagged:
        return
    replicas: PartitionReplicas = replica_state_machine.replicas_of_broker(context, broker, recovered)
    p.replica_status[replicas.slots(p)] &= ~_OFFLINE


def _rows(rows: list[int]) -> Int32:
    return np.array(sorted(rows), np.int32)
