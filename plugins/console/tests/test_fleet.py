"""``kframe console FLEET``: the table of all clusters, and the pages of each."""

from __future__ import annotations

import io
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pyarrow.parquet
import pytest
from click.testing import CliRunner
from kframe_console.pages import clusters
from kframe_console.routes import FLEET_PAGES
from kframe_console.sources.fleet import FleetSource

from kframe.cli.app import cli
from kframe.plugin.snapshot import Snapshot, summarize, summary_record
from kframe.spark.fleet import ClusterRecord, finish, part, put_cluster
from kframe.spark.rows import rows_of
from kframe.spark.schema import CLUSTER_TABLES, PARTITIONS
from verification.console.client import ConsoleClient, console_of


def put(root: Path, cluster: str, snapshot: Snapshot | None) -> None:
    """Write a cluster as ``kframe spark ingest`` does; without a snapshot it is rejected."""
    tables = {} if snapshot is None else {table: rows_of(snapshot, cluster, table) for table in CLUSTER_TABLES}
    outputs = put_cluster(root, cluster, tables)
    record = ClusterRecord(
        cluster=cluster,
        source=cluster,
        inputs={},
        outputs=outputs,
        partitions=0 if snapshot is None else len(snapshot),
        topics=0 if snapshot is None else len(snapshot.topics),
        brokers=0 if snapshot is None else len(snapshot.brokers),
        quarantined=0,
        rejected="a truncated file" if snapshot is None else None,
        mode="zookeeper" if snapshot is None else snapshot.mode,
    )
    finish(root, record)


@pytest.fixture
def fleet(tmp_path: Path, kraft_snapshot: Snapshot, zookeeper_snapshot: Snapshot) -> Path:
    root = tmp_path / "fleet"
    for cluster, snapshot in {"east": zookeeper_snapshot, "west=1": kraft_snapshot, "refused": None}.items():
        put(root, cluster, snapshot)
    return root


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
    for name in names:
        put(tmp_path, name, zookeeper_snapshot)
    source = FleetSource(tmp_path, lambda snapshot: snapshot)
    first = source.reading("c0")
    assert source.reading("c0") is first
    numbers = [source.reading(name).number for name in names]
    assert len(set(numbers)) == len(names)
    assert source.reading("c0") is not first


@pytest.mark.parametrize(
    "arguments, message",
    [
        (["{root}", "--weights", "{file}"], "found --weights, which has the sizes of one cluster"),
        (["{file}"], "found a Parquet file, expected a fleet: the folder that kframe spark ingest wrote"),
    ],
)
def test_command_refuses_what_is_no_fleet(fleet: Path, arguments: list[str], message: str) -> None:
    file = fleet.parent / "a.parquet"
    pyarrow.parquet.write_table(pyarrow.table({"a": [1]}), file)
    options = [argument.format(root=fleet, file=file) for argument in arguments]
    result = CliRunner().invoke(cli, ["console", *options, "--no-browser", "--listen", "0"])
    assert result.exit_code == 2
    assert message in result.stderr
