"""A response belongs to its own request."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from random import Random
from typing import Any, cast

import numpy as np

from kframe.model.events import StopReplicaResponseReceived
from kframe_simulator.broker.messages import ControlResponse, Stop, StopReplica
from kframe_simulator.replication.control_requests import ControlRequest
from kframe_simulator.simulation.network import Network
from kframe_simulator.simulation.scheduler import Scheduler
from kframe_simulator.simulation.transport import SimTransport, SimulatedChannel

BROKER = 1


class Simulation:
    """A network delay of 1 ms, and a broker that takes 60 ms for a response, except for row 0."""

    def __init__(self) -> None:
        self.scheduler = Scheduler()
        self.network = Network(self.scheduler, Random(0), (1.0, 1.0))
        self.notified: list[tuple[float, list[int]]] = []
        """When the controller got a response, and the rows in it."""
        self.transport = SimTransport(cast(Any, self), 1000, timeout_ms=100.0)
        self.transport.open(self._notified, lambda: True)

    def batch_sent(self, *_: Any) -> None: ...
    def request_queued(self, *_: Any) -> None: ...
    def channel_opened(self, *_: Any) -> None: ...
    def request_done(self, *_: Any) -> None: ...
    def request_sent(self, *_: Any) -> None: ...

    def deliver(self, _: int, request: ControlRequest, respond: Callable[[ControlResponse], None], *__: Any) -> None:
        self.scheduler.after(60.0 if request.rows[0] else 0.0, lambda: respond(ControlResponse()))

    def _notified(self, event: Any) -> None:
        assert isinstance(event, StopReplicaResponseReceived)
        self.notified.append((self.scheduler.now_ms, event.rows.tolist()))


def deletion(row: int) -> ControlRequest:
    message = StopReplica(1000, 1, 1, {("t", row): Stop(-2, True)})
    return ControlRequest(BROKER, 1, message, np.array([row], np.int32))


def test_late_response_is_not_matched_to_next_request() -> None:
    """Seed 2486: the response to a first attempt arrived while the process was paused. The process read it after the
    repeated request got its response, during the first attempt of the next request."""
    simulation = Simulation()
    simulation.transport.channels[BROKER] = SimulatedChannel(BROKER, 1, waiting=deque([deletion(0), deletion(1)]))
    simulation.transport.resume()
    simulation.scheduler.at(1.5, simulation.transport.pause)
    simulation.scheduler.at(110.0, simulation.transport.resume)
    while simulation.scheduler.next_ms() < float("inf"):
        simulation.scheduler.step()
    assert simulation.notified == [(112.0, [0]), (174.0, [1])]
