"""The transport of control requests in a simulation.

Each registration has a queue with one request in flight. The request is repeated unchanged until its response
arrives, while its sender may act.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Final, Protocol

from kframe.model.cluster import ClusterState
from kframe.model.events import Event, LeaderAndIsrResponseReceived, StopReplicaResponseReceived
from kframe.model.requests import ControlRequests
from kframe.ports.store import MayAct, Notify
from kframe.ports.transport import BrokerQueue
from kframe.runtime.samples import Samples
from kframe_simulator.broker.messages import ControlResponse
from kframe_simulator.replication.control_requests import ControlRequest, control_requests
from kframe_simulator.simulation.network import Network
from kframe_simulator.simulation.scheduler import Scheduler

#: The delay before a reconnection.
BACKOFF_MS: Final = 100.0


class RequestListener(Protocol):
    """The network of a simulation, and what a transport reports to it."""

    @property
    def scheduler(self) -> Scheduler: ...
    @property
    def network(self) -> Network: ...

    def batch_sent(self, controller_id: int, cluster: ClusterState, requests: ControlRequests) -> None: ...
    def channel_opened(self, controller_id: int, broker_id: int, open_epoch: int | None) -> None: ...
    def request_queued(self, controller_id: int, control_request: ControlRequest) -> None: ...
    def request_sent(self, controller_id: int, control_request: ControlRequest) -> None: ...
    def request_done(self, controller_id: int, control_request: ControlRequest) -> None: ...
    def deliver(
        self,
        controller_id: int,
        control_request: ControlRequest,
        respond: Callable[[ControlResponse], None],
        refuse: Callable[[], None],
    ) -> None: ...


@dataclass(slots=True, eq=False)
class SimulatedChannel:
    """The requests for one registration of a broker."""

    broker_id: int
    broker_epoch: int
    waiting: deque[ControlRequest] = field(default_factory=deque)
    in_flight: ControlRequest | None = None
    tries: int = 0
    is_open: bool = True
    late: bool = False
    """Whether an attempt waits for the process to continue."""
    times: Samples = field(default_factory=Samples)


class SimTransport:
    """Implements ``ports.Transport`` for one process of a simulation."""

    def __init__(self, simulation: RequestListener, controller_id: int, timeout_ms: float) -> None:
        """The connection breaks if a response takes longer than ``timeout_ms``."""
        self.controller_id = controller_id
        self.channels: dict[int, SimulatedChannel] = {}
        self.paused = False
        self.corrupted: set[int] = set()
        """Brokers whose next response is malformed."""
        self.repeated: set[int] = set()
        """Brokers whose next response event is repeated."""
        self.delayed: dict[int, float] = {}
        """Brokers whose next response event is late, and the delay in milliseconds."""
        self.past_responses: deque[Event] = deque(maxlen=12)
        """Earlier response events about replicas, for late repetitions."""
        self.past_successes: deque[LeaderAndIsrResponseReceived] = deque(maxlen=60)
        """Earlier LeaderAndIsr responses without errors, for late repetitions."""
        self.repeated_events: list[Event] = []
        """Repeated response events that no check has consumed."""
        self._simulation = simulation
        self._timeout_ms = timeout_ms
        self._notify: Notify | None = None
        self._may_act: MayAct = bool

    def open(self, notify: Notify, may_act: MayAct) -> None:
        """Prepare for sending."""
        self._notify, self._may_act = notify, may_act

    def close(self) -> None:
        """Drop every queue and connection."""
        for broker_id in tuple(self.channels):
            self._drop(broker_id)

    def connect(self, cluster: ClusterState, brokers: tuple[int, ...]) -> None:
        """These brokers have registered."""
        for index in brokers:
            broker_id = int(cluster.brokers.ids[index])
            known = self.channels.get(broker_id)
            self._simulation.channel_opened(
                self.controller_id, broker_id, None if known is None else known.broker_epoch
            )
            self._drop(broker_id)
            self.channels[broker_id] = SimulatedChannel(broker_id, int(cluster.brokers.broker_epoch[index]))

    def disconnect(self, cluster: ClusterState, brokers: tuple[int, ...]) -> None:
        """These brokers are no longer registered."""
        for broker_id in cluster.brokers.ids_of(brokers):
            self._drop(broker_id)

    def send(self, cluster: ClusterState, requests: ControlRequests) -> None:
        """Queue a batch with the current content of the columns."""
        self._simulation.batch_sent(self.controller_id, cluster, requests)
        for request in control_requests(cluster, requests):
            self._simulation.request_queued(self.controller_id, request)
            channel = self.channels.get(request.broker_id)
            if channel is not None:
                channel.waiting.append(request)
                self._pump(channel)

    @property
    def acknowledges(self) -> bool:
        """Responses to UpdateMetadata name the batch."""
        return True

    def queues(self) -> Mapping[int, BrokerQueue]:
        """The queue of each connected broker."""
        return {
            channel.broker_id: BrokerQueue(len(channel.waiting), channel.times) for channel in self.channels.values()
        }

    def stop(self) -> None:
        """The process has ended: requests in flight arrive, their responses are lost, and nothing else is sent."""
        self._notify = None
        self.close()

    def pause(self) -> None:
        """The process is paused."""
        self.paused = True

    def resume(self) -> None:
        """The process continues: do all due work."""
        self.paused = False
        for channel in list(self.channels.values()):
            if channel.late:
                channel.late = False
                self._try(channel)
            self._pump(channel)

    def _drop(self, broker_id: int) -> None:
        channel = self.channels.pop(broker_id, None)
        if channel is not None:
            channel.is_open = False
            channel.waiting.clear()
            channel.in_flight = None

    def _pump(self, channel: SimulatedChannel) -> None:
        while channel.is_open and channel.waiting and channel.in_flight is None and not self.paused:
            channel.in_flight, channel.tries = channel.waiting.popleft(), 0
            self._try(channel)

    def _try(self, channel: SimulatedChannel) -> None:
        """Send the request in flight, for the first time or again. Drop it if its sender may not act any more."""
        request = channel.in_flight
        if request is None or not channel.is_open:
            return
        if self.paused:
            channel.late = True
            return
        if not self._may_act():
            channel.in_flight = None
            self._simulation.request_done(self.controller_id, request)
            return
        channel.tries += 1
        attempt, simulation = channel.tries, self._simulation
        simulation.request_sent(self.controller_id, request)

        def respond(response: ControlResponse) -> None:
            simulation.network.deliver(
                request.broker_id,
                self.controller_id,
                lambda: self._on_response(channel, request, attempt, response),
            )

        def refuse() -> None:
            simulation.scheduler.after(BACKOFF_MS, lambda: self._broken(channel, request, attempt))

        def arrive() -> None:
            simulation.deliver(self.controller_id, request, respond, refuse)

        simulation.network.deliver(self.controller_id, request.broker_id, arrive)
        simulation.scheduler.after(self._timeout_ms, lambda: self._broken(channel, request, attempt))

    def _broken(self, channel: SimulatedChannel, request: ControlRequest, attempt: int) -> None:
        """Ignore any response to this attempt, and send the same request again."""
        if channel.in_flight is request and channel.tries == attempt:
            self._try(channel)
            self._pump(channel)

    def _on_response(
        self, channel: SimulatedChannel, request: ControlRequest, attempt: int, response: ControlResponse
    ) -> None:
        """Handle the response to this attempt. Attempts of different requests have the same numbers, so the request
        must match."""
        if channel.in_flight is not request or channel.tries != attempt or self._notify is None:
            return
        if self.paused:
            self._simulation.scheduler.after(50.0, lambda: self._on_response(channel, request, attempt, response))
            return
        if channel.broker_id in self.corrupted:
            self.corrupted.discard(channel.broker_id)
            self._broken(channel, request, attempt)
            return
        channel.in_flight = None
        self._simulation.request_done(self.controller_id, request)
        event = request.event(response)
        if event is not None:
            failed = isinstance(event, LeaderAndIsrResponseReceived) and event.partition_errors
            if failed or isinstance(event, StopReplicaResponseReceived):
                self.past_responses.append(event)
            elif isinstance(event, LeaderAndIsrResponseReceived):
                self.past_successes.append(event)
            if channel.broker_id in self.delayed:
                self._simulation.scheduler.after(self.delayed.pop(channel.broker_id), partial(self.deliver_late, event))
            else:
                self._notify(event)
            if channel.broker_id in self.repeated:
                self.repeated.discard(channel.broker_id)
                self.repeated_events.append(event)
                self._notify(event)
        self._pump(channel)

    def deliver_late(self, event: Event) -> None:
        """Deliver a response event that was read from the wire, even if its channel has closed since."""
        if self._notify is not None:
            self._notify(event)
