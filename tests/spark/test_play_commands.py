"""``kframe spark failover`` and ``requests``, from a fleet to rows and tables."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from click.testing import CliRunner, Result
from pyarrow import parquet

from kframe.cli.app import cli
from kframe.errors import InputError
from kframe.snapshot.generate import generate
from kframe.spark.scenarios import read_scenarios
from tests.spark.fleets import snapshot_directory, written_files
from tests.spark.outcomes import Rows, assert_same_rows, reference_rows, scenario

SNAPSHOT = generate(60, 4, racks=2, seed=3)
Run = Callable[..., Result]


@pytest.fixture
def run(spark: Any, tmp_path: Path) -> Run:
    """Run a command on a fleet of one cluster, ``east``, in the session of the tests."""
    exports = tmp_path / "fleet"
    exports.mkdir()
    snapshot_directory(exports / "east", SNAPSHOT)
    return lambda name, *options: CliRunner().invoke(cli, ["spark", name, str(exports), *options])


def test_written_scenarios_are_not_played_again(run: Run, tmp_path: Path) -> None:
    out = tmp_path / "out"
    first = run("failover", "--brokers", "1", "--out", str(out), "-o", "json")
    assert first.exit_code == 0, first.output
    changes = parquet.read_table(out / "changes").num_rows
    assert changes == len(reference_rows(SNAPSHOT, scenario(brokers=[1]))["changes"])
    written = written_files(out / "changes")
    rerun = run("failover", "--brokers", "1", "--out", str(out), "-o", "json")
    assert (rerun.stdout, written_files(out / "changes")) == (first.stdout, written)
    (out / "_done" / "impacts" / "cluster=east" / "scenario=fail-1").unlink()
    resumed = run("failover", "--brokers", "1", "--out", str(out), "-o", "json")
    assert resumed.stdout == first.stdout
    assert written_files(out / "changes").isdisjoint(written)
    assert parquet.read_table(out / "changes").num_rows == changes
    summed = CliRunner().invoke(cli, ["spark", "report", str(out), "-o", "json"])
    assert [(row["scenario"], row["states_changed"]) for row in json.loads(summed.stdout)["rows"]] == [
        ("fail-1", changes)
    ]


def test_changed_input_is_played_again_and_reported(run: Run, tmp_path: Path) -> None:
    out = str(tmp_path / "out")
    run("failover", "--brokers", "1", "--out", out)
    other = generate(50, 4, racks=2, seed=8)
    shutil.rmtree(tmp_path / "fleet" / "east")
    snapshot_directory(tmp_path / "fleet" / "east", other)
    rerun = run("failover", "--brokers", "1", "--out", out, "-o", "json")
    assert rerun.exit_code == 0, rerun.output
    assert rerun.stderr == "cluster east: its input has changed since it was written; done again\n"
    assert parquet.read_table(tmp_path / "out" / "changes").num_rows == len(
        reference_rows(other, scenario(brokers=[1]))["changes"]
    )


def test_scenario_table_accepts_every_verb(run: Run, tmp_path: Path) -> None:
    topic = SNAPSHOT.topics.names[0]
    plan = {"version": 1, "partitions": [{"topic": topic, "partition": 0, "replicas": [0, 3]}]}
    lines: list[dict[str, Any]] = [
        {"scenario": "one-by-one", "brokers": [1, 2, 3], "together": False, "cluster": "east"},
        {"scenario": "rack", "verb": "shutdown", "racks": ["rack-0"]},
        {"scenario": "bounce", "verb": "restart", "brokers": [1]},
        {"scenario": "unclean", "verb": "elect", "election": "unclean"},
        {"scenario": "named", "verb": "elect", "election": "preferred", "names": [f"{topic}-0"]},
        {"scenario": "move", "verb": "reassign", "plan": plan},
        {"scenario": "new", "verb": "create", "names": ["new"], "partitions": 3, "replication_factor": 2, "seed": 7},
        {"scenario": "taken", "verb": "create", "names": [topic], "partitions": 3, "replication_factor": 2},
        {"scenario": "gone", "verb": "delete", "names": [topic]},
    ]
    file, out = tmp_path / "scenarios.jsonl", tmp_path / "out"
    file.write_text("".join(json.dumps(line) + "\n" for line in lines))
    result = run("failover", "--scenarios", str(file), "--out", str(out), "--fail-on", "offline", "-o", "json")
    assert result.exit_code == 3, result.output
    expected = {
        line["scenario"]: reference_rows(SNAPSHOT, row)
        for line, row in zip(lines, read_scenarios(str(file)).to_pylist(), strict=True)
    }
    for name in ("changes", "broker_counts", "conditions", "impacts"):
        actual: dict[str, Rows] = {line["scenario"]: [] for line in lines}
        for row in parquet.read_table(out / name).to_pylist():
            actual[row["scenario"]].append(row)
        assert_same_rows(actual, {scenario: tables[name] for scenario, tables in expected.items()})
    refused = {name for name, tables in expected.items() if any(row["not_done"] for row in tables["conditions"])}
    assert "taken" in refused
    offline = sum(tables["impacts"][0]["found_offline"] > 0 for tables in expected.values())
    assert (offline, result.stderr) == (1, "--fail-on offline: 1 scenario\n")


def test_scenarios_as_parquet_are_those_of_json_lines(tmp_path: Path) -> None:
    file = tmp_path / "scenarios.jsonl"
    file.write_text('{"scenario": "a", "brokers": [1]}\n\n{"scenario": "b", "verb": "elect", "election": "unclean"}\n')
    table = read_scenarios(str(file))
    parquet.write_table(table, tmp_path / "scenarios.parquet")
    assert read_scenarios(str(tmp_path / "scenarios.parquet")) == table
    columns = table.select(["scenario", "verb", "brokers"])
    parquet.write_table(columns, tmp_path / "few.parquet")
    read = read_scenarios(str(tmp_path / "few.parquet"))
    assert read.schema == table.schema
    assert read.select(["scenario", "verb", "brokers"]) == columns


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('{"scenario": "a", "broker": [1]}', "1: found "),
        ('{"scenario": "a"}\n{"brokers": [1]}', "2: missing field "),
        ('{"scenario": "a", "verb": "explode"}', "1 field verb: found "),
        ('{"scenario": "a"', "1: found malformed JSON"),
        ("\n", ": found no scenario"),
        (None, "found "),
    ],
)
def test_unreadable_scenario_table_names_the_location(tmp_path: Path, text: str | None, message: str) -> None:
    file = tmp_path / "scenarios.jsonl"
    if text is not None:
        file.write_text(text)
    with pytest.raises(InputError) as caught:
        read_scenarios(str(file))
    assert str(caught.value).startswith(str(file))
    assert message in str(caught.value)


def test_parquet_table_with_unknown_columns_is_refused(tmp_path: Path) -> None:
    unrelated, broken = tmp_path / "odd.parquet", tmp_path / "broken.parquet"
    parquet.write_table(pa.table({"scenario": ["a"], "broker": [1]}), unrelated)
    broken.write_bytes(b"PAR1")
    for file, message in ((unrelated, "found column 'broker'"), (broken, "expected a Parquet table of scenarios")):
        with pytest.raises(InputError, match=message):
            read_scenarios(str(file))


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ({"scenario": "fail-1", "brokers": [2]}, "scenario fail-1: found another of that name for cluster east"),
        ({"scenario": "far", "brokers": [2], "cluster": "esat"}, "scenario far: found cluster esat"),
    ],
)
def test_ambiguous_scenarios_are_refused(run: Run, tmp_path: Path, line: dict[str, Any], message: str) -> None:
    file = tmp_path / "scenarios.jsonl"
    file.write_text(json.dumps(line))
    result = run("failover", "--brokers", "1", "--scenarios", str(file))
    assert result.exit_code == 2, result.output
    assert message in result.stderr


def test_failover_without_scenario_is_refused(run: Run) -> None:
    result = run("failover")
    assert result.exit_code == 2
    assert "--each-broker" in result.stderr
