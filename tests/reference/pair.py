"""kframe and the reference model side by side: the same steps, and every difference."""

from __future__ import annotations

import json
from collections.abc import Mapping
from importlib import import_module
from typing import Any

import numpy as np
import yaml

from kframe.embedded import MemoryEnsemble
from kframe.embedded.layout import DELETE_TOPICS, PREFERRED_ELECTION, REASSIGN_PARTITIONS
from kframe.model.cluster import ClusterState
from kframe.model.ids import PartitionState, ReplicaState
from kframe.scenario import steps
from kframe.scenario.format import Step, parse_scenario
from kframe.scenario.runner import ScenarioRunner
from tests.reference import invariants
from tests.reference.context import GONE, INELIGIBLE, NEW, OFFLINE, ONLINE, STARTED, SUCCESSFUL
from tests.reference.facts import Entry, Key, name_of
from tests.reference.model import Reference

#: The comparison of traces is a tool of its own, without types.
Comparison: Any = import_module("tests.golden.compare").Comparison

PARTITION_STATES = {
    PartitionState.NEW: NEW,
    PartitionState.ONLINE: ONLINE,
    PartitionState.OFFLINE: OFFLINE,
    PartitionState.NON_EXISTENT: GONE,
}
REPLICA_STATES = {
    ReplicaState.NEW: NEW,
    ReplicaState.ONLINE: ONLINE,
    ReplicaState.OFFLINE: OFFLINE,
    ReplicaState.DELETION_STARTED: STARTED,
    ReplicaState.DELETION_SUCCESSFUL: SUCCESSFUL,
    ReplicaState.DELETION_INELIGIBLE: INELIGIBLE,
    ReplicaState.NON_EXISTENT: GONE,
}


class Pair:
    """One scenario in two worlds. ``take`` plays a step in both and returns what differs."""

    def __init__(self, scenario: Mapping[str, Any]) -> None:
        self.scenario = json.loads(json.dumps({**scenario, "steps": []}))
        self.model = Reference(self.scenario, remembers_deleted=False)
        beginning = {**self.scenario, "steps": [{"elect": {}}]}
        scenario_read = parse_scenario(yaml.safe_dump(beginning), "history")
        self.runner = ScenarioRunner(scenario_read, make_storage=self._make_storage)
        self.model.controller.order = lambda broker: self.runner.loop.controller.cluster.brokers.find(broker) or 0
        self._session = self.ensemble.records.open_session(lambda *_: None)
        self._comparison = Comparison({"scenario": "", "steps": []}, {"scenario": "", "steps": []}, strict=True)
        self._laws = invariants.Laws(self.model.storage.partitions(), self.scenario.get("config") or {})

    def _make_storage(self, cluster: ClusterState) -> MemoryEnsemble:
        self.ensemble = MemoryEnsemble.from_cluster(cluster)
        return self.ensemble

    def take(self, step: Mapping[str, Any]) -> list[str]:
        played: Entry = json.loads(json.dumps(step))
        own = self._take(played)
        self.scenario["steps"].append(played)
        expected = self.model.take(played)
        found = [f"model / kframe: {text}" for text in self._compare(expected, own)]
        found += [f"kframe: {text}" for text in self._laws.broken(own, self.model.storage)]
        return found + self._states() + self._waiting()

    def history(self) -> str:
        """The scenario so far, to be played again."""
        return yaml.safe_dump(self.scenario, sort_keys=False, default_flow_style=None, width=140)

    def _take(self, step: Entry) -> Entry:
        runner, ((kind, argument),) = self.runner, step.items()
        action = steps.build("history", len(self.scenario["steps"]), Step(kind, argument))
        return runner.play_step(Step(kind, argument), action)

    def _compare(self, expected: Entry, own: Entry) -> list[str]:
        comparison, found = self._comparison, []
        for name, side, step in (("model", comparison.golden, expected), ("kframe", comparison.other, own)):
            side.look(step)
            found += [f"order, in {name}: {text}" for text in side.broken(step)]
        for compare in (
            comparison.storage,
            comparison.response,
            comparison.contents,
            comparison.audience,
            comparison.stopped,
        ):
            found += list(compare(expected, own))
        comparison.golden.settle(expected)
        comparison.other.settle(own)
        return found

    def _waiting(self) -> list[str]:
        """What operators have left in storage and is there still."""
        storage, records = self.model.storage, self.ensemble.records
        found = {"marked": sorted(storage.marked) == sorted(records.children(self._session, DELETE_TOPICS))}
        found["preferred"] = (storage.preferred is None) == (records.exists(self._session, PREFERRED_ELECTION) is None)
        left: dict[Key, tuple[int, ...]] = {}
        if records.exists(self._session, REASSIGN_PARTITIONS) is not None:
            data = json.loads(records.get(self._session, REASSIGN_PARTITIONS)[0])
            left = {(topic, number): tuple(replicas) for topic, number, replicas in data}
        found["reassignments"] = (storage.reassignments or {}) == left
        return [f"left in storage, {name}: not the same" for name, same in found.items() if not same]

    def _states(self) -> list[str]:
        """Where the two controllers disagree on what they remember."""
        context, cluster = self.model.controller.context, self.runner.loop.controller.cluster
        p, found = cluster.partitions, []
        for key in sorted(context.assignments):
            row = cluster.row(*key)
            if row is None:
                found.append(f"remembered {name_of(key)}: known / unknown")
                continue
            state = PARTITION_STATES[PartitionState(int(p.state[row]))]
            if state != context.partition.get(key, GONE):
                found.append(f"remembered {name_of(key)}: {context.partition.get(key)} / {state}")
            slots = p.slots_of(np.array([row]))
            brokers = cluster.brokers.ids[p.replica[slots]].tolist()
            theirs = [REPLICA_STATES[ReplicaState(int(one))] for one in p.replica_state[slots]]
            ours = [context.replica.get((key, broker), GONE) for broker in context.assignment(key).replicas]
            if brokers != list(context.assignment(key).replicas) or theirs != ours:
                pairs = dict(zip(context.assignment(key).replicas, ours, strict=True))
                found.append(
                    f"remembered replicas of {name_of(key)}: {pairs} / {dict(zip(brokers, theirs, strict=True))}"
                )
        return found
