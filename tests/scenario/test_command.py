"""``kframe scenario``."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from kframe.cli.app import cli
from tests.architecture.source import ROOT
from tests.scenario.samples import GOOD

EXAMPLES = sorted((ROOT / "examples" / "scenarios").glob("*.yaml"))


@pytest.fixture
def scenario(tmp_path: Path) -> Path:
    path = tmp_path / "s.yaml"
    path.write_text(GOOD)
    return path


def run(*arguments: object) -> Result:
    return CliRunner().invoke(cli, ["scenario", *map(str, arguments)])


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


@pytest.mark.parametrize(
    "damage, message",
    [
        (("schema: kframe.scenario/v1", "schema: x"), "schema: found 'x'"),
        (("broker_failure: [1]", "move: {t-0: [2, 1]}"), "steps[1]: found unknown step 'move'"),
        (("broker_failure: [1]", "broker_failure: [9]"), "steps[1].broker_failure: found broker 9"),
    ],
)
def test_bad_input_is_one_line_and_writes_nothing(
    scenario: Path, tmp_path: Path, damage: tuple[str, str], message: str
) -> None:
    scenario.write_text(GOOD.replace(*damage))
    result = run("run", scenario, "--trace", tmp_path / "out.json")
    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr.startswith("error: ")
    assert result.stderr.count("\n") == 1
    assert message in result.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["s.yaml"]


@pytest.mark.parametrize(
    "options, message",
    [
        (["--selector", "nobody"], "no leader selector 'nobody'"),
        (["--trace", "no/such/folder/out.json"], "No such file or directory"),
        (["--traces", "out.json"], "No such option"),
    ],
)
def test_bad_options_are_refused(scenario: Path, options: list[str], message: str) -> None:
    result = run("run", scenario, *options)
    assert (result.exit_code, result.stdout) == (2, "")
    assert message in result.stderr


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


def test_check_refuses_same_scenarios_as_run(tmp_path: Path) -> None:
    path = tmp_path / "late.yaml"
    path.write_text(GOOD.replace("broker_failure: [1]", "broker_failure: [9]"))
    played, checked = run("run", path), run("check", path)
    assert (played.exit_code, checked.exit_code) == (2, 2)
    assert "found broker 9, expected a broker that is registered at this step" in played.output
    assert "found broker 9, expected a broker that is registered at this step" in checked.output


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_examples_play(path: Path) -> None:
    assert run("run", path).exit_code == 0


def test_there_are_examples() -> None:
    assert EXAMPLES
