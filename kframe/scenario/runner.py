"""Runs a scenario on kframe's controller and records the trace: in memory, or in any storage.

Every step runs until idle: the queue is empty and every request is answered, unless a broker is silent.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import kframe
from kframe.embedded import MemoryEnsemble
from kframe.model.elections import LeaderSelector
from kframe.model.ids import ElectionKind
from kframe.ports.storage import StorageFactory
from kframe.scenario import steps, trace
from kframe.scenario.format import Scenario, Step
from kframe.scenario.state import Action, ReplicationFactory, ScenarioState


class ScenarioRunner(ScenarioState):
    """Builds the steps of a scenario and runs them."""

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
        self._steps = [steps.build(scenario.source, position, step) for position, step in enumerate(scenario.steps)]
        stored_requests = [steps.build_stored_request(scenario.source, step) for step in scenario.stored_requests]
        super().__init__(scenario, selectors, make_storage, make_replication)
        for action in stored_requests:
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
        self.run_until_idle()
        after = self.storage.stored()
        return {
            "step": {step.kind: step.argument},
            "partitions": trace.stored_changes(entries, trace.stored_entries(after)),
            "topics_deleted": trace.topics_deleted(topics, trace.topic_names(after)),
            "requests": self.brokers.take(),
            "response": response,
        }

    def _follow(self) -> None:
        if self.replication is not None:
            self.replication.follow()
