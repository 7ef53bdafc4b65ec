"""Runs a scenario on kframe's controller and records the trace: in memory, or in any storage.

Every step runs until idle: the queue is empty and every request is answered, unless a broker is silent.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

import kframe
from kframe.embedded import MemoryEnsemble
from kframe.embedded.describe import describe_partition
from kframe.model.cluster import ClusterState
from kframe.model.elections import LeaderSelector
from kframe.model.ids import ElectionKind
from kframe.ports.storage import StorageFactory
from kframe.scenario import steps
from kframe.scenario.format import Scenario
from kframe.scenario.state import ReplicationFactory, ScenarioState

SCHEMA: Final = "kframe.trace/v1"


class ScenarioRunner(ScenarioState):
    """Runs the steps of a scenario."""

    def __init__(
        self,
        scenario: Scenario,
        selectors: Mapping[ElectionKind, LeaderSelector] | None = None,
        make_storage: StorageFactory = MemoryEnsemble.from_cluster,
        make_replication: ReplicationFactory | None = None,
    ) -> None:
        """Build the cluster. ``make_replication`` makes the broker models of a scenario with ``brokers_replicate:
        true``.

        Raises ScenarioError for broker models or a stored request that are not possible, and ConfigError for a
        configuration key.
        """
        super().__init__(scenario, selectors, make_storage, make_replication)
        for request in scenario.stored_requests:
            steps.store_request(self, request)
        self._follow()

    def play(self) -> dict[str, Any]:
        """The whole trace."""
        return {
            "schema": SCHEMA,
            "scenario": self.scenario.name,
            "controller": f"kframe {kframe.__version__}",
            "steps": list(self.play_steps()),
        }

    def play_steps(self) -> Iterator[dict[str, Any]]:
        """Run step by step. Yield the trace entry of each step once the controller is idle."""
        yield from map(self._play_step, range(len(self.scenario.steps)))

    def _play_step(self, position: int) -> dict[str, Any]:
        """Run one step until idle. Return its entry of the trace."""
        step = self.scenario.steps[position]
        before = self.storage.stored()
        entries, topics = _stored_entries(before), _topic_names(before)
        self.brokers.take()
        response = steps.play(self, position, step)
        self._follow()
        self.run_until_idle()
        after = self.storage.stored()
        return {
            "step": {step.kind: step.argument},
            "partitions": {name: entry for name, entry in _stored_entries(after).items() if entries.get(name) != entry},
            "topics_deleted": sorted(topics - _topic_names(after)),
            "requests": self.brokers.take(),
            "response": response,
        }

    def _follow(self) -> None:
        if self.replication is not None:
            self.replication.follow()


def _stored_entries(cluster: ClusterState) -> dict[str, dict[str, Any]]:
    """``{topic-partition: entry}`` of all stored partitions, by topic and partition."""
    views = sorted(cluster, key=lambda view: (view.topic, view.partition))
    return {f"{view.topic}-{view.partition}": describe_partition(view) for view in views}


def _topic_names(cluster: ClusterState) -> frozenset[str]:
    """Names of the stored topics."""
    return frozenset(name for name in cluster.topics.names if name in cluster.topics)
