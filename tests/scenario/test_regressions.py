"""Past defects of kframe, found by comparison with a second controller, as scenarios."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from kframe.ports.store_requests import ReadReassignments
from kframe.scenario.format import read_scenario
from kframe.scenario.runner import ScenarioRunner

SCENARIOS = Path(__file__).parent / "regressions"


def play(name: str) -> tuple[ScenarioRunner, list[dict[str, Any]]]:
    runner = ScenarioRunner(read_scenario(SCENARIOS / f"{name}.yaml"))
    return runner, list(runner.play_steps())


@pytest.fixture(scope="module")
def never_led() -> list[dict[str, Any]]:
    """The trace of a reassignment of a partition without any leader so far."""
    return play("reassign-never-led-alone")[1]


def test_reassignment_of_never_led_partition_is_stored_but_sends_no_request(never_led: list[dict[str, Any]]) -> None:
    _, reassign, _ = never_led
    assert reassign["response"] == {"t-0": "UNKNOWN_SERVER_ERROR"}
    assert reassign["requests"] == []
    stored = reassign["partitions"]["t-0"]
    assert (stored["replicas"], stored["adding_replicas"], stored["removing_replicas"]) == ([1, 2, 9], [1, 2], [9])
    assert stored["leader"] is None


def test_broker_bounce_elects_first_leader_from_added_replicas(never_led: list[dict[str, Any]]) -> None:
    _, _, bounce = never_led
    stored = bounce["partitions"]["t-0"]
    assert (stored["leader"], stored["isr"], stored["leader_epoch"]) == (1, [1], 1)
    orders = [request for request in bounce["requests"] if request["api"] == "LeaderAndIsr"]
    assert {request["broker"] for request in orders} == {1, 2}
    assert all(request["partitions"]["t-0"]["is_new"] for request in orders)


def test_reassignment_request_removes_deleting_topic_from_reassignment_znode() -> None:
    runner, trace = play("reassign-znode-of-deleted")
    assert trace[-1]["response"] == {"a-0": "UNKNOWN_TOPIC_OR_PARTITION"}
    assert trace[-1]["requests"] == []
    assert runner.loop.store.perform(ReadReassignments()) is None
