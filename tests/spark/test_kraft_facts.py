"""The facts of KRaft clusters in a fleet: settings, broker states, older fleets, damaged facts, stated modes."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any
from uuid import UUID

import pyarrow as pa
import pytest

from kframe.errors import SnapshotError
from kframe.model.kafka_uuids import uuid_text
from kframe.model.kraft.records import ConfigRecord
from kframe.snapshot import write_snapshot
from kframe.snapshot.generate import generate
from kframe.spark.fleet import records
from kframe.spark.ingest import ingest_source
from kframe.spark.inputs import ClusterInput
from kframe.spark.modes import KraftRows
from kframe.spark.play import IMPACTS, EngineSettings, ScenarioStage
from kframe.spark.rows import rows_of, snapshot_of, table_of
from kframe.spark.scenarios import scenarios_of_each
from kframe.spark.schema import BROKERS, CLUSTERS, PARTITIONS, TOPICS
from kframe.spark.sources import find_sources
from kframe.spark.validation import validate_tables
from kframe.whatif import WhatIf
from tests.spark.fleets import mixed
from tests.spark.kraft_fleets import kraft_snapshot
from tests.spark.outcomes import reference_rows, scenario


def test_min_isr_of_the_controllers_node_precedes_that_of_the_cluster() -> None:
    """Kafka 4.4: the node's dynamic configuration precedes the cluster's, and partition 0 bounds both."""
    snapshot = kraft_snapshot(Random(3))
    assert snapshot.kraft is not None
    node = ConfigRecord(
        resource_type=4,
        resource_name=str(snapshot.controller_id),
        name="min.insync.replicas",
        value="7",
    )
    bare = replace(
        snapshot,
        topics=replace(snapshot.topics, configs={}),
        broker_default_configs=None,
        kraft=replace(snapshot.kraft, records=(node,)),
    )
    tables = {
        kind.name: table_of(rows_of(bare, "east", kind), kind) for kind in (PARTITIONS, BROKERS, TOPICS, CLUSTERS)
    }
    reported = [row for row in validate_tables("east", tables).to_pylist() if row["rule"] == "under_min_isr"]
    health = WhatIf(bare).health()
    assert health.under_min_isr is not None
    assert len(reported) == int(health.under_min_isr.sum()) > 0


@pytest.mark.parametrize("spelling", [uuid_text, str], ids=["of Kafka", "hex"])
def test_directory_ids_are_written_as_kafka_prints_them_and_read_in_hex_too(spelling: Callable[[UUID], str]) -> None:
    snapshot = kraft_snapshot(Random(3))
    assert snapshot.kraft is not None
    ids = snapshot.kraft.directory_ids
    (row,) = table_of(rows_of(snapshot, "c", CLUSTERS), CLUSTERS).to_pylist()
    assert row["directory_ids"] == list(map(uuid_text, ids))
    facts = KraftRows(row | {"directory_ids": list(map(spelling, ids))}).facts()
    assert facts is not None
    assert facts.directory_ids == ids


def test_fenced_brokers_have_no_scenario() -> None:
    rows = [
        {"cluster": "c", "broker_id": broker_id, "registered": registered, "fenced": fenced, "rack": f"r{broker_id}"}
        for broker_id, registered, fenced in ((1, True, False), (2, True, True), (3, True, None), (4, False, None))
    ]
    brokers = pa.Table.from_pylist(rows, BROKERS.schema)
    assert scenarios_of_each("broker", brokers)["brokers"].to_pylist() == [[1], [3]]
    assert scenarios_of_each("rack", brokers)["racks"].to_pylist() == [["r1"], ["r3"]]


@pytest.mark.parametrize("version", ["kframe.spark-cluster/v2", None])
def test_fleet_of_another_version_is_refused_and_ingested_again(version: str | None, tmp_path: Path) -> None:
    write_snapshot(generate(60, 4, racks=2, seed=3), tmp_path / "east")
    (source,) = find_sources([str(tmp_path / "east")])
    fleet = tmp_path / "fleet"
    ingest_source(source, fleet)
    record_path = fleet / "_done" / "east.json"
    record = {**json.loads(record_path.read_text()), "schema": version}
    record_path.write_text(json.dumps({name: value for name, value in record.items() if value is not None}))
    with pytest.raises(SnapshotError, match=r"_done/east.json.*schema"):
        records(fleet)
    assert [ingest_source(source, fleet).to_pylist()[0]["status"] for _ in range(2)] == ["ingested", "unchanged"]
    (written,) = records(fleet)
    assert ClusterInput.of_record(fleet, written).snapshot().digest() == generate(60, 4, racks=2, seed=3).digest()


def damaged(column: str, value: Any) -> pa.Table:
    (row,) = table_of(rows_of(kraft_snapshot(Random(3)), "c", CLUSTERS), CLUSTERS).to_pylist()
    return pa.Table.from_pylist([row | {column: value}], CLUSTERS.schema)


@pytest.mark.parametrize(
    "column,value,message",
    [
        ("mode", "raft", "cluster c field mode: found 'raft', expected zookeeper or kraft"),
        ("mode", None, "found ELRs in a cluster whose mode is not kraft"),
        ("directory_ids", ["x"], r"cluster c field directory_ids: found \['x'\]"),
        ("directory_ids", [], "cluster c field directories: found .* expected positions in 0 directory_ids"),
        ("records", [{"type": 9999, "record": "{}"}], "cluster c field records row 0: found record type 9999"),
        ("records", [{"type": 4, "record": "{"}], "cluster c field records row 0: found '{' "),
    ],
)
def test_damaged_facts_are_reported(column: str, value: Any, message: str) -> None:
    snapshot = kraft_snapshot(Random(3))
    partitions, brokers, topics = (
        table_of(rows_of(snapshot, "c", kind), kind) for kind in (PARTITIONS, BROKERS, TOPICS)
    )
    with pytest.raises(SnapshotError, match=message):
        snapshot_of(partitions, brokers, topics, damaged(column, value))


def test_mode_option_applies_to_sources_without_mode(tmp_path: Path) -> None:
    fleet = tmp_path / "fleet"
    statuses = {}
    for source in find_sources([str(mixed(tmp_path / "exports"))]):
        rows = [ingest_source(source, fleet, mode="kraft").to_pylist()[0] for _ in range(2)]
        statuses[source.cluster] = [(row["status"], row["mode"]) for row in rows]
    assert statuses == {
        name: [("ingested", mode), ("unchanged", mode)]
        for name, mode in (("east", "zookeeper"), ("west", "zookeeper"), ("north", "kraft"), ("south", "kraft"))
    }
    (north,) = (record for record in records(fleet) if record.cluster == "north")
    snapshot = ClusterInput.of_record(fleet, north).snapshot()
    row = scenario("fail", [1], name="s")
    config = {"metadata.version": "4.0-IV3", "min.insync.replicas": "1"}
    stage = ScenarioStage((IMPACTS,), EngineSettings(config))
    (result,) = stage.results("north", snapshot, [row], (IMPACTS,))
    assert not isinstance(result, str)
    assert result[IMPACTS]["rules"].to_pylist() == ["KRaft (Kafka 4.0 assumed, metadata.version 4.0-IV3, ELR off)"]
    assert reference_rows(snapshot, row, config)["impacts"][0]["records"] == result[IMPACTS]["records"][0].as_py()
