"""``kframe.spark.whatif``, ``sweep``, ``plan`` and ``validate`` on a real Spark: the results of one machine."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from random import Random
from typing import Any, TypeAlias

import pyarrow as pa
import pytest
from pyspark.sql import functions as f

import kframe.spark
from kframe.errors import ConfigError, InputError
from kframe.plans.generate import plan
from kframe.snapshot import Snapshot, read_snapshot
from kframe.snapshot.generate import Health, generate
from kframe.spark.frames import conform
from kframe.spark.plans import move_rows, plan_row
from kframe.spark.rows import rows_of
from kframe.spark.schema import CLUSTER_TABLES, CLUSTERS, PARTITIONS, SCENARIOS, FleetTable, spark_type
from kframe.spark.sweeping import SweepStage
from kframe.spark.validation import validate_tables
from kframe.whatif import SortBy, WhatIf
from tests.snapshot.samples import example
from tests.spark.kraft_fleets import kraft_snapshot
from tests.spark.outcomes import Rows, assert_same_rows, reference_rows, scenario
from tests.spark.outcomes import tables as tables_of
from tests.spark.test_left_out import without_topics
from tests.spark.test_sweeping import reference_sweep

Tables: TypeAlias = dict[str, pa.Table]
HEALTH = Health(under_replicated=0.1, preferred_replica_imbalance=0.1, unclean=0.2, min_insync=2)
SCENARIO_ROWS = [scenario(brokers=[1], name="one"), scenario("elect", election="preferred", name="elect")]
MINIMAL = ("topic", "partition", "replicas", "leader", "isr")


def fleet() -> dict[str, Snapshot]:
    """Return clusters with racks, without, without topics, without brokers too, and in KRaft mode."""
    plain = generate(12, 3, seed=3)
    return {
        "bare": plain,
        "east": generate(30, 4, racks=2, seed=1, health=HEALTH),
        "kraft": kraft_snapshot(Random(3)),
        "north": replace(without_topics(plain), brokers=()),
        "plain": plain,
        "south": without_topics(plain),
    }


def arrow_tables(snapshots: Mapping[str, Snapshot]) -> Tables:
    return {
        table.name: pa.Table.from_batches(
            [batch for name, snapshot in snapshots.items() for batch in rows_of(snapshot, name, table)], table.schema
        )
        for table in CLUSTER_TABLES
    }


def frames(spark: Any, snapshots: Mapping[str, Snapshot]) -> dict[str, Any]:
    """Return the tables of clusters as frames, partitions in pieces without order."""
    result = {name: frame_of(spark, rows, name) for name, rows in arrow_tables(snapshots).items()}
    return result | {"partitions": result["partitions"].repartition(3)}


def frame_of(spark: Any, rows: pa.Table, name: str) -> Any:
    known = {table.name: table for table in (*CLUSTER_TABLES, SCENARIOS)}
    return spark.createDataFrame(rows, known[name].ddl)


def scenario_frame(spark: Any, rows: Sequence[Mapping[str, Any]]) -> Any:
    return frame_of(spark, pa.Table.from_pylist(list(rows), SCENARIOS.schema), "scenarios")


def rows_in(frame: Any) -> Rows:
    rows: Rows = frame.toArrow().to_pylist()
    return rows


def results(fleet_: Mapping[str, Any], scenarios: Any) -> dict[str, Rows]:
    """Return the rows of all functions in a stable order."""
    result = {
        "impacts": kframe.spark.whatif(fleet_, scenarios=scenarios),
        "sweep": kframe.spark.sweep(fleet_, depth=1),
        "validate": kframe.spark.validate(fleet_),
        "plan": kframe.spark.plan(fleet_, rebalance=True),
    }
    return {name: sorted(rows_in(frame), key=repr) for name, frame in result.items()}


def without_problems(rows: Rows) -> Rows:
    return [{name: row[name] for name in row if name != "problem"} for row in rows if row["problem"] is None]


@pytest.mark.parametrize("table", ["impacts", "changes", "broker_counts", "conditions", "requests"])
def test_scenario_has_result_of_one_machine(spark: Any, table: str) -> None:
    snapshots = {
        "real": read_snapshot(example("healthy", "zookeeper")),
        "kraft": kraft_snapshot(Random(3)),
        "made": generate(2_000, 12, racks=3, health=HEALTH),
    }
    up = {name: list(WhatIf(snapshot).registered[:2]) for name, snapshot in snapshots.items()}
    listed = [scenario(brokers=brokers, together=False, cluster=name) for name, brokers in up.items()]
    actual = rows_in(
        kframe.spark.whatif(frames(spark, snapshots), scenarios=scenario_frame(spark, listed), table=table)
    )
    assert {row["problem"] for row in actual} <= {None}
    expected: Rows = []
    for row in listed:
        expected += reference_rows(snapshots[row["cluster"]], row, cluster=row["cluster"])[table]
    if table == "requests":
        expected = [{**row, "encoded": None} for row in expected]
    assert_same_rows({table: without_problems(actual)}, {table: expected})


def test_partitions_alone_with_few_columns_are_a_fleet(spark: Any) -> None:
    """The README of a user: one DataFrame without ``cluster``, with integers of another width."""
    snapshot = generate(60, 4, seed=3)
    few = frame_of(spark, tables_of(snapshot)["partitions"], "partitions").select(*MINIMAL)
    few = few.withColumn("isr", f.col("isr").cast("array<bigint>")).withColumn("leader", f.col("leader").cast("bigint"))
    (impact,) = rows_in(kframe.spark.whatif(few, brokers=[2]))
    expected = reference_rows(snapshot, scenario(brokers=[2]))["impacts"][0]
    assert (impact["cluster"], impact["scenario"], impact["problem"]) == ("cluster", "fail-2", None)
    for name in ("leaders_moved", "newly_offline", "states_changed", "newly_under_replicated"):
        assert impact[name] == expected[name]
    assert impact["newly_under_min_isr"] is None
    (unknown,) = rows_in(kframe.spark.whatif(few, brokers=[9]))
    assert unknown["problem"].startswith("brokers: found broker 9")
    failures = rows_in(kframe.spark.sweep(few, depth=1, by="skew"))
    assert [(row["kind"], row["rank"]) for row in failures] == [("broker", rank) for rank in range(1, 5)]
    (summary,) = rows_in(kframe.spark.plan(few.drop("leader", "isr"), remove_brokers=(2,)))
    assert (summary["cluster"], summary["targets_met"], summary["problem"]) == ("cluster", True, None)
    settled = few.withColumn("min_insync_replicas", f.lit(3))
    (impact,) = rows_in(kframe.spark.whatif(settled, brokers=[2]))
    assert impact["newly_under_min_isr"] > 0


def test_plan_has_result_of_one_machine(spark: Any) -> None:
    snapshots = {"east": generate(60, 4, racks=2, seed=3), "kraft": kraft_snapshot(Random(11))}
    of_fleet = frames(spark, snapshots)
    proposals = {name: plan(snapshot, rebalance=True) for name, snapshot in snapshots.items()}
    for table, make in (("plans", plan_row), ("plan_moves", move_rows)):
        actual = without_problems(rows_in(kframe.spark.plan(of_fleet, table=table, rebalance=True)))
        expected = [row for name, proposal in proposals.items() for row in make(name, proposal).to_pylist()]
        assert_same_rows({table: actual}, {table: expected})


def test_every_cluster_has_a_row(spark: Any) -> None:
    snapshots = fleet()
    of_fleet = frames(spark, snapshots)
    actual = results(of_fleet, scenario_frame(spark, SCENARIO_ROWS))
    assert {(row["cluster"], row["scenario"]) for row in actual["impacts"]} == {
        (name, row["scenario"]) for name in snapshots for row in SCENARIO_ROWS
    }
    assert {row["cluster"] for row in actual["sweep"]} == {*snapshots} - {"north"}
    assert {row["cluster"] for row in actual["plan"]} == {*snapshots}
    expected = [
        row
        for name, snapshot in snapshots.items()
        for row in validate_tables(name, tables_of(snapshot, name)).to_pylist()
    ]
    assert_same_rows({"validate": actual["validate"]}, {"validate": expected})
    assert expected


@contextmanager
def configured(spark: Any, settings: Mapping[str, str]) -> Iterator[None]:
    before = {key: spark.conf.get(key) for key in settings}
    try:
        for key, value in settings.items():
            spark.conf.set(key, value)
        yield
    finally:
        for key, value in before.items():
            spark.conf.set(key, value)


@pytest.mark.parametrize(
    "settings",
    [
        pytest.param({"spark.sql.execution.arrow.useLargeVarTypes": "true"}, id="large types"),
        pytest.param({"spark.sql.execution.arrow.maxRecordsPerBatch": "1"}, id="batches of one row"),
        pytest.param({"spark.sql.ansi.enabled": "false"}, id="without ANSI"),
    ],
)
def test_results_do_not_depend_on_settings(spark: Any, settings: dict[str, str]) -> None:
    of_fleet, scenarios = frames(spark, fleet()), scenario_frame(spark, SCENARIO_ROWS)
    expected = results(of_fleet, scenarios)
    with configured(spark, settings):
        assert results(of_fleet, scenarios) == expected


def test_columns_may_have_any_order_and_case(spark: Any) -> None:
    def other(frame: Any) -> Any:
        return frame.select(
            *(f.col(name).alias(name.upper()) for name in reversed(frame.columns)), f.lit(1).alias("more")
        )

    of_fleet, scenarios = frames(spark, fleet()), scenario_frame(spark, SCENARIO_ROWS)
    changed = {name: other(frame) for name, frame in of_fleet.items()}
    assert results(changed, other(scenarios)) == results(of_fleet, scenarios)


def replaced(table: pa.Table, cluster: str, **values: Any) -> pa.Table:
    """Return a table with these values in the first row of a cluster."""
    rows = table.to_pylist()
    first = next(index for index, row in enumerate(rows) if row["cluster"] == cluster)
    rows[first] = {**rows[first], **values}
    return pa.Table.from_pylist(rows, table.schema)


def test_problem_affects_its_cluster_alone(spark: Any) -> None:
    """``bare`` is twice among the clusters; ``east``, ``south`` and ``kraft`` have a null where a value belongs."""
    valid, broken = arrow_tables(fleet()), arrow_tables(fleet())
    lost = [{**valid["partitions"].to_pylist()[0], "cluster": name} for name in ("lost", None)]
    broken["partitions"] = pa.concat_tables(
        [replaced(valid["partitions"], "east", isr=[0, None]), pa.Table.from_pylist(lost, PARTITIONS.schema)]
    )
    broken["brokers"] = replaced(valid["brokers"], "south", endpoints=[None])
    defaults = [("min.insync.replicas", None)]
    broken["clusters"] = pa.concat_tables(
        [replaced(valid["clusters"], "kraft", broker_default_configs=defaults), valid["clusters"].slice(0, 1)]
    )
    listed = [
        *SCENARIO_ROWS,
        *(scenario(brokers=[broker], name="twice", cluster="plain") for broker in (1, 2)),
        scenario(name="alone", cluster="nowhere"),
    ]
    scenarios = scenario_frame(spark, listed)
    actual = results({name: frame_of(spark, rows, name) for name, rows in broken.items()}, scenarios)
    unlisted = "table clusters: found 0 rows, expected one row of each cluster"
    messages = {
        "bare": "cluster bare table clusters: found 2 rows, expected one row of each cluster",
        "east": "cluster east field isr: found 1 null in lists, expected lists without nulls",
        "kraft": "cluster kraft field broker_default_configs: found a null value of min.insync.replicas",
        "south": "cluster south table brokers broker 0 field endpoints: found a null in them",
        "lost": f"cluster lost {unlisted}",
    }
    problems = {(row["cluster"], row["scenario"]): row["problem"] for row in actual["impacts"] if row["problem"]}
    for name, message in messages.items():
        names = [row["scenario"] for row in SCENARIO_ROWS if name != "lost"] or [None]
        texts = [problems.pop((name, scenario_)) for scenario_ in names]
        assert all(text.startswith(message) or text == "no scenario is for it" for text in texts), texts
    assert {key: text.partition(":")[0] for key, text in problems.items()} == {
        ("nowhere", "alone"): "cluster nowhere table clusters",
        (None, None): "no scenario is for it",
        ("north", "one"): "brokers",
        ("plain", "twice"): "table scenarios",
    }
    expected = results(
        {name: frame_of(spark, rows, name) for name, rows in valid.items()}, scenario_frame(spark, SCENARIO_ROWS)
    )
    for name in ("sweep", "plan"):
        reasons = {row["cluster"]: row["problem"] for row in actual[name] if row["cluster"] not in ("north", "plain")}
        assert reasons.pop(None) == "rows without a cluster: found null, expected the name of a cluster"
        assert reasons.keys() == messages.keys()
        assert all(reasons[key].startswith(message) for key, message in messages.items())
        for cluster in ("north", "plain"):
            assert [row for row in actual[name] if row["cluster"] == cluster] == [
                row for row in expected[name] if row["cluster"] == cluster
            ]
    errors = {(row["cluster"], row["rule"]) for row in actual["validate"] if row["severity"] == "error"}
    assert errors == {
        ("bare", "cluster_row"),
        ("kraft", "cluster_row"),
        ("east", "null_in_list"),
        ("lost", "cluster_row"),
        (None, "cluster_row"),
    }


@pytest.mark.parametrize(
    ("table", "name"),
    [
        (PARTITIONS, "replicas"),
        (CLUSTER_TABLES[1], "broker_id"),
        (CLUSTER_TABLES[2], "partition_count"),
        (SCENARIOS, "scenario"),
    ],
    ids=["partitions", "brokers", "topics", "scenarios"],
)
def test_missing_and_other_columns_are_refused_by_name(spark: Any, table: FleetTable, name: str) -> None:
    frame, kind = spark.createDataFrame([], table.ddl), spark_type(table.schema.field(name).type)
    where = f"table {table.name} column {name}:"
    with pytest.raises(InputError, match=f"{where} no such column, expected one column {kind}"):
        conform(frame.drop(name), table)
    with pytest.raises(InputError, match=f"{where} found 2 columns of that name, expected one column {kind}"):
        conform(frame.withColumn("other", f.lit(1)).withColumnRenamed("other", name.upper()), table)
    with pytest.raises(InputError, match=f"{where} found 'date', expected type {kind}"):
        conform(frame.withColumn(name, f.current_date()), table)


def test_wrong_requests_are_refused_before_a_job(spark: Any) -> None:
    few = frame_of(spark, tables_of(generate(12, 3))["partitions"], "partitions").select(*MINIMAL)
    cases: list[tuple[Callable[[], Any], str]] = [
        (lambda: kframe.spark.whatif(few), "whatif: found no scenario, expected brokers, racks or scenarios"),
        (lambda: kframe.spark.whatif(few.drop("leader"), brokers=[1]), "partitions column leader: no such column"),
        (lambda: kframe.spark.sweep(few.drop("isr")), "table partitions column isr: no such column"),
        (lambda: kframe.spark.whatif(few, brokers=[1], table="impact"), "table: found 'impact', expected one of imp"),
        (lambda: kframe.spark.whatif(few, brokers=[1], scenarios=few), "scenarios: found brokers or racks too"),
        (lambda: kframe.spark.whatif({"topics": few}, brokers=[1]), "table partitions: no such table"),
        (lambda: kframe.spark.sweep(few, by="size"), "by: found 'size', expected one of offline"),
        (lambda: kframe.spark.sweep(few, depth=3), "depth: found 3, expected 1 or 2"),
        (lambda: kframe.spark.plan(few), "plan: found no goal"),
        (lambda: kframe.spark.validate({"partitions": few}), "validate: found no table brokers"),
    ]
    for call, message in cases:
        with pytest.raises(InputError) as caught:
            call()
        assert message in str(caught.value)
    with pytest.raises(ConfigError, match=r"min\.insync"):
        kframe.spark.sweep(few, config={"min.insync.replica": "2"})


def test_sweep_has_result_of_one_machine(spark: Any) -> None:
    snapshots = {
        "east": generate(200, 9, racks=3, health=HEALTH),
        "kraft": kraft_snapshot(Random(12)),
        "unknown": read_snapshot(example("healthy", "kcat")),
    }
    config = {"min.insync.replicas": "2"}
    expected = [
        row
        for name, snapshot in snapshots.items()
        for row in reference_sweep(snapshot, SweepStage(config, by=SortBy.UNDER_MIN_ISR), name)
    ]
    for partitions in ("2", "32"):  # as on 1 core and on 16, which share the KRaft cluster
        with configured(spark, {"spark.sql.shuffle.partitions": partitions}):
            swept = kframe.spark.sweep(frames(spark, snapshots), by="under-min-isr", config=config)
            assert_same_rows({"failures": rows_in(swept)}, {"failures": expected})
    kraft = frames(spark, {"kraft": snapshots["kraft"]})["partitions"]
    with configured(spark, {"spark.sql.shuffle.partitions": "32"}):
        assert {row["problem"] for row in rows_in(kframe.spark.sweep(kraft.drop("directories"), config=config))} == {
            None
        }


def test_number_out_of_range_fails_the_query(spark: Any) -> None:
    frame = spark.range(1).select(
        f.lit("t").alias("topic"), f.lit(2**40).alias("partition"), f.array().alias("replicas")
    )
    for ansi in ("true", "false"):
        with (
            configured(spark, {"spark.sql.ansi.enabled": ansi}),
            pytest.raises(Exception, match=r"column partition: found 1099511627776, expected a number of type int"),
        ):
            conform(frame, PARTITIONS).collect()


def test_case_of_names_matters_where_spark_says_so(spark: Any) -> None:
    frame = spark.createDataFrame([], CLUSTERS.ddl).withColumnRenamed("mode", "MODE")
    assert conform(frame, CLUSTERS).columns == CLUSTERS.schema.names
    brokers = spark.createDataFrame([], CLUSTER_TABLES[1].ddl).withColumnRenamed("broker_id", "BROKER_ID")
    with (
        configured(spark, {"spark.sql.caseSensitive": "true"}),
        pytest.raises(InputError, match="column broker_id: no such column"),
    ):
        conform(brokers, CLUSTER_TABLES[1])
