"""Plays a scenario to a running controller, again while the machine was too slow for its sessions."""

from __future__ import annotations

import json
from contextlib import closing, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from kframe.scenario.format import Step
from kframe.scenario.kraft.broker_steps import PROCESS_ACTIONS
from kframe.scenario.kraft.format import KraftScenario
from kframe.scenario.kraft.tracing import KraftActions, KraftScenarioTracer
from verification.kraft.wire_scenarios import admin_requests, leader_requests, raw_requests
from verification.kraft.wire_scenarios.controller import SESSION_TIMEOUT, SETTINGS
from verification.kraft.wire_scenarios.stalls import MachineStalled, check_sessions
from verification.kraft.wire_scenarios.wire_run import WireRun

#: The factor of sessions and pauses in each attempt.
SLOWNESS: Final = (1, 2, 4)
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

    A further attempt has longer sessions, so that a busy machine does not decide the result. Raises ScenarioError for a
    step that cannot be played, and MachineStalled after the last attempt.
    """
    *factors, last = SLOWNESS
    for factor in factors:
        with suppress(MachineStalled):
            return _play(slowed(scenario, factor), directory / str(factor))
    return _play(slowed(scenario, last), directory / str(last))


def slowed(scenario: KraftScenario, factor: int) -> KraftScenario:
    """A scenario with longer sessions and pauses, whose trace is the same."""
    session_ms = scenario.config.get(SESSION_TIMEOUT) or SETTINGS[SESSION_TIMEOUT]
    config = {**scenario.config, SESSION_TIMEOUT: factor * int(session_ms)}
    return replace(scenario, config=config, steps=tuple(_slowed(step, factor) for step in scenario.steps))


def _slowed(step: Step, factor: int) -> Step:
    return replace(step, content=factor * step.content) if step.kind == "advance" else step


def _play(scenario: KraftScenario, directory: Path) -> dict[str, Any]:
    with closing(WireRun(scenario, directory)) as run:
        trace: dict[str, Any] = json.loads(json.dumps(KraftScenarioTracer(run, WIRE_ACTIONS).play()))
    check_sessions(trace)
    return trace
