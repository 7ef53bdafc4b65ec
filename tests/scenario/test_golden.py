"""kframe's traces equal those of Apache Kafka 3.9.1's controller."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from kframe.scenario.format import read_scenario
from kframe.scenario.runner import ScenarioRunner
from tests.architecture.source import ROOT

GOLDEN = ROOT / "tests" / "golden"
SCENARIOS = sorted((GOLDEN / "scenarios").glob("*.yaml"))


def compare(golden: Path, other: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(GOLDEN / "compare.py"), "--strict", "--all", str(golden), str(other)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


@pytest.mark.parametrize("path", SCENARIOS, ids=lambda path: path.stem)
def test_trace_equals_kafkas(path: Path, tmp_path: Path) -> None:
    own = tmp_path / "own.json"
    own.write_text(json.dumps(ScenarioRunner(read_scenario(path)).play()))
    compared = compare(GOLDEN / "traces" / f"{path.stem}.json", own)
    assert compared.returncode == 0, compared.stdout + compared.stderr


def test_every_scenario_has_a_trace_and_every_trace_a_scenario() -> None:
    assert SCENARIOS
    assert {path.stem for path in SCENARIOS} == {path.stem for path in (GOLDEN / "traces").glob("*.json")}


def test_the_comparison_sees_another_leader(tmp_path: Path) -> None:
    golden = GOLDEN / "traces" / "broker-failure-leader-and-follower.json"
    trace = json.loads(golden.read_text())
    stored = next(
        partition for step in trace["steps"] for partition in step["partitions"].values() if partition["leader"] > 0
    )
    stored["leader"] += 1
    changed = tmp_path / "changed.json"
    changed.write_text(json.dumps(trace))
    assert compare(golden, changed).returncode == 1
