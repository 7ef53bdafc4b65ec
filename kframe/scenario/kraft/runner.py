"""Plays a KRaft scenario in process and records its trace (``kframe.trace-kraft/v1``)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from kframe.core.kraft.replication.selectors import SelectorSelection
from kframe.model.elections import LeaderSelector
from kframe.model.ids import ElectionKind
from kframe.model.kraft.metadata import ClusterMetadata
from kframe.scenario.kraft import admin_steps, leader_steps, requests
from kframe.scenario.kraft.broker_steps import PROCESS_ACTIONS
from kframe.scenario.kraft.format import KraftScenario
from kframe.scenario.kraft.quorum import LogBatch
from kframe.scenario.kraft.quorum_run import QuorumRun
from kframe.scenario.kraft.tracing import KraftActions, KraftScenarioTracer


class KraftScenarioRunner:
    """One scenario; ``play`` may be called once."""

    def __init__(self, scenario: KraftScenario, selectors: Mapping[ElectionKind, LeaderSelector] | None = None) -> None:
        """``selectors`` choose leaders instead of Kafka's rule. Raises ScenarioError for features or settings that
        Kafka would refuse."""
        self.scenario = scenario
        self._run = QuorumRun(scenario, SelectorSelection(selectors or {}))

    @property
    def metadata(self) -> ClusterMetadata:
        """The metadata after all records of the log."""
        return self._run.metadata

    @property
    def log(self) -> Sequence[LogBatch]:
        """The committed batches."""
        return self._run.log

    def play(self) -> dict[str, Any]:
        """The whole trace. Raises ScenarioError for a step that cannot be played."""
        return KraftScenarioTracer(self._run, ACTIONS).play()


ACTIONS: Final[KraftActions] = {
    **PROCESS_ACTIONS,
    "assign_directories": leader_steps.assign,
    "alter_partition": leader_steps.alter_partition,
    "catch_up": leader_steps.catch_up,
    "allocate_producer_ids": leader_steps.allocate_ids,
    "create_topics": admin_steps.create_topics,
    "create_partitions": admin_steps.create_partitions,
    "delete_topics": admin_steps.delete_topics,
    "elect_leaders": admin_steps.elect_leaders,
    "reassign": admin_steps.reassign,
    "cancel": admin_steps.cancel,
    "list_reassignments": admin_steps.list_reassignments,
    "set_config": admin_steps.set_config,
    "replace_config": admin_steps.replace_config,
    "feature": admin_steps.update_features,
    "unregister": admin_steps.unregister,
    "unregister_controller": admin_steps.unregister_controller,
    "request": requests.send_request,
}
