"""Rack maps of fleets: in ``ingest``, and in the commands that read a fleet or its exports."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Final

import pytest

from kframe.snapshot.rack_map import FleetRackMap
from kframe.spark.fleet import read_part
from kframe.spark.ingest import ingest_source
from kframe.spark.inputs import ClusterInput
from kframe.spark.schema import BROKERS
from kframe.spark.sources import SnapshotSource
from tests.cli.running import kframe
from tests.snapshot.samples import example

RACKS: Final = {1: "rack-0", 2: "rack-1", 3: "rack-2", 4: "rack-0", 5: "rack-1", 6: "rack-2"}
NONE: Final = dict.fromkeys(RACKS)
TEXT: Final = example("healthy", "describe")
DUMP: Final = example("healthy", "zookeeper")


def racks_of(root: Path) -> dict[int, str | None]:
    return {row["broker_id"]: row["rack"] for row in read_part(root, BROKERS, "c").to_pylist()}


def rack_map(every: dict[int, str], **clusters: dict[int, str]) -> FleetRackMap:
    return FleetRackMap("racks.csv", every, clusters)


@pytest.mark.parametrize(
    ("source", "racks", "ingested"),
    [
        (TEXT, rack_map(RACKS), RACKS),
        (TEXT, rack_map(RACKS, c={6: "far"}), {**RACKS, 6: "far"}),
        (TEXT, rack_map({}, c={6: "far", 70: "a"}), {**NONE, 6: "far"}),
        (TEXT, rack_map({}, other=RACKS), NONE),
        (TEXT, rack_map({70: "a"}), NONE),
        (DUMP, rack_map(dict.fromkeys(RACKS, "far")), RACKS),
        (DUMP, rack_map({}, c={1: "rack-0"}), RACKS),
    ],
    ids=["every", "both", "some", "another cluster", "another broker", "shown racks stay", "equal"],
)
def test_ingest_gives_brokers_without_racks_those_of_the_map(
    source: Path, racks: FleetRackMap, ingested: dict[int, str | None], tmp_path: Path
) -> None:
    (row,) = ingest_source(SnapshotSource(str(source), "c"), tmp_path, rack_map=racks).to_pylist()
    assert (row["status"], racks_of(tmp_path)) == ("ingested", ingested)


def test_entry_of_a_cluster_that_contradicts_its_source_rejects_it(tmp_path: Path) -> None:
    source = SnapshotSource(str(DUMP), "c")
    (row,) = ingest_source(source, tmp_path, rack_map=rack_map({}, c={2: "far"})).to_pylist()
    assert row["status"] == "rejected"
    assert "broker 2 in far, expected rack-1, its rack in the snapshot" in row["reason"]


def test_cluster_is_ingested_again_when_its_racks_change(tmp_path: Path) -> None:
    source = SnapshotSource(str(TEXT), "c")
    maps = (None, rack_map(RACKS), rack_map(RACKS, other={1: "a"}), rack_map(RACKS, c={1: "a"}))
    rows = [ingest_source(source, tmp_path, rack_map=racks).to_pylist()[0]["status"] for racks in maps]
    assert rows == ["ingested", "ingested", "unchanged", "ingested"]


@pytest.mark.parametrize("is_ingested", [True, False])
def test_cluster_of_a_fleet_or_an_export_is_read_with_the_racks(is_ingested: bool, tmp_path: Path) -> None:
    ingest_source(SnapshotSource(str(TEXT), "c"), tmp_path)
    source = ClusterInput("c", str(tmp_path if is_ingested else TEXT), is_ingested, racks=rack_map(RACKS))
    assert {facts.broker_id: facts.rack for facts in source.snapshot().brokers} == RACKS
    assert {row["broker_id"]: row["rack"] for row in source.tables()["brokers"].to_pylist()} == RACKS


def run(*arguments: object, exit_code: int = 0) -> Any:
    result = kframe("spark", *arguments, "-o", "json")
    assert result.exit_code == exit_code, result.output
    return result


@pytest.mark.usefixtures("spark")
def test_fleet_commands_take_a_rack_map(tmp_path: Path) -> None:
    (tmp_path / "exports").mkdir()
    exports = {"text": TEXT, "dump": DUMP}
    for name, path in exports.items():
        (tmp_path / "exports" / f"{name}{path.name[len('healthy') :]}").write_bytes(path.read_bytes())
    racks = tmp_path / "racks.csv"
    racks.write_text("cluster,broker,rack\n" + "".join(f"text,{id_},{rack}\n" for id_, rack in RACKS.items()))
    fleet = tmp_path / "fleet"
    run("ingest", tmp_path / "exports", "--out", fleet)
    rows = {}
    for option in ((), ("--rack-map", racks)):
        document = json.loads(run("failover", fleet, "--each-rack", *option).stdout)
        rows[option] = {(row["cluster"], row["scenario"]) for row in document["rows"]}
    both = {(cluster, f"rack-{rack}") for cluster in exports for rack in set(RACKS.values())}
    assert rows == {(): {pair for pair in both if pair[0] == "dump"}, ("--rack-map", racks): both}
    swept = json.loads(run("sweep", fleet, "--depth", "1", "--rack-map", racks).stdout)["rows"]
    assert {(row["cluster"], row["rack"]) for row in swept if row["kind"] == "rack"} == {
        (cluster, rack) for cluster in exports for rack in set(RACKS.values())
    }
    run("plan", tmp_path / "exports", "--fix-racks", "--rack-map", racks)
    run("validate", fleet, "--rack-map", racks)
    racks.write_text("cluster,broker,rack\ntxt,1,rack-0\n")
    refused = run("ingest", tmp_path / "exports", "--out", fleet, "--rack-map", racks, exit_code=2)
    assert "found racks of txt, expected racks of dump, text" in refused.stderr
