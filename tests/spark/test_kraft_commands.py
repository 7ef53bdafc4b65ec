"""``kframe spark`` on ZooKeeper and KRaft clusters, unusual ones too: each stage has the results of the single-cluster
command."""

from __future__ import annotations

import functools
import json
from pathlib import Path
from random import Random
from typing import Any

import pytest
from click.testing import CliRunner
from pyarrow import parquet

import kframe.spark
from kframe.cli.app import cli
from kframe.snapshot import Snapshot, read_snapshot, write_snapshot
from kframe.snapshot.generate import generate
from kframe.spark.fleet import read_fleet
from kframe.spark.inputs import open_fleet
from kframe.spark.play import IMPACT_COUNTS
from kframe.spark.schema import CLUSTER_TABLES, PARTITIONS
from kframe.spark.validation import validate_tables
from tests.schemas import assert_valid
from tests.snapshot.samples import ROOT
from tests.spark import edge_cases
from tests.spark.kraft_fleets import kraft_snapshot
from tests.spark.test_functions import configured

ZOOKEEPER = generate(60, 4, racks=2, seed=3)
OBSERVERS = ROOT / "tests" / "snapshot" / "texts" / "observers.txt"
SEEDS = {"north": 11, "south": 12, "west": 13}


@functools.cache
def snapshots() -> dict[str, Snapshot]:
    sampled = {name: kraft_snapshot(Random(seed)) for name, seed in SEEDS.items()}
    return {"east": ZOOKEEPER, **sampled, **edge_cases.fleet(), "observed": read_snapshot(OBSERVERS)}


def up_in(snapshot: Snapshot) -> list[int]:
    registrations = [(facts.broker_id, facts.registration) for facts in snapshot.brokers if facts.registered]
    return [broker_id for broker_id, registration in registrations if registration is None or not registration.fenced]


def command(*arguments: object) -> Any:
    result = CliRunner().invoke(cli, [*map(str, arguments), "-o", "json"])
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)


def command_with_possible_loss(*arguments: object) -> tuple[Any, str]:
    """The output and the finding, which is last, of a command that ends because records may be lost."""
    options = ("--fail-on", "possible-data-loss", "-o", "json")
    result = CliRunner().invoke(cli, [*map(str, arguments), *options])
    assert result.exit_code == 3, result.output
    return json.loads(result.stdout), result.stderr.splitlines(keepends=True)[-1]


