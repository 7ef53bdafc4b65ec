"""Runs a scenario on kframe's controller and records the trace: in memory, or in any storage.

Every step runs until idle: the queue is empty and every request is answered, unless a broker is silent.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import kframe
from kframe.core.controller import ControllerCore
from kframe.core.selectors.leader_selection import Selection
from kframe.embedded import EmbeddedBrokers, MemoryEnsemble, VirtualClock
from kframe.errors import ScenarioError
from kframe.model.cluster import PartitionView
from kframe.model.config import ControllerConfig
from kframe.model.elections import LeaderSelector
from kframe.model.events import Event
from kframe.model.ids import ElectionKind
from kframe.runtime.loop import ControllerLoop
from kframe.scenario import steps, trace
from kframe.scenario.cluster import build_cluster, registration
from kframe.scenario.format import Scenario, Step
from kframe.scenario.replication import BrokerModels, ReplicationFactory
from kframe.scenario.requests import Action
from kframe.scenario.storage import StorageFactory

#: The id of the controller of a scenario; no broker of a scenario has it.
CONTROLLER_ID = 1000
#: Time on the scenario's clock within which the controller must answer a client.
PATIENCE_SECONDS = 3
#: Defaults of scenarios: leaders move only where a step moves them.
DEFAULTS: dict[str, object] = {"auto.leader.rebalance.enable": False}


class ScenarioRunner:
    """One scenario with its storage, brokers, clock and controller."""

    def __init__(
        self,
        scenario: Scenario,
        selectors: Mapping[ElectionKind, LeaderSelector] | None = None,
        make_storage: StorageFactory = MemoryEnsemble.from_cluster,
        make_replication: ReplicationFactory | None = None,
    ) -> None:
        """Check every step and build the cluster; ``make_storage`` is called once, after the checks.
        ``make_replication`` makes the broker models of a scenario with ``brokers_replicate: true``.

        Raises ScenarioError, before any step runs, for a step that is malformed or not supported, and ConfigError for a
        configuration key.
        """
        self.scenario = scenario
        self._steps = [steps.build(scenario.source, position, step) for position, step in enumerate(scenario.steps)]
        waiting = [steps.build_waiting(scenario.source, step) for step in scenario.waiting]
        where, settings = f"{scenario.source}: config", DEFAULTS | dict(scenario.config)
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
        for action in waiting:
            action(self)
        self._follow()

    def play(self) -> dict[str, Any]:
        """The whole trace."""
        return {
            "schema": trace.SCHEMA,
            "scenario": self.scenario.name,
            "controller": f"kframe {kframe.__version__}",
            "steps": list(self.play_steps()),
        }

    def play_steps(self) -> Iterator[dict[str, Any]]:
        """Run step by step. Yield the trace entry of each step once the controller is idle."""
        for step, action in zip(self.scenario.steps, self._steps, strict=True):
            yield self.play_step(step, action)

    def play_step(self, step: Step, action: Action) -> dict[str, Any]:
        """Run one step until idle. Return its entry of the trace."""
        before = self.storage.stored()
        entries, topics = trace.stored_entries(before), trace.topic_names(before)
        self.brokers.take()
        response = action(self)
        self._follow()
        self.rest()
        after = self.storage.stored()
        return {
            "step": {step.kind: step.argument},
            "partitions": trace.stored_changes(entries, trace.stored_entries(after)),
            "topics_deleted": trace.topics_deleted(topics, trace.topic_names(after)),
            "requests": self.brokers.take(),
            "response": response,
        }

    def rest(self) -> None:
        """Let the controller handle all queued events, and replicating brokers send what is due now."""
        self.storage.settle()
        while self.loop.run_until_idle() or (self.replication is not None and self.replication.carry()):
            self.storage.settle()

    def _follow(self) -> None:
        if self.replication is not None:
            self.replication.follow()

    def call(self, event: Callable[[int], Event]) -> Any:
        """Send a request to the controller, as a client or broker does, and wait for its answer. ``event`` takes the
        token."""
        future = self.loop.submit(event)
        self.rest()
        if not future.done():
            self.clock.advance(PATIENCE_SECONDS, self.rest)
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
