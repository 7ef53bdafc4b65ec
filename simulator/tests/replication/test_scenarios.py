"""Scenarios with ``brokers_replicate: true``."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from kframe.errors import ConfigError, ScenarioError
from kframe.scenario.format import parse_scenario, read_scenario
from kframe.scenario.runner import ScenarioRunner
from kframe_simulator.replication.scenario import Replication
from tests.scenario.samples import GOOD

EXAMPLE = Path(__file__).resolve().parents[3] / "examples" / "scenarios" / "brokers-replicate.yaml"
ALL = {"t-0": {"records": 1, "acks": "all"}}


def runner_of(text: str) -> ScenarioRunner:
    return ScenarioRunner(parse_scenario(text, "s.yaml"), make_replication=Replication)


def example() -> ScenarioRunner:
    return ScenarioRunner(read_scenario(EXAMPLE), make_replication=Replication)


def play(*steps: dict[str, Any], **config: object) -> Iterator[tuple[Any, list[int] | None]]:
    """The response of each step, and the ISR of t-0 if the step has changed it."""
    scenario = {
        "schema": "kframe.scenario/v1",
        "name": "s",
        "brokers_replicate": True,
        "config": {"replica.lag.time.max.ms": 10_000} | config,
        "brokers": [{"id": number} for number in (1, 2, 3)],
        "topics": [{"name": "t", "partitions": [{"partition": 0, "replicas": [1, 2, 3]}]}],
        "steps": [{"elect": {}}, *steps],
    }
    for entry in runner_of(yaml.safe_dump(scenario)).play_steps():
        changed = entry["partitions"].get("t-0")
        yield entry["response"], None if changed is None else changed["isr"]


def played_on(*steps: dict[str, Any]) -> Any:
    """The runner after these steps on the example's cluster."""
    scenario = yaml.safe_load(EXAMPLE.read_text()) | {"steps": [{"elect": {}}, *steps]}
    runner = runner_of(yaml.safe_dump(scenario))
    runner.play()
    return runner


def silent(broker: int, error: str = "SILENT") -> dict[str, Any]:
    return {"answer": {"broker": broker, "error": error}}


def test_example_scenario() -> None:
    entries = list(example().play_steps())
    produced = [entry["response"]["orders-0"] for entry in entries if "produce" in entry["step"]]
    assert produced == ["NONE", "REQUEST_TIMED_OUT", "NONE", "NONE", "NOT_ENOUGH_REPLICAS", "NONE"]
    isrs = [state["isr"] for entry in entries for state in entry["partitions"].values()]
    assert isrs == [[1, 2, 3], [1, 2], [1, 2, 3], [2, 3], [2, 3, 1], [1]]


@pytest.mark.parametrize("protocol", ["3.9", "2.8", "2.7-IV1", "2.4"])
def test_silent_follower_leaves_and_rejoins_isr(protocol: str) -> None:
    """Through AlterPartition, or before 2.7-IV2 through the leader's own write."""
    played = play(
        silent(3),
        {"produce": ALL},
        {"advance": 16},
        {"produce": ALL},
        silent(3, "NONE"),
        {"advance": 2},
        **{"inter.broker.protocol.version": protocol},
    )
    responses, isrs = zip(*played, strict=True)
    assert [response["t-0"] for response in responses if response] == ["REQUEST_TIMED_OUT", "NONE"]
    assert [isr for isr in isrs if isr] == [[1, 2, 3], [1, 2], [1, 2, 3]]


def test_bounced_broker_rejoins_isr() -> None:
    played = list(play({"produce": ALL}, {"broker_bounce": [3]}, {"produce": ALL}, {"advance": 1}))
    assert played[-2][0] == {"t-0": "NONE"}
    assert [isr for _, isr in played if isr][-1] == [1, 2, 3]


def test_log_directory_failure_of_leader_elects_another() -> None:
    played = list(play({"log_dir_failure": {"broker": 1, "partitions": ["t-0"]}}, {"produce": ALL}))
    assert played[1][1] == [2, 3]
    assert played[2][0] == {"t-0": "NONE"}


@pytest.mark.parametrize(
    "error, hosted", [("KAFKA_STORAGE_ERROR", [("orders", 0)]), ("NONE", [("orders", 0), ("u", 0)])]
)
def test_refused_leader_and_isr_is_not_applied(error: str, hosted: list[tuple[str, int]]) -> None:
    runner = played_on(
        {"answer": {"broker": 2, "api": "LeaderAndIsr", "error": error, "partitions": ["u-0"]}},
        {"create_topics": [{"name": "u", "assignments": [[2, 3]]}]},
    )
    assert sorted(runner.replication.models[2].partitions) == hosted


def test_topic_deletion_deletes_logs() -> None:
    runner = played_on({"delete_topics": ["orders"]})
    assert [model.disks.logs for model in runner.replication.models.values()] == [{}, {}, {}]


@pytest.mark.parametrize(
    "steps, expected",
    [
        ([{"broker_failure": [1, 2, 3]}], "LEADER_NOT_AVAILABLE"),
        ([silent(1)], "REQUEST_TIMED_OUT"),
    ],
)
@pytest.mark.parametrize("acks", ["all", 1])
def test_produce_without_reachable_leader(steps: list[dict[str, Any]], expected: str, acks: object) -> None:
    played = list(play(*steps, {"produce": {"t-0": {"acks": acks}}}))
    assert played[-1][0] == {"t-0": expected}


def test_paused_broker_handles_pending_requests() -> None:
    """Its requests wait for it. It leads after it has handled the first one."""
    create = {"create_topics": [{"name": "u", "assignments": [[2]]}]}
    produce = {"produce": {"u-0": {"acks": 1}}}
    played = list(play(silent(2), create, produce, silent(2, "NONE"), produce))
    assert [item["u-0"] for item, _ in played if item and "u-0" in item] == ["REQUEST_TIMED_OUT", "NONE"]


def test_equal_scenarios_give_equal_traces() -> None:
    assert example().play() == example().play()


def test_endless_exchange_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kframe_simulator.replication.scenario.ROUNDS_MAX", 2)
    with pytest.raises(ScenarioError, match="respond to each other without end"):
        example().play()


@pytest.mark.parametrize(
    "key, value, message",
    [("replica.lag.time.max.ms", "0", "found 0"), ("replica.lag.max.ms", "1", "replica.lag.max.ms")],
)
def test_invalid_broker_setting_is_reported(key: str, value: str, message: str) -> None:
    text = GOOD.replace("auto.leader.rebalance.enable: false", f"{key}: {value}")
    with pytest.raises(ConfigError, match=message):
        runner_of(f"{text}brokers_replicate: true\n")


@pytest.mark.parametrize(
    "argument, message",
    [
        ("{t-0: {records: 0}}", "records"),
        ("{t-0: {acks: two}}", "acks"),
        ("{t-9: {records: 1}}", "partition t-9"),
        ("{t-0: {records: 1, key: x}}", "an unknown field"),
        ("[t-0]", "a mapping"),
    ],
)
def test_invalid_produce_step_is_reported(argument: str, message: str) -> None:
    text = f"{GOOD}  - produce: {argument}\nbrokers_replicate: true\n"
    with pytest.raises(ScenarioError, match=message):
        runner_of(text).play()
