"""Send the messages of a broker process to brokers, controllers, storage and clients."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, Final, Protocol

from kframe_simulator.broker.outgoing import (
    CloseSession,
    NotifyIsrChanges,
    NotifyLogDirFailure,
    Outgoing,
    Peer,
    Reply,
    WriteState,
)
from kframe_simulator.simulation.broker_messages import BrokerHost, about, write_state
from kframe_simulator.simulation.cluster import BrokerView
from kframe_simulator.simulation.controller_requests import ControllerRequests
from kframe_simulator.simulation.network import ENSEMBLE

#: The time after which a broker gets the reply None to a lost request.
LOST_MS: Final = 2_000.0


class Sender(BrokerView, Protocol):
    """The broker process that sends a message."""

    @property
    def paused(self) -> bool: ...
    @property
    def deferred(self) -> list[Callable[[], None]]: ...
    @property
    def requests(self) -> ControllerRequests: ...

    def flush(self) -> None: ...
    def close_session(self, in_order: bool) -> None: ...


def send(simulation: BrokerHost, process: Sender, out: Outgoing) -> None:
    """Send a message of the broker to its peer."""
    match out.peer:
        case Peer.BROKER:
            _send_to_broker(simulation, process, out)
        case Peer.CONTROLLER:
            process.requests.send(out, partial(_response_callback, simulation, process))
        case Peer.STORE:
            _send_to_storage(simulation, process, out)
        case Peer.CLIENT:
            simulation.on_client_response(out.peer_id, out.message)


def _response_callback(simulation: BrokerHost, process: Sender, source: int, number: int) -> Callable[[Any], None]:
    """A function that delivers the reply to request ``number``, or None if there will be none."""
    incarnation = process.incarnation

    def arrive(reply: Reply | None) -> None:
        if not process.running or process.incarnation != incarnation:
            return
        if process.paused:
            process.deferred.append(partial(arrive, reply))
            return
        process.model.on_response(number, reply, simulation.scheduler.now_ms)
        simulation.logs_touched(process, about(reply))
        process.flush()

    def respond(reply: Reply | None) -> None:
        if not simulation.network.deliver(source, process.broker_id, partial(arrive, reply)):
            simulation.scheduler.after(LOST_MS, partial(arrive, None))

    return respond


def _send_to_broker(simulation: BrokerHost, process: Sender, out: Outgoing) -> None:
    other, respond = (
        simulation.brokers.get(out.peer_id),
        _response_callback(simulation, process, out.peer_id, out.number),
    )
    message: Any = out.message
    if other is None or not simulation.network.deliver(
        process.broker_id, out.peer_id, lambda: other.ask(message, respond)
    ):
        simulation.scheduler.after(LOST_MS, partial(respond, None))


def _send_to_storage(simulation: BrokerHost, process: Sender, out: Outgoing) -> None:
    ensemble, message = simulation.ensemble, out.message
    match message:
        case WriteState():
            respond = _response_callback(simulation, process, ENSEMBLE, out.number)

            def store() -> None:
                respond(write_state(ensemble, message))

            if not simulation.delays_isr_write(message.partition, message.isr, store):
                simulation.network.deliver(process.broker_id, ENSEMBLE, store)
        case NotifyIsrChanges():
            ensemble.notify_isr_changes(message.partitions)
        case NotifyLogDirFailure():
            ensemble.notify_log_dir_event(process.broker_id)
        case CloseSession():
            process.close_session(message.in_order)
