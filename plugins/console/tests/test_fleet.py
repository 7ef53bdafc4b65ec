"""``kframe console FLEET``: the table of all clusters, and the pages of each."""

from __future__ import annotations

import io
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from socket import socket
from typing import Any

import msgspec
import pyarrow.parquet
import pytest
from click.testing import CliRunner
from kframe_console import start
from kframe_console.pages import clusters
from kframe_console.routes import FLEET_PAGES
from kframe_console.sources.fleet import FleetSource
from starlette.applications import Starlette
from starlette.testclient import TestClient

from kframe.cli.app import cli
from kframe.plugin.snapshot import Snapshot, summarize, summary_record
from kframe.spark.fleet import part
from kframe.spark.schema import PARTITIONS
from verification.console.client import ConsoleClient, console_of
from verification.console.doubles import put_fleet


@pytest.fixture
def fleet(tmp_path: Path, kraft_snapshot: Snapshot, zookeeper_snapshot: Snapshot) -> Path:
    return put_fleet(tmp_path / "fleet", {"east": zookeeper_snapshot, "west=1": kraft_snapshot, "refused": None})


@pytest.fixture
def console(fleet: Path) -> Iterator[ConsoleClient]:
    with console_of(FleetSource(fleet, lambda snapshot: snapshot), pages=FLEET_PAGES) as console:
        yield console


def rows(console: ConsoleClient, **parameters: str) -> list[dict[str, Any]]:
    content = console.json("/", **parameters)
    assert content["schema"] == clusters.clusters_page.schema, content
    return list(content["rows"])


def test_clusters_have_the_figures_of_the_engine(
    console: ConsoleClient, kraft_snapshot: Snapshot, zookeeper_snapshot: Snapshot
) -> None:
    listed = {row["cluster"]: row for row in rows(console)}
    assert list(listed) == ["east", "refused", "west=1"]
    for cluster, snapshot in {"east": zookeeper_snapshot, "west=1": kraft_snapshot}.items():
        summary = msgspec.to_builtins(summarize(snapshot))
        shown = {name: value for name, value in listed[cluster].items() if name in summary}
        assert shown == {name: summary[name] for name in shown}
        assert len(shown) == 13
        assert (listed[cluster]["mode"], listed[cluster]["problem"]) == (snapshot.mode, None)
    refused = listed["refused"]
    assert "a truncated file" in refused["problem"]
    assert {value for name, value in refused.items() if name not in ("cluster", "problem")} == {None}
    parquet = pyarrow.parquet.read_table(io.BytesIO(console.client.get("/?format=parquet").content))
    assert parquet.to_pylist() == list(listed.values())


def test_clusters_sort_and_filter(console: ConsoleClient, zookeeper_snapshot: Snapshot) -> None:
    assert next(row["cluster"] for row in rows(console, sort="-offline")) == "east"
    assert [row["cluster"] for row in rows(console, partitions=f">={len(zookeeper_snapshot)}")] == ["east"]
    assert [row["cluster"] for row in rows(console, problem="truncated")] == ["refused"]
    assert [row["cluster"] for row in rows(console, cluster="w*", mode="kraft")] == ["west=1"]


def test_every_page_shows_the_cluster_that_the_address_names(
    console: ConsoleClient, kraft_snapshot: Snapshot, zookeeper_snapshot: Snapshot
) -> None:
    for cluster, snapshot in {"east": zookeeper_snapshot, "west=1": kraft_snapshot}.items():
        content = console.json("/overview", at=cluster)
        assert content["summary"]["partitions"] == len(snapshot)
        assert content["summary"]["cluster_id"] == summary_record(snapshot)["cluster_id"]
        assert console.json("/partitions", at=cluster)["total"] == len(snapshot)
        page = console.client.get(f"/topics/{snapshot.topics.names[0]}/0", params={"at": cluster}).text
        assert f"<strong>{cluster}</strong>" in page
        assert f"at={cluster.replace('=', '%3D')}" in page


