"""A broker's requests to the controller, and their faults in flight.

A proposal can be delayed until the added broker has failed, shut down or registered again. It can reach a process that
is no longer controller. Its response can be lost, after which the leader sends it again.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from functools import partial
from typing import Any, Final

from kframe_simulator.broker.outgoing import AlterPartition, ControlledShutdown, Outgoing
from kframe_simulator.simulation.broker_messages import BrokerHost, ask_controller
from kframe_simulator.simulation.cluster import BrokerView
from kframe_simulator.simulation.network import ENSEMBLE

#: The delay before a missing response counts as lost, and before a leader looks up an unknown controller again.
LOST_MS: Final = 2_000.0
UNREACHABLE_MS: Final = 500.0
#: The interval of checks on a delayed proposal, and its longest delay.
CHECK_INTERVAL_MS: Final = 20.0
DELAY_MAX_MS: Final = 8_000.0
#: The faults of the added broker while a proposal is delayed; with "self" the sender registers again.
FAULTS_OF_JOINING: Final = ("expire", "crash", "shut_down", "bounce", "self")

ResponseCallback = Callable[[Any], None]


class ControllerRequests:
    """The requests of one broker, across its restarts."""

    def __init__(self, simulation: BrokerHost, broker: BrokerView) -> None:
        self.past_proposals: deque[AlterPartition] = deque(maxlen=24)
        """Earlier AlterPartition requests that can be repeated."""
        self.past_shutdowns: deque[ControlledShutdown] = deque(maxlen=2)
        """Earlier ControlledShutdown requests that can be repeated."""
        self.lost_responses = 0
        """How many of the next AlterPartition responses are lost."""
        self.misdirected = 0
        """How many of the next proposals go to another process that believes itself controller, if there is one."""
        self.fault_of_joining: str | None = None
        """The fault of the broker that the next proposal adds, while the proposal is delayed."""
        self._simulation, self._broker = simulation, broker

    def end_faults(self) -> None:
        """End all faults."""
        self.lost_responses, self.misdirected, self.fault_of_joining = 0, 0, None

    def send(self, out: Outgoing, callback_from: Callable[[int, int], ResponseCallback]) -> None:
        """Send a request to the controller that the broker knows. ``callback_from`` returns the callback for the
        response of a process to a request."""
        process, message = self._simulation.controller(out.peer_id), out.message
        if isinstance(message, AlterPartition):
            self.past_proposals.append(message)
        elif isinstance(message, ControlledShutdown):
            self.past_shutdowns.append(message)
            self._simulation.record_step("controlled_shutdown", self._broker.broker_id)
        if process is None:
            self._simulation.scheduler.after(UNREACHABLE_MS, partial(callback_from(ENSEMBLE, out.number), None))
            return
        if isinstance(message, AlterPartition):
            self._propose(process.controller_id, message, callback_from, out.number)
        else:
            self._deliver(process.controller_id, message, callback_from(process.controller_id, out.number))

    def _propose(
        self,
        controller_id: int,
        message: AlterPartition,
        callback_from: Callable[[int, int], ResponseCallback],
        number: int,
    ) -> None:
        if self.misdirected:
            others = [
                controller
                for controller in self._simulation.controllers
                if controller.active and controller.controller_id != controller_id
            ]
            if others:
                self.misdirected -= 1
                controller_id = others[0].controller_id
        respond = callback_from(controller_id, number)
        if self.lost_responses:
            self.lost_responses -= 1
            respond = partial(self._lose, respond)
        joining = self._joining(message) if self.fault_of_joining else None
        if joining is None:
            self._deliver(controller_id, message, respond)
        else:
            self._hold(joining, controller_id, message, respond)

    def _lose(self, respond: ResponseCallback, _: object) -> None:
        """Lose a response. The leader times out."""
        self._simulation.scheduler.after(LOST_MS, partial(respond, None))

    def _joining(self, message: AlterPartition) -> BrokerView | None:
        """The broker that a proposal adds to an ISR."""
        rows = self._simulation.ensemble.rows
        for key, proposed in message.partitions.items():
            for member in proposed.isr:
                if key in rows and member not in rows[key].isr:
                    return self._simulation.brokers.get(member)
        return None

    def _hold(
        self, joining: BrokerView, controller_id: int, message: AlterPartition, respond: ResponseCallback
    ) -> None:
        """Delay a proposal until the controller has handled the fault of the added broker."""
        fault, self.fault_of_joining = self.fault_of_joining, None
        victim = self._broker if fault == "self" else joining
        before, until = victim.registration.broker_epoch, self._simulation.scheduler.now_ms + DELAY_MAX_MS
        epochs = self._epochs(message)
        match fault:
            case "crash":
                victim.kill()
            case "shut_down":
                victim.shut_down()
            case "bounce":
                victim.bounce()
            case _:
                victim.expire()

        def check() -> None:
            process = self._simulation.controller(controller_id)
            assert process is not None
            channel = process.transport.channels.get(victim.broker_id) if process.running else None
            known = channel is None or channel.broker_epoch != before
            known = known or victim.broker_id in self._simulation.watch.observed.leaving(process)
            if known or self._simulation.scheduler.now_ms > until:
                self._deliver(controller_id, message, respond, epochs)
            else:
                self._simulation.scheduler.after(CHECK_INTERVAL_MS, check)

        check()

    def _epochs(self, message: AlterPartition) -> list[int]:
        """The current broker epochs of all proposed members."""
        brokers = [
            self._simulation.brokers.get(member)
            for partition in message.partitions.values()
            for member in partition.isr
        ]
        return [-1 if broker is None else broker.registration.broker_epoch for broker in brokers]

    def _deliver(
        self, controller_id: int, message: Any, respond: ResponseCallback, epochs: list[int] | None = None
    ) -> None:
        simulation, process = self._simulation, self._simulation.controller(controller_id)
        assert process is not None
        arrive = partial(ask_controller, simulation, process, message, respond, epochs)
        if not simulation.network.deliver(self._broker.broker_id, controller_id, arrive):
            simulation.scheduler.after(LOST_MS, partial(respond, None))
