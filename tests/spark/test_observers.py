"""Confluent's observers in a fleet: tables, what-ifs, sweeps and plans treat them as the commands on a snapshot do."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pytest
from pyarrow import parquet

from kframe.model.columns import Ragged
from kframe.plans.file.write import plan_document
from kframe.plans.generate import PlanRequest, plan
from kframe.snapshot import Snapshot, generate, read_snapshot, write_snapshot
from kframe.spark.grouping import ClusterRows
from kframe.spark.modes import ZookeeperRows
from kframe.spark.rows import rows_of, snapshot_of, table_of
from kframe.spark.rules import RULES, ClusterContext, RegisteredBrokers, violations
from kframe.spark.schema import BROKERS, CLUSTERS, PARTITIONS, TOPICS
from kframe.whatif import WhatIf
from tests.cli.running import kframe
from tests.schemas import assert_valid
from tests.snapshot.samples import ROOT

OBSERVERS: Final = ROOT / "tests" / "snapshot" / "texts" / "observers.txt"
TABLES: Final = (PARTITIONS, BROKERS, TOPICS, CLUSTERS)


def tables(snapshot: Snapshot) -> list[pa.Table]:
    return [table_of(rows_of(snapshot, "c", table), table) for table in TABLES]


def lists(observers: Ragged | None) -> list[list[int]] | None:
    return None if observers is None else [observers[row].tolist() for row in range(len(observers))]


def test_rows_of_a_fleet_keep_observers() -> None:
    snapshot = read_snapshot(OBSERVERS)
    back = snapshot_of(*tables(snapshot))
    assert back.digest() == snapshot.digest()
    assert lists(back.partitions.observers) == lists(snapshot.partitions.observers)
    assert snapshot_of(*tables(generate(4, 3))).partitions.observers is None


def test_observers_of_partitions_alone_are_not_under_replicated() -> None:
    snapshot = read_snapshot(OBSERVERS)
    part = ClusterRows("c", {PARTITIONS.name: tables(snapshot)[0]}).snapshot()
    assert WhatIf(part).health().counts() == WhatIf(snapshot).health().counts()
    assert WhatIf(part).health().counts()["under_replicated"] == 0


def test_observer_outside_the_replicas_is_a_violation() -> None:
    partitions, brokers, _, _ = tables(read_snapshot(OBSERVERS))
    index, field = PARTITIONS.schema.get_field_index("observers"), PARTITIONS.schema.field("observers")
    wrong = pa.array([[99], *partitions["observers"].to_pylist()[1:]], field.type)
    context = ClusterContext(RegisteredBrokers.of(brokers), {"audit": 2, "orders-async": 2}, ZookeeperRows())
    batches = violations("c", partitions.set_column(index, field, wrong), context)
    errors = [row for batch in batches for row in batch.to_pylist() if row["severity"] == "error"]
    assert [(row["rule"], row["actual"], row["expected"]) for row in errors] == [
        ("observers_not_in_replicas", "[99]", RULES["observers_not_in_replicas"].expected)
    ]


def run(*arguments: object) -> list[dict[str, Any]]:
    result = kframe("spark", *arguments, "-o", "json")
    assert result.exit_code == 0, result.output
    document = json.loads(result.stdout)
    assert_valid(document, document["schema"])
    rows: list[dict[str, Any]] = document["rows"]
    return rows


@pytest.mark.usefixtures("spark")
def test_fleet_commands_treat_observers_as_commands_on_a_snapshot(tmp_path: Path) -> None:
    snapshot = read_snapshot(OBSERVERS)
    (tmp_path / "exports").mkdir()
    write_snapshot(snapshot, tmp_path / "exports" / "c")
    run("ingest", tmp_path / "exports", "--out", tmp_path / "fleet")
    (row,) = run("failover", tmp_path / "fleet", "--brokers", "22")
    impact = WhatIf(snapshot).fail([22]).impact
    assert (row["newly_under_replicated"], impact.newly_under_replicated) == (2, 2)
    swept = kframe("whatif", "sweep", OBSERVERS, "-o", "json")
    counts = {(row["kind"], *row["brokers"]): row for row in json.loads(swept.stdout)["rows"]}
    of_fleet = run("sweep", tmp_path / "fleet")
    assert len(of_fleet) == len(counts) == 10
    for row in of_fleet:
        assert row.items() >= counts[row["kind"], *row["brokers"]].items()
    run("plan", tmp_path / "fleet", "--replace", "22=23", "--out", tmp_path / "plans")
    moves = parquet.read_table(next((tmp_path / "plans" / "plan_moves").rglob("*.parquet"))).to_pylist()
    assert [(row["topic"], row["partition"], row["target"], row["observers"]) for row in moves] == [
        (entry["topic"], entry["partition"], entry["replicas"], entry.get("observers", []))
        for entry in json.loads(plan_document(plan(snapshot, PlanRequest(replace={22: 23})).plan))["partitions"]
    ]
