"""Small fleets are played in the driver, without a session: the same rows, messages and files as those of Spark."""

from __future__ import annotations

from pathlib import Path
from random import Random
from typing import Any

import pytest
from click.testing import CliRunner, Result
from pyarrow import parquet

from kframe.cli.app import cli
from kframe.snapshot.generate import generate
from kframe.spark import sessions, tasks
from kframe.spark.inputs import open_fleet
from kframe.spark.marks import Writing
from kframe.spark.stages import run_stage
from kframe.spark.validation import ValidateStage
from tests.spark.fleets import snapshot_directory
from tests.spark.kraft_fleets import kraft_snapshot

#: A scenario for a cluster that the fleet has, and for each of them.
LISTED = (
    '{"scenario": "bounce", "verb": "restart", "cluster": "east", "brokers": [1, 2]}\n'
    '{"scenario": "stop", "verb": "shutdown", "brokers": [99]}\n'
)
COMMANDS = {
    "validate": ("validate",),
    "failover": ("failover", "--brokers", "2", "--each-rack", "--scenarios", "FOLDER/scenarios.jsonl"),
    "written": ("failover", "--each-broker", "--out", "FOLDER/out"),
    "requests": ("requests", "--brokers", "1", "--out", "FOLDER/out", "--encoded"),
    "sweep": ("sweep", "--out", "FOLDER/out"),
    "plan": ("plan", "--rebalance"),
}


@pytest.fixture
def fleet(tmp_path: Path) -> Path:
    """Clusters of both modes, and a snapshot whose partitions are damaged."""
    folder = tmp_path / "fleet"
    folder.mkdir()
    snapshot_directory(folder / "east", generate(60, 4, racks=2, seed=3))
    snapshot_directory(folder / "north", kraft_snapshot(Random(11)))
    (tmp_path / "scenarios.jsonl").write_text(LISTED)
    return folder


def run(name: str, fleet: Path, options: tuple[str, ...], folder: Path) -> Result:
    words = [word.replace("FOLDER", str(folder)) for word in options]
    return CliRunner().invoke(cli, ["spark", name, str(fleet), *words, "-o", "json"])


def refuse_session(monkeypatch: pytest.MonkeyPatch, partitions: int = 1_000_000) -> None:
    """Let no session start, for fleets of up to so many partitions."""

    def session(*_: object, **__: object) -> Any:
        raise AssertionError("a session starts")

    monkeypatch.setattr(sessions, "session", session)
    monkeypatch.setattr(tasks, "DRIVER_PARTITIONS_MAX", partitions)


@pytest.mark.usefixtures("spark")
@pytest.mark.parametrize("command", COMMANDS.values(), ids=COMMANDS)
def test_driver_has_result_of_spark(
    command: tuple[str, ...], fleet: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    name, *options = command
    by_spark = run(name, fleet, tuple(options), tmp_path)
    written = tables_in(tmp_path / "out")
    (tmp_path / "out").rename(tmp_path / "by-spark") if written else None
    refuse_session(monkeypatch)
    in_driver = run(name, fleet, tuple(options), tmp_path)
    assert (in_driver.exit_code, in_driver.stdout) == (by_spark.exit_code, by_spark.stdout), in_driver.output
    assert in_driver.stderr == by_spark.stderr
    assert tables_in(tmp_path / "out") == written
    assert in_driver.stdout.count("east")


def tables_in(folder: Path) -> dict[str, list[dict[str, Any]]]:
    """The rows of each written file, by the directory that has it."""
    return {
        str(path.parent.relative_to(folder)): parquet.ParquetFile(path).read().to_pylist()
        for path in sorted(folder.rglob("*.parquet"))
    }


@pytest.mark.parametrize(
    ("stated", "partitions", "scenarios", "starts"),
    [
        ((), 1_000_000, 1, False),
        ((), 5_061, 1, True),
        ((), 10_200, 2, True),
        (("--conf", f"{tasks.DRIVER_PARTITIONS}=0"), 1_000_000, 1, True),
        (("--conf", f"{tasks.DRIVER_PARTITIONS}=20000"), 0, 1, False),
    ],
    ids=["little", "a large fleet", "many scenarios", "stated none", "stated more"],
)
def test_work_that_needs_a_session(
    stated: tuple[str, ...],
    partitions: int,
    scenarios: int,
    starts: bool,
    fleet: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Each scenario on a cluster costs its partitions, 60 in ``east`` and some in ``north``, and 5,000 more."""
    refuse_session(monkeypatch, partitions)
    lines = "".join(f'{{"scenario": "s{number}", "brokers": [1]}}\n' for number in range(scenarios))
    (tmp_path / "scenarios.jsonl").write_text(lines)
    result = run("failover", fleet, ("--scenarios", "FOLDER/scenarios.jsonl", *stated), tmp_path)
    assert ("a session starts" in result.stderr) == starts, result.output


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        (("--conf", f"{tasks.DRIVER_PARTITIONS}=few"), f"--conf {tasks.DRIVER_PARTITIONS}: found 'few', expected"),
        (("--master", "here"), "found 'here', expected local[*]"),
    ],
)
def test_options_are_checked_without_a_session(
    options: tuple[str, ...], expected: str, fleet: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    refuse_session(monkeypatch)
    result = run("sweep", fleet, options, tmp_path)
    assert result.exit_code == 2
    assert expected in result.stderr


def test_unreadable_snapshot_is_named(fleet: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    refuse_session(monkeypatch)
    (fleet / "east" / "manifest.json").write_text("{")
    result = run("sweep", fleet, (), tmp_path)
    assert result.exit_code == 2
    assert str(fleet / "east" / "manifest.json") in result.stderr


def test_driver_reports_its_progress(fleet: Path, tmp_path: Path) -> None:
    steps: list[tuple[int, int]] = []
    with run_stage(None, open_fleet(str(fleet)), ValidateStage(), Writing(), progress=lambda *step: steps.append(step)):
        assert steps == [(1, 2), (2, 2)]
