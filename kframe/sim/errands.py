"""What brokers send of themselves, as those see it who get it: controllers and storage."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from typing import TYPE_CHECKING, Any, Protocol

from kframe.broker.messages import (
    EndTransaction,
    Fetch,
    FetchResponse,
    OffsetsForLeaderEpochResponse,
    Produce,
    Request,
)
from kframe.broker.outgoing import (
    AlterPartition,
    AlterPartitionResponse,
    ControlledShutdown,
    ControlledShutdownResponse,
    Reply,
    WriteState,
    WriteStateResponse,
)
from kframe.embedded import orders
from kframe.model.events import TopicPartition
from kframe.sim.ensemble import SimEnsemble

if TYPE_CHECKING:
    from kframe.sim.controllers import ControllerProcess


def about(message: Request | Reply | None) -> Iterable[TopicPartition]:
    """The partitions whose logs a message may change."""
    match message:
        case Fetch() | FetchResponse() | AlterPartitionResponse() | OffsetsForLeaderEpochResponse():
            return message.partitions
        case Produce() | EndTransaction():
            return (message.partition,)
        case WriteStateResponse(stored=WriteState() as stored):
            return (stored.partition,)
    return ()


class Onlooker(Protocol):
    """Who sees what becomes of them."""

    def shutdown_answered(
        self, process: ControllerProcess, asked: ControlledShutdown, response: ControlledShutdownResponse
    ) -> None:
        """A controller has answered a broker that wants to stop."""


def ask_controller(onlooker: Onlooker, process: ControllerProcess, message: Any, answer: Callable[[Any], None]) -> None:
    """A broker's request arrives at a controller's process, or finds nobody."""
    if not process.running:
        answer(None)
        return
    controller = process.loop.controller
    if isinstance(message, AlterPartition):
        process.ask(
            partial(orders.alter_partition_event, message),
            lambda response: orders.alter_partition_reply(_cluster(controller), message, response),
            answer,
        )
    elif isinstance(message, ControlledShutdown):

        def read(response: Any) -> ControlledShutdownResponse:
            told = orders.controlled_shutdown_reply(_cluster(controller), response)
            onlooker.shutdown_answered(process, message, told)
            return told

        process.ask(partial(orders.controlled_shutdown_event, message), read, answer)


def _cluster(controller: Any) -> Any:
    return controller.cluster if controller.active else None


def write_state(ensemble: SimEnsemble, message: WriteState) -> WriteStateResponse:
    """Compare and set, as a leader does that writes its ISR itself."""
    row = ensemble.rows.get(message.partition)
    if row is None or row.partition_epoch < 0:
        return WriteStateResponse(False, None)
    written = row.partition_epoch == message.partition_epoch
    if written:
        topic, partition = message.partition
        ensemble.write_state(
            topic, partition, leader=message.leader, isr=message.isr, leader_epoch=message.leader_epoch,
            controller_epoch=message.controller_epoch, recovery=message.recovery,
        )  # fmt: skip
        row = ensemble.rows[message.partition]
    stored = WriteState(
        message.partition, row.leader, row.leader_epoch, row.isr, row.controller_epoch, row.recovery,
        row.partition_epoch,
    )  # fmt: skip
    return WriteStateResponse(written, stored)
