"""The parts of a running scenario: storage, brokers, clock and controller."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final, Protocol, TypeAlias

from kframe.core.controller import ControllerCore
from kframe.core.selectors.leader_selection import Selection
from kframe.embedded import EmbeddedBrokers, VirtualClock
from kframe.errors import ScenarioError
from kframe.model.cluster import PartitionView
from kframe.model.config import ControllerConfig
from kframe.model.elections import LeaderSelector
from kframe.model.events import Event, TopicPartition
from kframe.model.ids import ElectionKind
from kframe.ports.storage import StorageFactory
from kframe.runtime.loop import ControllerLoop
from kframe.scenario.cluster import build_cluster, registration
from kframe.scenario.format import Scenario

#: The id of the controller of a scenario. No broker of a scenario has it.
CONTROLLER_ID: Final = 1000
#: Time on the scenario's clock within which the controller must answer a client.
RESPONSE_TIMEOUT_SECONDS: Final = 3
#: Defaults of scenarios: leaders move only where a step moves them.
DEFAULTS: Final[Mapping[str, object]] = {"auto.leader.rebalance.enable": False}


class BrokerModels(Protocol):
    """The broker models of one scenario and the network between them."""

    @property
    def brokers(self) -> EmbeddedBrokers:
        """The controller's transport: brokers that replicate."""

    @property
    def controller_settings(self) -> dict[str, object]:
        """The scenario's settings without those for brokers only."""

    def follow(self) -> None:
        """Read registrations and topic settings again after a step."""

    def deliver(self) -> bool:
        """Deliver the messages that brokers send now. Return whether there were any. Raises ScenarioError if they never
        end."""

    def produce(self, partition: TopicPartition, records: int, acks: int) -> str:
        """Send records one after the other to the leader in storage. Return the first error by name, or NONE."""


#: Makes the broker models from the state, the scenario's settings, and the name of their source in errors.
ReplicationFactory: TypeAlias = Callable[["ScenarioState", Mapping[str, object], str], BrokerModels]


class ScenarioState:
    """One scenario with its storage, brokers, clock and controller."""

    def __init__(
        self,
        scenario: Scenario,
        selectors: Mapping[ElectionKind, LeaderSelector] | None,
        make_storage: StorageFactory,
        make_replication: ReplicationFactory | None,
    ) -> None:
        self.scenario = scenario
        where, settings = f"{scenario.source}: config", dict(DEFAULTS) | dict(scenario.config)
        self.clock = VirtualClock()
        self.replication: BrokerModels | None = None
        """The broker models of a scenario with ``brokers_replicate: true``, which deliver their messages."""
        self.brokers = EmbeddedBrokers(self.clock)
        if scenario.brokers_replicate:
            if make_replication is None:
                expected = "a plugin with broker models, such as kframe-simulator"
                raise ScenarioError(scenario.source, "brokers_replicate: true", expected)
            self.replication = make_replication(self, settings, where)
            self.brokers, settings = self.replication.brokers, self.replication.controller_settings
        config = ControllerConfig(settings, where)
        self.storage = make_storage(build_cluster(scenario))
        self.storage.register_brokers(registration(broker) for broker in scenario.brokers)
        self.registrations = {registration.broker_id: registration for registration in self.storage.registrations()}
        """The last registration of every broker that was ever registered."""
        controller = ControllerCore(CONTROLLER_ID, config, Selection(selectors or {}))
        self.loop = ControllerLoop(controller, self.storage.connect(), self.brokers, self.clock)

    def run_until_idle(self) -> None:
        """Let the controller handle all queued events, and replicating brokers send what is due now."""
        self.storage.settle()
        while self.loop.run_until_idle() or (self.replication is not None and self.replication.deliver()):
            self.storage.settle()

    def call(self, event: Callable[[int], Event]) -> Any:
        """Send a request to the controller, as a client or broker does, and wait for its response. ``event`` takes the
        token."""
        future = self.loop.submit(event)
        self.run_until_idle()
        if not future.done():
            self.clock.advance(RESPONSE_TIMEOUT_SECONDS, self.run_until_idle)
        return future.result(timeout=0)

    def stored(self, key: tuple[str, int]) -> PartitionView | None:
        """A partition as stored, None if it does not exist."""
        cluster = self.storage.stored()
        row = cluster.row(*key)
        return None if row is None else cluster.view(row)

    def topic_id(self, topic: str) -> bytes:
        """The id of a topic. An unknown id if there is no such topic."""
        topics = self.storage.stored().topics
        index = topics.find(topic)
        return bytes([255] * 16) if index is None else topics.ids[index].tobytes()
