"""Traces of KRaft scenarios equal those of Apache Kafka 4.4's controller: records, batches, responses and metadata."""

from __future__ import annotations

import gzip
import json
import runpy
from pathlib import Path
from typing import Any, Final

import pytest

from kframe.scenario.kraft.format import read_kraft_scenario
from kframe.scenario.kraft.runner import KraftScenarioRunner
from tests.kraft.golden import GOLDEN, SCENARIOS, scenario_parameters

COMPARISON: Final = runpy.run_path(str(GOLDEN / "compare.py"))["Comparison"]
TRACES: Final = {path.name.split(".")[0]: path for path in (GOLDEN / "traces").iterdir()}


def differences(golden: dict[str, Any], other: dict[str, Any]) -> list[str]:
    """The differences by the recorder's comparison, batch boundaries included."""
    comparison = COMPARISON(golden, other)
    comparison.run()
    listed: list[str] = comparison.differences
    return listed


def read_trace(path: Path) -> dict[str, Any]:
    content = path.read_bytes()
    trace: dict[str, Any] = json.loads(gzip.decompress(content) if path.suffix == ".gz" else content)
    return trace


@pytest.mark.parametrize("path", scenario_parameters())
def test_trace_equals_kafkas(path: Path) -> None:
    trace = json.loads(json.dumps(KraftScenarioRunner(read_kraft_scenario(path)).play()))
    assert differences(read_trace(TRACES[path.stem]), trace) == []


def test_every_scenario_has_a_trace_and_every_trace_a_scenario() -> None:
    assert SCENARIOS
    assert {path.stem for path in SCENARIOS} == set(TRACES)
