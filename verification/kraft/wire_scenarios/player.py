"""Plays a scenario to a running controller, again while the machine was too slow for its sessions."""

from __future__ import annotations

import json
from contextlib import closing
from pathlib import Path
from typing import Any, Final

from kframe.scenario.kraft.broker_steps import PROCESS_ACTIONS
from kframe.scenario.kraft.format import KraftScenario
from kframe.scenario.kraft.tracing import KraftActions, KraftScenarioTracer
from verification.kraft.wire_scenarios import admin_requests, leader_requests, raw_requests
from verification.kraft.wire_scenarios.stalls import MachineStalled, check_sessions
from verification.kraft.wire_scenarios.wire_run import WireRun

ATTEMPTS: Final = 3
WIRE_ACTIONS: Final[KraftActions] = {
    **PROCESS_ACTIONS,
    "assign_directories": leader_requests.assign,
    "alter_partition": leader_requests.alter_partition,
    "catch_up": leader_requests.catch_up,
    "allocate_producer_ids": leader_requests.allocate_ids,
    "create_topics": admin_requests.create_topics,
    "create_partitions": admin_requests.create_partitions,
    "delete_topics": admin_requests.delete_topics,
    "elect_leaders": admin_requests.elect_leaders,
    "reassign": admin_requests.reassign,
    "cancel": admin_requests.cancel,
    "list_reassignments": admin_requests.list_reassignments,
    "set_config": admin_requests.set_config,
    "replace_config": admin_requests.replace_config,
    "feature": admin_requests.update_features,
    "unregister": admin_requests.unregister,
    "unregister_controller": admin_requests.unregister_controller,
    "request": raw_requests.send_request,
}


def play(scenario: KraftScenario, directory: Path) -> dict[str, Any]:
    """The trace of a scenario, played in new directories below ``directory``.

    Raises ScenarioError for a step that cannot be played, and MachineStalled after ATTEMPTS attempts.
    """
    for attempt in range(1, ATTEMPTS + 1):
        try:
            with closing(WireRun(scenario, directory / str(attempt))) as run:
                trace: dict[str, Any] = json.loads(json.dumps(KraftScenarioTracer(run, WIRE_ACTIONS).play()))
            check_sessions(trace)
        except MachineStalled:
            if attempt == ATTEMPTS:
                raise
        else:
            return trace
    raise AssertionError("unreachable")