@pytest.mark.parametrize(
    "path, message",
    [
        ("/brokers", "at: found no cluster, expected the name of a cluster of the fleet"),
        ("/overview", "at: found no cluster"),
        ("/topics/a?at=eats", "at: found 'eats'"),
        ("/brokers?at=refused", "cluster refused: found a truncated file"),
    ],
)
def test_page_without_a_readable_cluster_is_refused(console: ConsoleClient, path: str, message: str) -> None:
    console.refused(console.client.get(path, headers={"accept": "application/json"}), 400, message)


@pytest.mark.parametrize("damage", ["truncated", "foreign", "absent"])
def test_damaged_cluster_is_named_and_the_others_are_shown(console: ConsoleClient, fleet: Path, damage: str) -> None:
    (file,) = part(fleet, PARTITIONS, "east").glob("*.parquet")
    match damage:
        case "truncated":
            file.write_bytes(file.read_bytes()[:1000])
        case "foreign":
            pyarrow.parquet.write_table(pyarrow.table({"a": [1]}), file)
        case _:
            file.unlink()
    east, _, west = rows(console)
    assert "east" in east["problem"]
    assert (west["problem"], west["partitions"] > 0) == (None, True)
    console.refuses("/partitions", "expected", at="east")


def test_only_clusters_that_are_shown_stay_in_memory(tmp_path: Path, zookeeper_snapshot: Snapshot) -> None:
    names = [f"c{number}" for number in range(7)]
    put_fleet(tmp_path, dict.fromkeys(names, zookeeper_snapshot))
    source = FleetSource(tmp_path, lambda snapshot: snapshot)
    first = source.reading("c0")
    assert source.reading("c0") is first
    numbers = [source.reading(name).number for name in names]
    assert len(set(numbers)) == len(names)
    assert source.reading("c0") is not first


def without_racks(snapshot: Snapshot) -> Snapshot:
    return replace(snapshot, brokers=tuple(replace(facts, rack=None) for facts in snapshot.brokers))


@pytest.mark.parametrize("column", [True, False])
def test_rack_map_has_the_racks_of_each_cluster(
    tmp_path: Path, zookeeper_snapshot: Snapshot, monkeypatch: pytest.MonkeyPatch, column: bool
) -> None:
    fleet = put_fleet(tmp_path / "fleet", dict.fromkeys(("a", "b"), without_racks(zookeeper_snapshot)))
    lines = ["cluster,broker,rack", "a,1,east", ",1,west"] if column else ["broker,rack", "1,west"]
    racks = tmp_path / "racks.csv"
    racks.write_text("\n".join(lines))
    apps: list[Starlette] = []

    def serve(app: Starlette, listener: socket, _tls: object) -> None:
        listener.close()
        apps.append(app)

    monkeypatch.setattr(start, "serve", serve)
    result = CliRunner().invoke(cli, ["console", str(fleet), "--rack-map", str(racks), "--listen", "0", "--no-browser"])
    assert result.exit_code == 0, result.output
    with TestClient(apps[0], base_url="http://localhost") as client:
        console = ConsoleClient(client)
        assert [row["racks"] for row in rows(console)] == [1, 1]
        for cluster, rack in {"a": "east" if column else "west", "b": "west"}.items():
            brokers = console.json("/brokers", at=cluster)["rows"]
            assert {row["broker_id"]: row["rack"] for row in brokers} == {1: rack, **dict.fromkeys(range(2, 7))}


@pytest.mark.parametrize(
    "arguments, message",
    [
        (["{root}", "--rack-map", "{racks}"], "found racks of eats, expected racks of east, refused, west=1"),
        (["{root}", "--weights", "{file}"], "found --weights, which has the sizes of one cluster"),
        (["{file}"], "found a Parquet file, expected a fleet: the folder that kframe spark ingest wrote"),
    ],
)
def test_command_refuses_what_is_no_fleet(fleet: Path, arguments: list[str], message: str) -> None:
    file = fleet.parent / "a.parquet"
    pyarrow.parquet.write_table(pyarrow.table({"a": [1]}), file)
    racks = fleet.parent / "racks.csv"
    racks.write_text("cluster,broker,rack\neats,1,r\n")
    options = [argument.format(root=fleet, file=file, racks=racks) for argument in arguments]
    result = CliRunner().invoke(cli, ["console", *options, "--no-browser", "--listen", "0"])
    assert result.exit_code == 2
    assert message in result.stderr
