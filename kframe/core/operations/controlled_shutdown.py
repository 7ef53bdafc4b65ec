"""Controlled shutdown (Kafka 3.9 ``processControlledShutdown``)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from kframe.core.context import Context, Operation
from kframe.core.state_machines import (
    last_replica_hold,
    leader_election,
    partition_state_machine,
    replica_state_machine,
)
from kframe.errors import ErrorCode
from kframe.model.arrays import Int32
from kframe.model.events import ControlledShutdownRequested
from kframe.model.ids import NO_BROKER_EPOCH, NO_STATE, PartitionState, ReplicaState
from kframe.model.log_entries import Message

_NO_ROWS = np.empty(0, np.int32)


@dataclass(frozen=True, slots=True, eq=False)
class ControlledShutdownResponse:
    """The response. It is an error, or the rows with other replicas that the broker still leads."""

    error: ErrorCode
    remaining: Int32


def refused(error: ErrorCode) -> ControlledShutdownResponse:
    """The refusal of a request."""
    return ControlledShutdownResponse(error, _NO_ROWS)


def shut_down(context: Context, request: ControlledShutdownRequested) -> Operation[ControlledShutdownResponse]:
    """Elect other leaders of the partitions that the broker leads. Remove it from the ISRs that it follows.

    The broker counts as shutting down until it fails or the controller fails over, even if leaders remain. Partitions
    with one replica do not change and are not counted.
    """
    cluster = context.cluster
    brokers, p = cluster.brokers, cluster.partitions
    broker = brokers.find(request.broker_id)
    error = _refusal(context, request, broker)
    if error is not ErrorCode.NONE or broker is None:
        return refused(error)
    context.log.add(Message.BROKER_SHUTDOWN, broker=request.broker_id)
    brokers.shutting_down[broker] = 1
    replicas = replica_state_machine.replicas_on(context, context.mask(np.array([broker], np.int32)))
    rows = replicas.rows
    affected = (p.replica_count[rows] > 1) & (p.partition_epoch[rows] != NO_STATE) & ~cluster.is_deleting(rows)
    replicas = replicas.where(affected)
    led = p.leader[replicas.rows] == broker
    followed = replicas.where(~led)
    yield from partition_state_machine.transition(
        context, replicas.where(led).rows, PartitionState.ONLINE, leader_election.CONTROLLED_SHUTDOWN
    )
    batch = context.batch()
    batch.add_stop_replica(np.full(len(followed), broker, np.int32), followed.rows, delete=False)
    yield from context.send(batch)
    yield from replica_state_machine.transition(context, followed, ReplicaState.OFFLINE)
    remaining = _still_led(context, broker)
    last_replica_hold.on_shutdown_response(context, broker, granted=len(remaining) == 0)
    return ControlledShutdownResponse(ErrorCode.NONE, remaining)


def _still_led(context: Context, broker: int) -> Int32:
    """Rows with other replicas that the broker leads, assigned or not."""
    p = context.cluster.partitions
    rows = context.announced_rows()
    led: Int32 = rows[(p.leader[rows] == broker) & (p.replica_count[rows] > 1)]
    return led


def _refusal(context: Context, request: ControlledShutdownRequested, broker: int | None) -> ErrorCode:
    """Kafka 3.9's checks in its order. An unregistered broker with a broker epoch is an unexpected error in Kafka."""
    brokers = context.cluster.brokers
    registered = broker is not None and brokers.registered[broker] != 0
    if request.broker_epoch != NO_BROKER_EPOCH:
        if broker is None or not registered:
            return ErrorCode.UNKNOWN_SERVER_ERROR
        if request.broker_epoch < brokers.broker_epoch[broker]:
            current = int(brokers.broker_epoch[broker])
            context.log.add(
                Message.STALE_SHUTDOWN, broker=request.broker_id, epoch=request.broker_epoch, current=current
            )
            return ErrorCode.STALE_BROKER_EPOCH
    return ErrorCode.NONE if registered else ErrorCode.BROKER_NOT_AVAILABLE
