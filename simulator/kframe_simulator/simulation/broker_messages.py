"""Requests that brokers send, as controllers and storage receive them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Any, Protocol

import numpy as np
from msgspec.structs import replace

from kframe.core.operations.alter_partition import AlterPartitionResponse
from kframe.model.events import AlterPartitionRequested, TopicPartition
from kframe_simulator.broker.messages import (
    EndTransaction,
    Fetch,
    FetchResponse,
    OffsetsForLeaderEpochResponse,
    Produce,
    Request,
)
from kframe_simulator.broker.outgoing import (
    AlterPartition,
    AlterPartitionResponseData,
    ControlledShutdown,
    ControlledShutdownResponseData,
    Message,
    Reply,
    WriteState,
    WriteStateResponse,
)
from kframe_simulator.replication import conversion
from kframe_simulator.simulation.cluster import BrokerView, SimulatedCluster
from kframe_simulator.simulation.controllers import ControllerProcess
from kframe_simulator.simulation.ensemble import SimEnsemble
from kframe_simulator.simulation.watch import Watch


class BrokerHost(SimulatedCluster, Protocol):
    """The simulation of a broker process, and what the process and the clients report to it."""

    @property
    def watch(self) -> Watch: ...
    @property
    def session_timeout_ms(self) -> float: ...

    def controller(self, controller_id: int) -> ControllerProcess | None: ...
    def record_step(self, kind: str, argument: Any) -> None: ...
    def delays_isr_write(self, key: TopicPartition, isr: tuple[int, ...], store: Callable[[], None]) -> bool: ...
    def on_shutdown_response(
        self, process: ControllerProcess, request: ControlledShutdown, response: ControlledShutdownResponseData
    ) -> None: ...
    def on_proposal_response(
        self, process: ControllerProcess, event: AlterPartitionRequested, response: AlterPartitionResponse
    ) -> None: ...
    def on_client_response(self, correlation: int, message: Message) -> None: ...
    def logs_touched(self, process: BrokerView, keys: Iterable[TopicPartition]) -> None: ...
    def log_dir_lost(self, process: BrokerView, keys: Iterable[TopicPartition]) -> None: ...


def about(message: Request | Reply | None) -> Iterable[TopicPartition]:
    """The partitions whose logs a message may change."""
    match message:
        case Fetch() | FetchResponse() | AlterPartitionResponseData() | OffsetsForLeaderEpochResponse():
            return message.partitions
        case Produce() | EndTransaction():
            return (message.partition,)
        case WriteStateResponse(stored=WriteState() as stored):
            return (stored.partition,)
    return ()


def ask_controller(
    simulation: BrokerHost,
    process: ControllerProcess,
    message: Any,
    respond: Callable[[Any], None],
    isr_epochs: Sequence[int] | None = None,
) -> None:
    """Deliver a broker's request to a controller process. The response is None if the process does not run.

    ``isr_epochs`` are the broker epochs of all proposed members, proposal after proposal, if the leader sends them
    (AlterPartition version 3).
    """
    if not process.running:
        respond(None)
        return
    controller = process.loop.controller
    if isinstance(message, AlterPartition):
        process.ask(*proposal(simulation, process, message, isr_epochs), respond)
    elif isinstance(message, ControlledShutdown):

        def read(response: Any) -> ControlledShutdownResponseData:
            converted = conversion.controlled_shutdown_reply(_cluster(controller), response)
            simulation.on_shutdown_response(process, message, converted)
            return converted

        process.ask(partial(conversion.controlled_shutdown_event, message), read, respond)


def proposal(
    simulation: BrokerHost, process: ControllerProcess, message: AlterPartition, isr_epochs: Sequence[int] | None = None
) -> tuple[Callable[[int], AlterPartitionRequested], Callable[[Any], AlterPartitionResponseData]]:
    """The controller event for a leader's proposals, and the function that converts its response."""
    sent: list[AlterPartitionRequested] = []

    def event(token: int) -> AlterPartitionRequested:
        epochs = None if isr_epochs is None else np.array(isr_epochs, np.int64)
        sent.append(replace(conversion.alter_partition_event(message, token), isr_epochs=epochs))
        return sent[0]

    def read(response: Any) -> AlterPartitionResponseData:
        simulation.on_proposal_response(process, sent[0], response)
        return conversion.alter_partition_reply(_cluster(process.loop.controller), message, response)

    return event, read


def _cluster(controller: Any) -> Any:
    return controller.cluster if controller.active else None


def write_state(ensemble: SimEnsemble, message: WriteState) -> WriteStateResponse:
    """Compare-and-set of a state, by a leader that writes its ISR itself."""
    row = ensemble.rows.get(message.partition)
    if row is None or row.partition_epoch < 0:
        return WriteStateResponse(False, None)
    written = row.partition_epoch == message.partition_epoch
    if written:
        topic, partition = message.partition
        ensemble.write_state(
            topic,
            partition,
            leader=message.leader,
            isr=message.isr,
            leader_epoch=message.leader_epoch,
            controller_epoch=message.controller_epoch,
            recovery=message.recovery,
        )
        row = ensemble.rows[message.partition]
    stored = WriteState(
        message.partition,
        row.leader,
        row.leader_epoch,
        row.isr,
        row.controller_epoch,
        row.recovery,
        row.partition_epoch,
    )
    return WriteStateResponse(written, stored)
