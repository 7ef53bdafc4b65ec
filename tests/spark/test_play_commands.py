"""``kframe spark failover`` and ``requests``, from a fleet to rows and tables."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from pyarrow import parquet

from kframe.cli.app import cli
from kframe.snapshot.generate import generate
from tests.spark.cutting import alone, scenario
from tests.spark.fleets import directory

SNAPSHOT = generate(60, 4, racks=2, seed=3)
Run = Callable[..., Result]


@pytest.fixture
def run(spark: Any, tmp_path: Path) -> Run:
    """Run a command on a fleet of one cluster, ``east``; Spark is the one at work."""
    place = tmp_path / "fleet"
    place.mkdir()
    directory(place / "east", SNAPSHOT)
    return lambda name, *options: CliRunner().invoke(cli, ["spark", name, str(place), *options])


def test_failover_tells_what_each_scenario_comes_to(run: Run) -> None:
    result = run("failover", "--each-rack", "--brokers", "1", "-o", "json")
    assert result.exit_code == 0, result.output
    found = {row["scenario"]: row["states_changed"] for row in json.loads(result.stdout)["rows"]}
    expected = {name: len(alone(SNAPSHOT, one)["changes"]) for name, one in {
        "fail-1": scenario(brokers=[1]), "rack-rack-0": scenario(racks=["rack-0"]),
        "rack-rack-1": scenario(racks=["rack-1"]),
    }.items()}  # fmt: skip
    assert found == expected


def test_what_is_written_is_not_played_again(run: Run, tmp_path: Path) -> None:
    out = tmp_path / "out"
    first = run("failover", "--brokers", "1", "--out", str(out), "-o", "json")
    assert first.exit_code == 0, first.output
    changes = parquet.read_table(out / "changes").num_rows
    assert changes == len(alone(SNAPSHOT, scenario(brokers=[1]))["changes"])
    written = _files(out)
    again = run("failover", "--brokers", "1", "--out", str(out), "-o", "json")
    assert (again.stdout, _files(out)) == (first.stdout, written)
    (out / "_done" / "impacts" / "cluster=east" / "scenario=fail-1").unlink()
    resumed = run("failover", "--brokers", "1", "--out", str(out), "-o", "json")
    assert resumed.stdout == first.stdout
    assert _files(out).isdisjoint(written)
    assert parquet.read_table(out / "changes").num_rows == changes
    summed = CliRunner().invoke(cli, ["spark", "report", str(out), "-o", "json"])
    assert [(row["scenario"], row["states_changed"]) for row in json.loads(summed.stdout)["rows"]] == [
        ("fail-1", changes)
    ]  # fmt: skip


def test_requests_tells_what_each_broker_is_sent(run: Run) -> None:
    result = run("requests", "--brokers", "2", "-o", "json")
    assert result.exit_code == 0, result.output
    found = sum(row["bytes"] for row in json.loads(result.stdout)["rows"])
    assert found == sum(row["bytes"] for row in alone(SNAPSHOT, scenario(brokers=[2]))["requests"])


def test_a_broker_that_is_not_there_is_told(run: Run) -> None:
    result = run("failover", "--brokers", "9")
    assert result.exit_code == 3
    assert "cluster east, scenario fail-9: brokers" in result.stderr


def test_a_scenario_is_wanted(run: Run) -> None:
    result = run("failover")
    assert result.exit_code == 2
    assert "--each-broker" in result.stderr


def _files(out: Path) -> set[Path]:
    return set((out / "changes").rglob("*.parquet"))
