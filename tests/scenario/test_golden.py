"""kframe's traces equal those of Apache Kafka 3.9.1's controller."""

from __future__ import annotations

import json
import runpy
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from kframe.scenario.format import read_scenario
from kframe.scenario.runner import ScenarioRunner
from tests.architecture.source import ROOT

GOLDEN = ROOT / "tests" / "golden"
SCENARIOS = sorted((GOLDEN / "scenarios").glob("*.yaml"))


COMPARE = GOLDEN / "compare.py"
COMPARISON = runpy.run_path(str(COMPARE))["Comparison"]


def differences(golden: dict[str, Any], other: dict[str, Any]) -> list[str]:
    """The differences that ``compare.py`` prints."""
    comparison = COMPARISON(golden, other)
    comparison.run()
    listed: list[str] = comparison.differences
    return listed


@pytest.mark.parametrize("path", SCENARIOS, ids=lambda path: path.stem)
def test_trace_equals_kafkas(path: Path) -> None:
    golden = json.loads((GOLDEN / "traces" / f"{path.stem}.json").read_text())
    actual = json.loads(json.dumps(ScenarioRunner(read_scenario(path)).play()))
    assert (actual["schema"], actual["scenario"]) == ("kframe.trace/v1", golden["scenario"])
    assert differences(golden, actual) == []


def test_scenarios_and_traces_match() -> None:
    assert SCENARIOS
    assert {path.stem for path in SCENARIOS} == {path.stem for path in (GOLDEN / "traces").glob("*.json")}


@pytest.mark.parametrize("leader_shift, code", [(0, 0), (1, 1)], ids=["the same leader", "another leader"])
def test_command_compares_traces(leader_shift: int, code: int, tmp_path: Path) -> None:
    golden = GOLDEN / "traces" / "broker-failure-leader-and-follower.json"
    trace = json.loads(golden.read_text())
    stored = next(
        partition for step in trace["steps"] for partition in step["partitions"].values() if partition["leader"] > 0
    )
    stored["leader"] += leader_shift
    other = tmp_path / "other.json"
    other.write_text(json.dumps(trace))
    command = [sys.executable, str(COMPARE), str(golden), str(other)]
    compared = subprocess.run(command, capture_output=True, text=True, check=False)
    assert compared.returncode == code, compared.stdout + compared.stderr
    assert bool(differences(json.loads(golden.read_text()), trace)) is bool(code)
