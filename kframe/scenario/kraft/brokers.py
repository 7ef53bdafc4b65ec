"""The brokers of a KRaft scenario. They register, send heartbeats and follow the responses; they store no logs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from enum import Enum
from typing import Any, Protocol
from uuid import UUID

from kframe.core.kraft.brokers.broker_events import BrokerHeartbeat, BrokerHeartbeatReply
from kframe.core.kraft.brokers.registration import BrokerRegistrationRequest
from kframe.core.kraft.context import SUPPORTED_FEATURES
from kframe.core.kraft.controller_result import RequestRefused
from kframe.model.kraft.records import BrokerEndpoint, BrokerFeature
from kframe.scenario.kraft.arguments import BrokerProperties, Heartbeat
from kframe.scenario.kraft.names import FIRST_PORT, HOST, LISTENER, SymbolicNames


class BrokerRequests(Protocol):
    """The controller, as the brokers of a scenario see it. Requests raise RequestRefused."""

    @property
    def end_offset(self) -> int:
        """The end of the log that brokers have applied."""

    def contact_time_ns(self) -> int:
        """The time at which the next heartbeat is sent."""

    def register(self, request: BrokerRegistrationRequest, /) -> int:
        """Send a BrokerRegistration. Returns the broker epoch."""

    def heartbeat(self, request: BrokerHeartbeat, /) -> BrokerHeartbeatReply:
        """Send a BrokerHeartbeat."""


class ProcessState(Enum):
    """The state of a broker process."""

    STOPPED = "stopped"
    STARTING = "starting"
    RUNNING = "running"
    STOPPING = "stopping"


@dataclass(slots=True)
class HeartbeatingBroker:
    """A broker and its current process."""

    broker_id: int
    rack: str | None = None
    directories: list[str] = field(default_factory=lambda: ["a"])
    features: dict[str, tuple[int, int]] = field(default_factory=lambda: dict(SUPPORTED_FEATURES))
    incarnation: UUID | None = None
    incarnations: int = 0
    epoch: int = -1
    """The broker epoch of the last registration."""
    clean_epoch: int = -1
    """The broker epoch that a clean shutdown has stored, else -1."""
    state: ProcessState = ProcessState.STOPPED
    waits_for_session: bool = True
    """Whether a step that stops the broker lasts until its session has ended."""
    offline: list[str] = field(default_factory=list)
    cordoned: list[str] | None = None
    applied_offset: int | None = None
    """The offset that heartbeats report instead of the end of the log."""
    contact_ns: int | None = None
    """The time of the last heartbeat of a process that runs."""
    stopped_ns: int | None = None
    """The time of the last heartbeat, while the end of that session is awaited."""
    responses: list[dict[str, Any]] = field(default_factory=list)
    """The distinct responses to heartbeats since the shutdown began."""

    def configure(self, properties: BrokerProperties) -> None:
        """Set the properties that are not None."""
        self.rack = self.rack if properties.rack is None else properties.rack
        self.directories = properties.directories or self.directories
        for name, levels in properties.features.items():
            if levels is None:
                self.features.pop(name, None)
            else:
                self.features[name] = levels

    def stop(self, *, clean: bool = False, wait: bool = True) -> None:
        """End the process."""
        self.state, self.clean_epoch = ProcessState.STOPPED, self.epoch if clean else -1
        self.stopped_ns = self.contact_ns if wait else None
        self.contact_ns = None


def endpoints(broker_id: int) -> tuple[BrokerEndpoint, ...]:
    """The listener that a broker registers."""
    return (BrokerEndpoint(name=LISTENER, host=HOST, port=FIRST_PORT + broker_id, security_protocol=0),)


class ScenarioBrokers:
    """All brokers of a scenario."""

    def __init__(self, requests: BrokerRequests, names: SymbolicNames, cluster_id: str) -> None:
        self.by_id: dict[int, HeartbeatingBroker] = {}
        self.rounds = 0
        """Rounds of heartbeats so far."""
        self._requests, self._names, self._cluster_id = requests, names, cluster_id

    @property
    def end_offset(self) -> int:
        """The end of the log that brokers have applied."""
        return self._requests.end_offset

    def get(self, broker_id: int) -> HeartbeatingBroker:
        """A broker; a new one if the id is unknown."""
        return self.by_id.setdefault(broker_id, HeartbeatingBroker(broker_id))

    def configure(self, properties: BrokerProperties) -> HeartbeatingBroker:
        """A broker with these properties."""
        broker = self.get(properties.id)
        broker.configure(properties)
        for name in broker.directories:
            self.directory(broker, name)
        return broker

    def directory(self, broker: HeartbeatingBroker, name: str) -> UUID:
        """The id of a directory of a broker."""
        return self._names.directory(f"{broker.broker_id}.{name}")

    def start_process(self, broker: HeartbeatingBroker) -> None:
        """Start a new process, with an incarnation of its own."""
        broker.incarnation = self._names.new_id()
        broker.incarnations += 1
        broker.offline, broker.applied_offset, broker.contact_ns = [], None, None
        self._names.note_incarnation(broker.incarnation, f"{broker.broker_id}.{broker.incarnations}")

    def register(
        self,
        broker: HeartbeatingBroker,
        cluster_id: str | None = None,
        previous_epoch: int | None = None,
        directories: Sequence[UUID] | None = None,
    ) -> str:
        """Send one BrokerRegistration. Returns the name of the error."""
        online = [name for name in broker.directories if name not in broker.offline]
        assert broker.incarnation is not None
        request = BrokerRegistrationRequest(
            broker_id=broker.broker_id,
            cluster_id=self._cluster_id if cluster_id is None else cluster_id,
            incarnation_id=broker.incarnation,
            end_points=endpoints(broker.broker_id),
            features=tuple(
                BrokerFeature(name=name, min_supported_version=low, max_supported_version=high)
                for name, (low, high) in broker.features.items()
            ),
            rack=broker.rack,
            directories=tuple(
                directories if directories is not None else (self.directory(broker, name) for name in online)
            ),
            previous_broker_epoch=broker.clean_epoch if previous_epoch is None else previous_epoch,
        )
        try:
            broker.epoch = self._requests.register(request)
        except RequestRefused as refusal:
            return refusal.error.name
        return "NONE"

    def renew_contacts(self, now_ns: int) -> None:
        """A controller that has just become active gives every session its full length."""
        for broker in self.by_id.values():
            if broker.contact_ns is not None:
                broker.contact_ns = now_ns

    def send_round(self) -> None:
        """Send one heartbeat of each broker that runs, by id."""
        for broker_id in sorted(self.by_id):
            if self.by_id[broker_id].state is not ProcessState.STOPPED:
                self.heartbeat(self.by_id[broker_id])
        self.rounds += 1

    def heartbeat(self, broker: HeartbeatingBroker) -> dict[str, Any]:
        """Send one heartbeat and follow the response. Returns the response in the form of a trace."""
        response = self._send(broker, self._regular_heartbeat(broker))
        if "error" in response:
            broker.stop(wait=False)
        return response

    def heartbeat_with(self, broker: HeartbeatingBroker, options: Heartbeat) -> dict[str, Any]:
        """Send one heartbeat with other content; the state of the broker does not change."""
        regular = self._regular_heartbeat(broker)
        named: dict[str, Any] = {
            "want_fence": options.want_fence,
            "want_shut_down": options.want_shut_down,
            "broker_epoch": options.epoch,
            "metadata_offset": options.offset,
            "offline_directories": self._directories(broker, options.offline_directories),
            "cordoned_directories": self._directories(broker, options.cordoned_directories),
        }
        return self._send(broker, replace(regular, **{key: value for key, value in named.items() if value is not None}))

    def _directories(self, broker: HeartbeatingBroker, names: Sequence[str] | None) -> tuple[UUID, ...] | None:
        return None if names is None else tuple(self.directory(broker, name) for name in names)

    def _regular_heartbeat(self, broker: HeartbeatingBroker) -> BrokerHeartbeat:
        applied = broker.applied_offset
        return BrokerHeartbeat(
            broker_id=broker.broker_id,
            broker_epoch=broker.epoch,
            metadata_offset=self._requests.end_offset - 1 if applied is None else applied,
            want_fence=broker.state is ProcessState.STARTING,
            want_shut_down=broker.state is ProcessState.STOPPING,
            offline_directories=self._directories(broker, broker.offline) or (),
            cordoned_directories=self._directories(broker, broker.cordoned),
        )

    def _send(self, broker: HeartbeatingBroker, request: BrokerHeartbeat) -> dict[str, Any]:
        broker.contact_ns = self._requests.contact_time_ns()
        try:
            reply = self._requests.heartbeat(request)
        except RequestRefused as refusal:
            response: dict[str, Any] = {"error": refusal.error.name}
        else:
            response = {"caught_up": reply.is_caught_up, "fenced": reply.is_fenced, "shut_down": reply.should_shut_down}
        if not broker.responses or broker.responses[-1] != response:
            broker.responses.append(response)
        if response.get("shut_down") and broker.state is ProcessState.STOPPING:
            broker.stop(clean=True, wait=broker.waits_for_session)
        return response
