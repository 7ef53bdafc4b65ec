"""DataFrames of any caller: columns in any order and case, clusters and scenarios twice, nulls, session settings."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from pyspark.sql import functions as f

from kframe.errors import InputError
from kframe.model.columns import Ragged
from kframe.snapshot import PartitionFacts, Snapshot, TopicFacts
from kframe.snapshot.generate import generate
from kframe.spark import failover
from kframe.spark.frames import conform
from kframe.spark.reading import WHOLE_TABLES
from kframe.spark.rows import rows_of
from kframe.spark.scenarios import each_rack
from kframe.spark.schema import CLUSTERS, PARTITIONS, SCENARIOS, FleetTable, spark_type
from kframe.spark.session import interpreted
from kframe.spark.sweeping import sweep
from kframe.spark.validate import validate
from tests.spark.sharding import Rows, scenario

Tables: TypeAlias = dict[str, pa.Table]
Frames: TypeAlias = dict[str, Any]

SCENARIO_ROWS = [scenario(brokers=[1], name="one"), scenario("elect", election="preferred", name="elect")]
EMPTY = PartitionFacts(Ragged.empty(0), np.empty(0, np.int32), Ragged.empty(0))


def fleet() -> dict[str, Snapshot]:
    """Return two clusters with racks, two without, one without topics and one without brokers and topics."""
    plain = generate(12, 3, seed=3)
    no_topics = replace(plain, topics=TopicFacts((), np.empty(0, np.int32)), partitions=EMPTY)
    return {
        "east": generate(30, 4, racks=2, seed=1), "north": replace(no_topics, brokers=()), "south": no_topics,
        "west": generate(20, 3, racks=3, seed=2),
        "bare": plain, "plain": plain,
    }  # fmt: skip


def tables() -> Tables:
    """Return the tables of the fleet, and scenarios for every cluster."""
    fleet_tables = {
        table.name: pa.Table.from_batches(
            [batch for name, snapshot in fleet().items() for batch in rows_of(snapshot, name, table)], table.schema
        )
        for table in WHOLE_TABLES
    }
    return {**fleet_tables, SCENARIOS.name: pa.Table.from_pylist(SCENARIO_ROWS, SCENARIOS.schema)}


def frames(spark: Any, rows: Mapping[str, pa.Table]) -> Frames:
    return {table.name: spark.createDataFrame(rows[table.name], table.ddl) for table in (*WHOLE_TABLES, SCENARIOS)}


def results(frames_: Frames) -> dict[str, Rows]:
    """Return results of the public functions on frames, with the problems, each in a stable order."""
    partitions, brokers, clusters, scenarios = (
        frames_[name] for name in ("partitions", "brokers", "clusters", "scenarios")
    )
    played = failover.played(partitions, brokers, clusters, scenarios).persist()
    facts = failover.cluster_facts(brokers, clusters)
    result = {
        "impacts": failover.impacts(played), "requests": failover.requests(played, facts),
        "problems": failover.problems(played), "sweep": sweep(partitions, brokers, clusters),
        "validate": validate(frames_), "each_rack": each_rack(brokers),
    }  # fmt: skip
    with interpreted(partitions.sparkSession):
        rows = {name: sorted(frame.toArrow().to_pylist(), key=repr) for name, frame in result.items()}
    played.unpersist()
    return rows


@pytest.fixture(scope="module")
def expected(spark: Any) -> dict[str, Rows]:
    return results(frames(spark, tables()))


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


def test_every_cluster_has_a_row(expected: dict[str, Rows]) -> None:
    assert {row["cluster"] for row in expected["impacts"]} | {row["cluster"] for row in expected["problems"]} == {
        *fleet()
    }
    assert {row["cluster"] for row in expected["sweep"]} == {*fleet()} - {"north"}
    assert {row["cluster"] for row in expected["each_rack"]} == {"east", "west"}


@pytest.mark.parametrize("settings", [
    pytest.param({"spark.sql.execution.arrow.useLargeVarTypes": "true"}, id="large types"),
    pytest.param({"spark.sql.execution.arrow.maxRecordsPerBatch": "1"}, id="batches of one row"),
    pytest.param({"spark.sql.ansi.enabled": "false"}, id="without ANSI"),
])  # fmt: skip
def test_results_do_not_depend_on_settings(spark: Any, expected: dict[str, Rows], settings: dict[str, str]) -> None:
    with configured(spark, settings):
        assert results(frames(spark, tables())) == expected


def test_columns_may_have_any_order_case_and_integer_width(spark: Any, expected: dict[str, Rows]) -> None:
    def other(frame: Any) -> Any:
        return frame.select(
            *(f.col(name).alias(name.upper()) for name in reversed(frame.columns)), f.lit(1).alias("more")
        )

    changed = {name: other(frame) for name, frame in frames(spark, tables()).items()}
    changed["partitions"] = (
        changed["partitions"].drop("DIRECTORIES").withColumn("PARTITION", f.col("partition").cast("bigint"))
        .withColumn("ISR", f.col("isr").cast("array<bigint>"))
    )  # fmt: skip
    assert results(changed) == expected


def replaced(table: pa.Table, row: int, **values: Any) -> pa.Table:
    rows = table.to_pylist()
    rows[row] = {**rows[row], **values}
    return pa.Table.from_pylist(rows, table.schema)


def first_of(table: pa.Table, cluster: str) -> int:
    names: list[str] = table["cluster"].to_pylist()
    return names.index(cluster)


def broken_fleet() -> Tables:
    """Return the fleet with ``bare`` twice among the clusters, a null in a list of partitions of ``east``, one in an
    endpoint of ``south``, one among the configs of ``west``, partitions, brokers and topics of unknown clusters, and
    scenarios that are there twice or for an unknown cluster."""
    broken = tables()
    partitions, brokers, topics, clusters = (broken[table.name] for table in WHOLE_TABLES)
    lost = [{**partitions.to_pylist()[0], "cluster": name} for name in ("lost", None)]
    partitions = replaced(partitions, first_of(partitions, "east"), isr=[0, None])
    defaults = [("min.insync.replicas", None)]
    scenarios = [
        *SCENARIO_ROWS, {**scenario(brokers=[1], name="twice"), "cluster": "plain"},
        {**scenario(brokers=[2], name="twice"), "cluster": "plain"}, {**scenario(name="alone"), "cluster": "nowhere"},
    ]  # fmt: skip
    return {
        "partitions": pa.concat_tables([partitions, pa.Table.from_pylist(lost, partitions.schema)]),
        "brokers": replaced(brokers, first_of(brokers, "south"), endpoints=[None]),
        "topics": topics,
        "clusters": pa.concat_tables(
            [
                replaced(clusters, first_of(clusters, "west"), broker_default_configs=defaults),
                clusters.slice(first_of(clusters, "bare"), 1),
            ]
        ),
        SCENARIOS.name: pa.Table.from_pylist(scenarios, SCENARIOS.schema),
    }


def test_problem_affects_its_cluster_alone(spark: Any, expected: dict[str, Rows]) -> None:
    actual = results(frames(spark, broken_fleet()))
    problems = {(row["cluster"], row["scenario"]): row["problem"] for row in actual["problems"]}
    messages = {
        "bare": "cluster bare table clusters: found 2 rows, expected one row of each cluster",
        "east": "cluster east field isr: found 1 null in lists, expected lists without nulls",
        "south": "cluster south table brokers broker 0 field endpoints: found a null in them",
        "west": "cluster west field broker_default_configs: found a null value of min.insync.replicas",
    }
    for name, message in messages.items():
        assert all(problems.pop((name, row["scenario"])).startswith(message) for row in SCENARIO_ROWS)
    assert {key: text.partition(":")[0] for key, text in problems.items()} == {
        ("lost", None): "rows of cluster lost, which the clusters table lacks",
        (None, None): "rows without a cluster",
        ("nowhere", "alone"): "rows of cluster nowhere, which the clusters table lacks",
        ("north", "one"): "brokers", ("plain", "twice"): "table scenarios",
    }  # fmt: skip
    for name in ("impacts", "requests"):
        assert actual[name] == [row for row in expected[name] if row["cluster"] in ("north", "plain")]
    swept = {row["cluster"]: row["problem"] for row in actual["sweep"] if row["problem"] is not None}
    assert {name: swept.pop(name).startswith(message) for name, message in messages.items()} == dict.fromkeys(
        messages, True
    )
    assert swept.keys() == {"lost", None}
    assert [row for row in actual["sweep"] if row["problem"] is None] == [
        row for row in expected["sweep"] if row["cluster"] == "plain"
    ]
    violations = {(row["cluster"], row["rule"], row["actual"]) for row in actual["validate"]}
    assert violations == {
        ("bare", "cluster_row", "2 rows"),
        ("west", "cluster_row", f"{messages['west']}, expected a value of each setting"),
        ("east", "null_in_list", "null in a list"), ("lost", "cluster_row", "no row of the cluster"),
        (None, "cluster_row", "no row of the cluster"),
    }  # fmt: skip


def test_null_in_each_column_fails_no_other_cluster(spark: Any, expected: dict[str, Rows]) -> None:
    """A row of ``south`` has a null in one column. A cluster for each column of each table would take Spark too long,
    so each column has a copy of the cluster."""
    rows, names = broken_columns(tables(), "plain")
    actual = results(frames(spark, rows))
    for name in ("impacts", "requests", "sweep", "problems"):
        assert [row for row in actual[name] if row["cluster"] not in names] == expected[name], name
    answered = {row["cluster"] for name in ("impacts", "problems", "sweep") for row in actual[name]}
    assert {name for name in names if name not in answered} == set()


def broken_columns(rows: Tables, cluster: str) -> tuple[Tables, set[str]]:
    """Return tables with a copy of a cluster for each column, in whose first row that column, or the first value of its
    list, is null. Also the names of the copies."""
    names, parts = set(), {table.name: [rows[table.name]] for table in (*WHOLE_TABLES, SCENARIOS)}
    for changed in WHOLE_TABLES:
        for field in changed.schema:
            if field.name == "cluster":
                continue
            for value in [None, [None]] if pa.types.is_list(field.type) else [None]:
                name = f"{changed.name}-{field.name}-{'item' if value else 'null'}"
                names.add(name)
                for table in WHOLE_TABLES:
                    own = rows[table.name].filter(pc.equal(rows[table.name]["cluster"], cluster))
                    if table == changed:
                        own = replaced(own, 0, **{field.name: value})
                    copied = pa.array([name] * own.num_rows, pa.string())
                    parts[table.name].append(own.set_column(0, "cluster", copied))
    return {name: pa.concat_tables(tables_) for name, tables_ in parts.items()}, names


@pytest.mark.parametrize("table", [*WHOLE_TABLES, SCENARIOS], ids=lambda table: table.name)
def test_other_columns_are_refused(spark: Any, table: FleetTable) -> None:
    frame = spark.createDataFrame([], table.ddl)
    name, kind = table.schema.names[1], spark_type(table.schema.field(1).type)
    where = f"table {table.name} column {name}:"
    with pytest.raises(InputError, match=f"{where} no such column, expected one column {kind}"):
        conform(frame.drop(name), table)
    with pytest.raises(InputError, match=f"{where} found 2 columns of that name, expected one column {kind}"):
        conform(frame.withColumn("other", f.lit(1)).withColumnRenamed("other", name.upper()), table)
    with pytest.raises(InputError, match=f"{where} found 'date', expected type {kind}"):
        conform(frame.withColumn(name, f.current_date()), table)


def test_number_out_of_range_fails_the_query(spark: Any) -> None:
    frame = spark.range(1).withColumnRenamed("id", "partition").withColumn("partition", f.lit(2**40))
    row = {field.name: f.lit(None).cast(spark_type(field.type)) for field in PARTITIONS.schema}
    wide = frame.select(
        *({**row, "partition": f.col("partition")}[name].alias(name) for name in PARTITIONS.schema.names)
    )
    for ansi in ("true", "false"):
        with (
            configured(spark, {"spark.sql.ansi.enabled": ansi}),
            pytest.raises(Exception, match=r"column partition: found 1099511627776, expected a number of type int"),
        ):
            conform(wide, PARTITIONS).collect()


def test_case_of_names_matters_where_spark_says_so(spark: Any) -> None:
    frame = spark.createDataFrame([], CLUSTERS.ddl).withColumnRenamed("mode", "MODE")
    assert conform(frame, CLUSTERS).columns == CLUSTERS.schema.names
    with (
        configured(spark, {"spark.sql.caseSensitive": "true"}),
        pytest.raises(InputError, match="column cluster_id: no such column"),
    ):
        conform(frame.withColumnRenamed("cluster_id", "CLUSTER_ID"), CLUSTERS)
