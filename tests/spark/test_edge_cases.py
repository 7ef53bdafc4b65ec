"""``kframe spark`` on a fleet of unusual clusters equals one machine's result for each cluster, row for row."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyarrow import compute, parquet

from kframe.snapshot import Snapshot, read_snapshot
from kframe.spark import report
from kframe.spark.marks import Marks, Writing
from kframe.spark.modes import ZookeeperRows
from kframe.spark.opening import open_fleet
from kframe.spark.play import BROKER_COUNTS, CHANGES, CONDITIONS, FAILOVER, IMPACTS, REQUESTED, ScenarioStage
from kframe.spark.requests import REQUESTS
from kframe.spark.rows import rows_of
from kframe.spark.rules import ClusterContext, RegisteredBrokers, shared_topic_ids, violations
from kframe.spark.scenarios import broker_scenarios, rack_scenarios
from kframe.spark.schema import BROKERS, CLUSTERS, FLAG, PARTITIONS, TOPICS, FleetTable
from kframe.spark.stages import run_stage
from kframe.spark.sweeping import FAILURES, SweepStage
from kframe.whatif import WhatIf
from tests.cli.running import kframe
from tests.spark.edge_cases import IDS, WIDE, fleet
from tests.spark.fleets import snapshot_directory
from tests.spark.outcomes import Rows, assert_same_rows, reference_rows, scenario
from tests.spark.test_sweeping import reference_sweep

pytestmark = pytest.mark.usefixtures("spark")


@pytest.fixture(scope="module")
def clusters(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Snapshot]:
    """Return the clusters as one machine reads them, from directories in ``place``."""
    exports = tmp_path_factory.mktemp("awkward") / "exports"
    exports.mkdir()
    return {name: read_snapshot(snapshot_directory(exports / name, snapshot)) for name, snapshot in fleet().items()}


@pytest.fixture(scope="module")
def exports(clusters: dict[str, Snapshot], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Write the exports of the clusters."""
    return next(path for path in tmp_path_factory.getbasetemp().glob("awkward*/exports"))


@pytest.fixture(scope="module")
def ingested(exports: Path) -> Path:
    out = exports.parent / "fleet"
    result = kframe("spark", "ingest", exports, "--out", out, "--fail-on", "rejected", "--fail-on", "quarantined")
    assert result.exit_code == 0, result.output
    return out


def table(snapshot: Snapshot, cluster: str, kind: FleetTable) -> pa.Table:
    return pa.Table.from_batches(list(rows_of(snapshot, cluster, kind)), kind.schema)


def ordered(rows: Rows) -> list[str]:
    return sorted(repr(sorted(row.items())) for row in rows)


def test_validate(clusters: Mapping[str, Snapshot], ingested: Path, tmp_path: Path) -> None:
    """With and without ``--out``."""
    expected: Rows = []
    for name, snapshot in clusters.items():
        topics = table(snapshot, name, TOPICS)
        counts = dict(zip(topics["topic"].to_pylist(), topics["partition_count"].to_pylist(), strict=True))
        context = ClusterContext(RegisteredBrokers.of(table(snapshot, name, BROKERS)), counts, ZookeeperRows())
        for batch in (*violations(name, table(snapshot, name, PARTITIONS), context), *shared_topic_ids(name, topics)):
            expected += batch.to_pylist()
    assert expected
    for options in ((), ("--out", tmp_path / "out")):
        result = kframe("spark", "validate", ingested, *options, "-o", "json")
        assert result.exit_code == 0, result.output
        assert ordered(json.loads(result.stdout)["rows"]) == ordered(expected)


def test_sweep(clusters: Mapping[str, Snapshot], ingested: Path, tmp_path: Path) -> None:
    result = kframe("spark", "sweep", ingested, "--out", tmp_path / "out", "-o", "json")
    expected: Rows = []
    for name, snapshot in clusters.items():
        expected += reference_sweep(snapshot, SweepStage(), name)
    assert result.exit_code == 0, result.output
    written = parquet.read_table(tmp_path / "out" / FAILURES.name)
    columns = [name for name in FAILURES.schema.names if name != "problem"]
    assert ordered(written.select(columns).to_pylist()) == ordered(
        [{name: row[name] for name in columns} for row in expected]
    )


def scenarios(clusters: Mapping[str, Snapshot]) -> pa.Table:
    """Every broker and every rack fails in the small clusters. One rack fails in the wide cluster."""
    brokers = pa.concat_tables([table(snapshot, name, BROKERS) for name, snapshot in clusters.items()])
    is_wide = pa.array([name == "wide" for name in brokers["cluster"].to_pylist()], FLAG)
    small, wide = brokers.filter(compute.invert(is_wide)), brokers.filter(is_wide)
    return pa.concat_tables([broker_scenarios(small), rack_scenarios(small), rack_scenarios(wide.slice(0, 1))])


@pytest.fixture(scope="module")
def expected(clusters: Mapping[str, Snapshot]) -> dict[str, Rows]:
    """Return all tables of one machine."""
    tables: dict[str, Rows] = {}
    for row in scenarios(clusters).to_pylist():
        scenario_row = scenario(brokers=row["brokers"] or (), racks=row["racks"] or (), name=row["scenario"])
        for name, rows in reference_rows(clusters[row["cluster"]], scenario_row, cluster=row["cluster"]).items():
            tables.setdefault(name, []).extend(rows)
    return tables