@pytest.fixture(scope="module")
def exports(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("exports")
    for name, snapshot in snapshots().items():
        write_snapshot(snapshot, folder / name)
    return folder


@pytest.fixture(scope="module")
def fleet(spark: Any, exports: Path) -> Path:
    """The clusters, ingested."""
    folder = exports.parent / f"{exports.name}-fleet"
    document = command("spark", "ingest", exports, "--out", folder)
    assert_valid(document, "kframe.spark-ingest/v1")
    assert {row["cluster"]: (row["status"], row["mode"]) for row in document["rows"]} == {
        name: ("ingested", snapshot.mode) for name, snapshot in snapshots().items()
    }
    return folder


@pytest.mark.smoke
def test_failover_and_report_equal_whatif_fail(fleet: Path, exports: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    document, finding = command_with_possible_loss("spark", "failover", fleet, "--each-broker", "--out", out)
    assert_valid(document, "kframe.spark-impacts/v1")
    impacts = {(row["cluster"], row["scenario"]): row for row in document["rows"]}
    reports = command("spark", "report", out)
    assert_valid(reports, "kframe.spark-report-cluster/v1")
    expected = {}
    for name, snapshot in snapshots().items():
        for broker_id in up_in(snapshot):
            expected[name, f"broker-{broker_id}"] = command("whatif", "fail", exports / name, "--brokers", broker_id)
    assert impacts.keys() == expected.keys()
    scenarios = sum(outcome["findings"]["possible-data-loss"] > 0 for outcome in expected.values())
    assert finding.startswith(f"--fail-on possible-data-loss: {scenarios} scenario")
    for key, outcome in expected.items():
        row, impact = impacts[key], outcome["impact"]
        assert [row[name] for name in IMPACT_COUNTS] == [impact[name] for name in IMPACT_COUNTS]
        assert (row["rules"], row["records"]) == (outcome["rules"], impact["records"])
        assert row["record_bytes"] == (None if impact["records"] is None else impact["bytes"])
        file = out / "changes" / f"cluster={key[0]}" / f"scenario={key[1]}" / "part-0.parquet"
        changes = parquet.ParquetFile(file).read().num_rows if file.exists() else 0
        assert changes == impact["states_changed"]
    assert {(row["cluster"], row["scenario"]): row["rules"] for row in reports["rows"]} == {
        key: outcome["rules"] for key, outcome in expected.items()
    }


def test_sweep_equals_whatif_sweep(spark: Any, fleet: Path, exports: Path, tmp_path: Path) -> None:
    """In as many tasks as 16 cores, also of one cluster."""
    with configured(spark, {"spark.sql.shuffle.partitions": "32"}):
        whole, finding = command_with_possible_loss("spark", "sweep", fleet, "--out", tmp_path / "out")
    assert_valid(whole, "kframe.spark-sweep/v1")
    failures = 0
    for name, snapshot in snapshots().items():
        document = command("whatif", "sweep", exports / name)
        failures += document["findings"]["possible-data-loss"]
        of_cluster = [row for row in whole["rows"] if row["cluster"] == name]
        kraft = {"directory": None, "may_lose_data": None} if snapshot.mode == "zookeeper" else {}
        assert of_cluster == [
            kraft | row | {"cluster": name, "rank": rank, "rules": document["rules"]}
            for rank, row in enumerate(document["rows"], 1)
        ]
    assert finding == f"--fail-on possible-data-loss: {failures} failures\n"


def test_validate_applies_rules_of_cluster_mode(spark: Any, fleet: Path) -> None:
    document = command("spark", "validate", fleet)
    assert_valid(document, "kframe.spark-violations/v1")
    opened = open_fleet(str(fleet))
    expected = [row for name in SEEDS for row in validate_tables(name, opened.clusters[name].tables()).to_pylist()]
    assert expected
    key = json.dumps
    in_kraft = [row for row in document["rows"] if row["cluster"] in SEEDS]
    assert sorted(map(key, in_kraft)) == sorted(map(key, expected))
    assert {row["mode"] for row in in_kraft} == {"kraft"}
    assert {row["mode"] for row in document["rows"] if row["cluster"] == "east"} <= {"zookeeper"}
    frames = {table.name: read_fleet(spark, str(fleet), table) for table in CLUSTER_TABLES}
    listed = kframe.spark.validate(frames).toArrow().to_pylist()
    assert sorted(map(key, listed)) == sorted(map(key, document["rows"]))


def test_requests_omit_kraft_clusters(spark: Any, exports: Path, tmp_path: Path) -> None:
    options = ("--each-rack", "--out", tmp_path / "out")
    document = command("spark", "requests", exports, *options)
    assert_valid(document, "kframe.spark-requests/v2")
    sent: dict[tuple[str, str], list[int | None]] = {}
    for row in document["rows"]:
        sent.setdefault((row["cluster"], row["scenario"]), []).append(row["bytes"])
    assert {cluster for cluster, _ in sent} == {"east", "mixed", "none", "wide"}
    for (cluster, scenario), sizes in sent.items():
        outcome = command("whatif", "fail", exports / cluster, "--racks", scenario.removeprefix("rack-"))
        assert outcome["impact"]["bytes"] == (None if None in sizes else sum(map(int, filter(None, sizes))))
    assert command("spark", "requests", exports, *options) == document
    impacts = command("spark", "failover", exports, *options)["rows"]
    assert {row["cluster"] for row in impacts} == snapshots().keys() - {"dead", "observed"}
    reports = command("spark", "report", tmp_path / "out", "--by", "broker")
    assert {row["cluster"] for row in reports["rows"] if row["requests"] is not None} == {
        "east",
        "mixed",
        "none",
        "wide",
    }


def test_snapshots_are_written_back(spark: Any, fleet: Path, tmp_path: Path) -> None:
    """A cluster without partitions has no row that could be written."""
    kframe.spark.register(spark)
    partitions = read_fleet(spark, str(fleet), PARTITIONS)
    writer = partitions.write.format("kframe").option("fleet", str(fleet)).mode("append")
    writer.save(str(tmp_path / "written"))
    partitions.where("cluster = 'north'").write.format("kframe").mode("append").save(str(tmp_path / "alone"))
    for name, snapshot in snapshots().items():
        if len(snapshot):
            assert read_snapshot(tmp_path / "written" / name).digest() == snapshot.digest()
    restored = read_snapshot(tmp_path / "alone" / "north")
    assert restored.mode == "kraft"
    assert restored.partitions.directories is None
