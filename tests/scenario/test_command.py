"""``kframe scenario``."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import Result

from tests.architecture.source import ROOT
from tests.cli.running import kframe
from tests.scenario.samples import GOOD

EXAMPLES = sorted((ROOT / "examples" / "scenarios").glob("*.yaml"))


@pytest.fixture
def scenario(tmp_path: Path) -> Path:
    path = tmp_path / "s.yaml"
    path.write_text(GOOD)
    return path


def run(*arguments: object) -> Result:
    return kframe("scenario", *arguments)


def test_json_output_is_trace(scenario: Path) -> None:
    result = run("run", scenario, "-o", "json")
    assert result.exit_code == 0
    trace = json.loads(result.stdout)
    assert trace["schema"] == "kframe.trace/v1"
    assert trace["steps"][1]["partitions"]["t-0"]["isr"] == [2]


def test_trace_file_equals_json_output(scenario: Path, tmp_path: Path) -> None:
    target = tmp_path / "out.json"
    result = run("run", scenario, "--trace", target)
    assert result.exit_code == 0
    assert json.loads(target.read_text()) == json.loads(run("run", scenario, "-o", "json").stdout)


def test_table_has_line_per_step(scenario: Path) -> None:
    lines = run("run", scenario).stdout.splitlines()
    assert lines[0].startswith("sample: kframe ")
    assert [line.split()[:2] for line in lines[2:]] == [["1", "elect"], ["2", "broker_failure"]]


def test_scenario_uses_selector(scenario: Path) -> None:
    result = run("run", scenario, "--selector", "first-in-sync", "-o", "json")
    assert result.exit_code == 0
    assert json.loads(result.stdout)["steps"][1]["partitions"]["t-0"]["leader"] == 2


def test_check_tells_of_every_file(scenario: Path, tmp_path: Path) -> None:
    bad = tmp_path / "bad.yaml"
    bad.write_text(GOOD.replace("broker_failure", "move"))
    result = run("check", scenario, bad, "-o", "json")
    rows = json.loads(result.stdout)["rows"]
    assert [(row["playable"], row["steps"]) for row in rows] == [(True, 2), (False, None)]
    assert result.exit_code == 2
    assert run("check", scenario).exit_code == 0


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_examples_play(path: Path) -> None:
    assert run("run", path).exit_code == 0


def test_there_are_examples() -> None:
    assert EXAMPLES
