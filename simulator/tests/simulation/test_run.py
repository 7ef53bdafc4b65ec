"""Seeds replay exactly, with both kernels, shrink, and are saved and reported."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from kframe.cli.app import cli
from kframe.errors import InputError
from kframe.scenario.format import parse_scenario
from kframe.scenario.runner import ScenarioRunner
from kframe_simulator import CLASSES, INVARIANTS, Simulation, Totals, plan_of, play, play_seed, shrink
from kframe_simulator.faults.plan import CLASS_OF, Action
from kframe_simulator.replication.scenario import Replication
from kframe_simulator.simulation import parts
from kframe_simulator.simulation.files import read_run, scenario_text, write_run
from kframe_simulator.simulation.run import EVENTS_MIN
from verification.simulator.at_rest import break_elections

#: Seeds of every run of the suite; ``kframe sim run --seeds 1..2000 --jobs 2`` plays many more.
SEEDS = range(2_000_001, 2_000_013)
#: A part of a run by another build.
PART = json.dumps({"schema": "kframe.sim-part/v1", "build": "aa", "first_seed": 3, "last_seed": 3, "failed_seeds": 0})


def test_seeds_keep_every_invariant() -> None:
    totals = Totals()
    for seed in SEEDS:
        totals.add(play_seed(seed))
    assert [result.violations for result in totals.failed] == []
    assert totals.events_least >= EVENTS_MIN
    checked = {name for name, times in totals.looks.items() if times}
    assert checked == {invariant.number for invariant in INVARIANTS}
    clients = ("acknowledged, acks=-1", "acknowledged, acks=1", "records read")
    assert min(totals.counts[name] for name in clients) > 5


def test_every_fault_class_is_sampled() -> None:
    drawn = {CLASS_OF[action.kind] for seed in range(40) for action in plan_of(seed)[1]}
    assert drawn == set(CLASSES)


def test_trace_depends_on_seed() -> None:
    first, repeated, other = (play(*plan_of(seed)).trace for seed in (7, 7, 8))
    assert first == repeated != other


def test_reference_kernels_give_the_same_trace() -> None:
    """I27: all writes and all bytes sent are the same with the reference kernels."""
    code = (
        "from verification.reference.kernels import use_reference_kernels; use_reference_kernels();"
        "from kframe_simulator import play, plan_of; print(play(*plan_of(7)).trace)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == play(*plan_of(7)).trace


def test_workers_end_with_a_killed_parent() -> None:
    """Workers inherit the standard output, which is at its end only when all of them have ended."""
    code = (
        "from kframe_simulator.simulation.run import play_seeds\n"
        "for result in play_seeds(range(2_000_001, 2_001_001), jobs=2): print(result.events, flush=True)"
    )
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert int(process.stdout.readline()) >= EVENTS_MIN
        process.kill()
        process.communicate(timeout=60)
    assert process.returncode == -signal.SIGKILL


def test_violation_is_detected_shrunk_and_printed(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    break_elections(monkeypatch)
    options, plan = plan_of(2)
    result = play(options, plan)
    assert {"I8"} <= {violation.number for violation in result.violations}
    shrunk = shrink(options, plan, "I8", tries_max=60)
    assert len(shrunk.plan) < len(plan)
    write_run(tmp_path / "run.json", shrunk)
    options_read, plan_read, trace = read_run(tmp_path / "run.json")
    assert (options_read, plan_read) == (options, shrunk.plan)
    assert play(options_read, plan_read).trace == trace


def test_shrink_refuses_run_without_violation() -> None:
    with pytest.raises(ValueError, match="does not break I8"):
        shrink(*plan_of(7), "I8")


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("{", "malformed JSON"),
        ("{}", 'missing field "schema"'),
        (json.dumps({"schema": "kframe.sim-run/v1", "seed": 1, "options": {}, "plan": []}), "field options: missing"),
        (json.dumps({"schema": "kframe.sim-run/v9"}), "field schema: found 'kframe.sim-run/v9'"),
    ],
)
def test_invalid_run_file_is_refused(tmp_path: Path, text: str, error: str) -> None:
    (tmp_path / "run.json").write_text(text)
    with pytest.raises(InputError, match=error):
        read_run(tmp_path / "run.json")


def test_unknown_action_is_refused(tmp_path: Path) -> None:
    options, _ = plan_of(7)
    result = play(options, ())
    write_run(tmp_path / "run.json", result)
    document = json.loads((tmp_path / "run.json").read_text())
    document["plan"] = [Action(1.0, "melt", {}).to_dict()]
    (tmp_path / "run.json").write_text(json.dumps(document))
    with pytest.raises(InputError, match="melt"):
        read_run(tmp_path / "run.json")


def test_run_is_exported_as_a_readable_scenario() -> None:
    options, plan = plan_of(7)
    simulation = Simulation(options, plan)
    simulation.run()
    scenario = parse_scenario(scenario_text(options, simulation.played_steps, simulation.scheduler.now_ms), "seed-7")
    assert len(scenario.steps) > 5
    ScenarioRunner(scenario, make_replication=Replication)


def test_sim_command_runs_and_replays(tmp_path: Path) -> None:
    runner = CliRunner()
    played = runner.invoke(cli, ["sim", "run", "--seeds", "7..8", "-o", "json"])
    assert played.exit_code == 0, played.output
    document = json.loads(played.stdout)
    assert (document["schema"], document["seeds"], document["failed_seeds"]) == ("kframe.sim/v1", 2, 0)
    saved = tmp_path / "run.json"
    assert runner.invoke(cli, ["sim", "replay", "7", "--write", str(saved)]).exit_code == 0
    assert runner.invoke(cli, ["sim", "replay", str(saved)]).exit_code == 0
    changed = json.loads(saved.read_text()) | {"trace": "0" * 32}
    saved.write_text(json.dumps(changed))
    assert runner.invoke(cli, ["sim", "replay", str(saved)]).exit_code == 1
    assert runner.invoke(cli, ["sim", "shrink", "7"]).exit_code == 2
    unknown = runner.invoke(cli, ["sim", "shrink", "7", "--invariant", "I0"])
    assert (unknown.exit_code, "found 'I0', expected one of I1, " in unknown.output) == (2, True)
    assert runner.invoke(cli, ["sim", "run", "--seeds", "9..8"]).exit_code == 2


def test_run_in_parts_is_summed_and_resumed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parts, "SEEDS", 2)
    runner, file = CliRunner(), tmp_path / "parts.jsonl"

    def run(seeds: str) -> dict[str, Any]:
        result: dict[str, Any] = json.loads(runner.invoke(cli, ["sim", "run", "--seeds", seeds, "-o", "json"]).stdout)
        return result

    for seeds, played in (("8..8", 1), ("7..10", 3), ("7..10", 0)):
        asked = ["sim", "run", "--seeds", seeds, "--append", str(file), "-o", "json"]
        assert json.loads(runner.invoke(cli, asked).stdout)["seeds"] == played
    summed, whole = json.loads(runner.invoke(cli, ["sim", "total", str(file), "-o", "json"]).stdout), run("7..10")
    assert {name: summed[name] for name in whole if name not in ("schema", "simulated_seconds")} == {
        name: value for name, value in whole.items() if name not in ("schema", "simulated_seconds")
    }
    assert (summed["parts"], summed["failed"]) == (3, {})


@pytest.mark.parametrize(
    ("lines", "error"),
    [
        pytest.param(["none"], "parts.jsonl:1: found malformed JSON", id="no JSON"),
        pytest.param([PART, PART], "seed 3 in two parts", id="twice"),
        pytest.param([PART, PART.replace("aa", "bb").replace("3", "9")], "aa, bb", id="two builds"),
        pytest.param([PART.replace("part", "whole")], "field schema: found 'kframe.sim-whole/v1'", id="something else"),
        pytest.param([], "no parts", id="nothing"),
    ],
)
def test_inconsistent_parts_are_refused(tmp_path: Path, lines: list[str], error: str) -> None:
    file = tmp_path / "parts.jsonl"
    file.write_text("".join(f"{line}\n" for line in lines))
    result = CliRunner().invoke(cli, ["sim", "total", str(file)])
    assert (result.exit_code, error in result.output) == (2, True)


def test_append_to_parts_of_another_build_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "parts.jsonl"
    file.write_text(f"{PART}\n")
    result = CliRunner().invoke(cli, ["sim", "run", "--seeds", "7", "--append", str(file)])
    assert (result.exit_code, "build aa" in result.output) == (2, True)


def test_each_lists_options_of_seed() -> None:
    result = CliRunner().invoke(cli, ["sim", "run", "--seeds", "7", "--each", "-o", "json"])
    (row,) = json.loads(result.stdout)["rows"]
    assert row["options"]["brokers"] == list(plan_of(7)[0].brokers)