@pytest.mark.parametrize("tables", [FAILOVER, REQUESTED], ids=["failover", "requests"])
def test_failover_and_requests(
    clusters: Mapping[str, Snapshot], ingested: Path, expected: Mapping[str, Rows], spark: Any, tmp_path: Path,
    tables: tuple[FleetTable, ...],
) -> None:  # fmt: skip
    out, summary, stage = str(tmp_path / "out"), tables[0], ScenarioStage(tables)
    opened, played = open_fleet(spark, str(ingested)), scenarios(clusters)
    rows = {name: [{**row, "encoded": None} if "encoded" in row else row for row in rows]
            for name, rows in expected.items()}  # fmt: skip
    with run_stage(spark, opened, stage, Writing(out), played) as result:
        assert result.problems == ()
        listed = list(result.rows())
    assert ordered(listed) == ordered(rows[summary.name])
    assert [tuple(row[name] for name in summary.key) for row in listed] == sorted(
        tuple(row[name] for name in summary.key) for row in rows[summary.name]
    )
    store = Marks(out, summary.name)
    written = {table.name: store.read(spark, table, store.parts(2)).toArrow().to_pylist() for table in tables}
    assert_same_rows(written, {name: rows[name] for name in written})
    with run_stage(spark, opened, stage, Writing(), played) as rerun:
        assert list(rerun.rows()) == listed


def test_report(clusters: Mapping[str, Snapshot], expected: Mapping[str, Rows], spark: Any) -> None:
    def frame(kind: FleetTable) -> Any:
        return spark.createDataFrame(pa.Table.from_pylist(expected[kind.name], kind.schema), kind.ddl)

    played = report.Played(*(frame(kind) for kind in (CHANGES, BROKER_COUNTS, CONDITIONS, IMPACTS, REQUESTS)))
    by_cluster = {(row["cluster"], row["scenario"]): row for row in report.by_cluster(played).toArrow().to_pylist()}
    by_broker = report.by_broker(played).toArrow().to_pylist()
    for row in scenarios(clusters).to_pylist():
        whatif = WhatIf(clusters[row["cluster"]])
        outcome = whatif.fail(row["brokers"] or (), row["racks"] or ())
        counts = by_cluster.pop((row["cluster"], row["scenario"]))
        for name, count in outcome.after.counts().items():
            assert counts[name] == count
        for when, health in (("before", outcome.before), ("after", outcome.after)):
            skew, expected_skew = counts[f"leader_skew_{when}"], health.leader_skew.max_mean_ratio
            assert (None if skew is None else round(skew, 3)) == expected_skew
        sent = {api_row["broker_id"]: (api_row["requests"], api_row["bytes"]) for api_row in by_broker
                if (api_row["cluster"], api_row["scenario"]) == (row["cluster"], row["scenario"])}  # fmt: skip
        traffic = outcome.traffic.values()
        assert sent == {
            broker: (
                sum(int(api_row.requests[index]) for api_row in traffic),
                sum(api_row.bytes_of(index) or 0 for api_row in traffic),
            )
            for index, broker in enumerate(outcome.broker_ids.tolist())
        }
    assert by_cluster == {}


def test_data_source_sql(clusters: Mapping[str, Snapshot], exports: Path, spark: Any) -> None:
    from kframe.spark import register

    register(spark)
    for kind in (PARTITIONS, BROKERS, TOPICS, CLUSTERS):
        reader = spark.read.format("kframe").option("table", kind.name)
        reader.load(str(exports)).createOrReplaceTempView(f"awkward_{kind.name}")
    led = spark.sql("""
        select cluster, leader, count(*) as partitions, sum(size(replicas)) as replicas, max(topic) as last,
               count_if(deleting) as deleting, count_if(size(adding_replicas) > 0) as moving
        from awkward_partitions group by cluster, leader
    """)
    expected = []
    for name, snapshot in clusters.items():
        groups: dict[int, list[dict[str, Any]]] = {}
        for row in table(snapshot, name, PARTITIONS).to_pylist():
            groups.setdefault(row["leader"], []).append(row)
        expected += [
            {"cluster": name, "leader": leader, "partitions": len(rows),
             "replicas": sum(len(row["replicas"]) for row in rows), "last": max(row["topic"] for row in rows),
             "deleting": sum(row["deleting"] for row in rows),
             "moving": sum(bool(row["adding_replicas"]) for row in rows)}
            for leader, rows in groups.items()
        ]  # fmt: skip
    assert ordered(led.toArrow().to_pylist()) == ordered(expected)
    joined = spark.sql("""
        select c.cluster, c.partitions, c.brokers, count_if(b.registered) as registered, max(b.broker_id) as largest
        from awkward_clusters c join awkward_brokers b using (cluster) group by all
    """)
    assert ordered(joined.toArrow().to_pylist()) == ordered([
        {"cluster": name, "partitions": len(snapshot), "brokers": len(snapshot.brokers),
         "registered": sum(bool(broker.registered) for broker in snapshot.brokers),
         "largest": max(broker.broker_id for broker in snapshot.brokers)}
        for name, snapshot in clusters.items()
    ])  # fmt: skip
    (largest,) = spark.sql("select max(partition_count) as n from awkward_topics").toArrow().to_pylist()
    assert largest["n"] == WIDE
    rows = spark.sql(f"select count(*) as n from awkward_partitions where array_contains(replicas, {IDS[-1]})")
    assert rows.toArrow().to_pylist()[0]["n"] == sum(
        IDS[-1] in row["replicas"] for row in table(clusters["mixed"], "mixed", PARTITIONS).to_pylist()
    )
