"""Validate the clusters of a fleet on Spark by the rules of ``kframe.spark.rules``."""

from __future__ import annotations

import functools
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from kframe.errors import SnapshotError
from kframe.snapshot.facts import MIN_INSYNC_CONFIG
from kframe.spark.frames import CLUSTER_ROWS, conform, of_cogroup, of_group, unique_clusters
from kframe.spark.kraft import KRAFT, ZOOKEEPER, has_elr, is_kraft, min_insync_of_node
from kframe.spark.rows import configs_of
from kframe.spark.rules import (
    RULES,
    VIOLATIONS,
    ClusterContext,
    RegisteredBrokers,
    shared_topic_ids,
    violations,
    without_row,
)
from kframe.spark.schema import BROKERS, CLUSTERS, FLAG, INT, PARTITIONS, TEXT, TOPICS, FleetTable, spark_type

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

#: Groups that the topics of a cluster are dealt into, so that no task holds a large cluster at once.
BUCKETS: Final = 16
#: What goes to every bucket of a cluster: a broker, a topic or the cluster a row, and null in all other columns.
_CONTEXT: Final = pa.schema(
    [("broker_id", pa.int32()), ("registered", pa.bool_()), ("fenced", pa.bool_()), ("rack", pa.string()),
     ("topic", pa.string()), ("partition_count", pa.int32()), ("min_insync", pa.int32()), ("mode", pa.string()),
     ("elr", pa.bool_()), ("problem", pa.string())]
)  # fmt: skip

#: The result of ``settings_of`` for each cluster, or why it has none.
_SETTINGS: Final = FleetTable(
    "settings",
    pa.schema([("cluster", TEXT), ("min_insync", INT), ("mode", TEXT), ("elr", FLAG), ("problem", TEXT)]),
)


def validate(fleet: Mapping[str, DataFrame], buckets: int = BUCKETS) -> DataFrame:
    """Rows of VIOLATIONS for the tables ``partitions``, ``brokers``, ``topics`` and ``clusters`` of a fleet.

    Partitions are shuffled once, into ``buckets`` groups a cluster by topic; a group is held as a whole. A cluster
    without one valid row in ``clusters`` has violations of ``cluster_row`` only. Raises InputError for a frame without
    the columns of its table.
    """
    from pyspark.sql import functions as sql

    ddl = VIOLATIONS.ddl
    partitions, brokers, topics = (conform(fleet[table.name], table) for table in (PARTITIONS, BROKERS, TOPICS))
    all_buckets = sql.explode(sql.sequence(sql.lit(0), sql.lit(buckets - 1)))
    topic_bucket = sql.pmod(sql.xxhash64("topic"), sql.lit(buckets)).cast("int")
    settings = unique_clusters(fleet["clusters"]).mapInArrow(_settings, _SETTINGS.ddl)
    context_rows = (
        _context_rows(brokers, all_buckets, "broker_id", "registered", "fenced", "rack")
        .unionByName(_context_rows(topics, topic_bucket, "topic", "partition_count"), allowMissingColumns=True)
        .unionByName(
            _context_rows(settings, all_buckets, "min_insync", "mode", "elr", "problem"), allowMissingColumns=True
        )
    )
    rows = partitions.withColumn("bucket", topic_bucket).groupBy("cluster", "bucket")
    violations_ = rows.cogroup(context_rows.groupBy("cluster", "bucket")).applyInArrow(of_cogroup(_violations), ddl)
    modes = sql.broadcast(settings.where("problem is null").select("cluster", "mode"))
    with_modes = topics.select("cluster", "topic", "topic_id").join(modes, "cluster")
    ids = with_modes.groupBy("cluster").applyInArrow(of_group(_shared), ddl)
    problems = _report(settings.where("problem is not null"), "cluster_row", sql.col("problem"))
    nulls = [
        _report(frame.where(condition), "key_unknown", sql.lit(f"null in table {table.name}"))
        for frame, table, condition in (
            (brokers, BROKERS, "cluster is null or broker_id is null"),
            (topics, TOPICS, "cluster is null or topic is null or partition_count is null"),
            (conform(fleet["clusters"], CLUSTERS), CLUSTERS, "cluster is null"),
        )
    ]
    return functools.reduce(lambda left, right: left.unionByName(right), (violations_, ids, problems, *nulls))


def _report(frame: DataFrame, rule: str, actual: Column) -> DataFrame:
    """A row of VIOLATIONS for each row of a frame, with its topic if it has one."""
    from pyspark.sql import functions as sql

    texts = {"rule": rule, "severity": RULES[rule].severity, "expected": RULES[rule].expected}
    known = {name: sql.lit(text) for name, text in texts.items()}
    known |= {"cluster": sql.col("cluster"), "actual": actual}
    if "topic" in frame.columns:
        known["topic"] = sql.col("topic")
    missing = sql.lit(None)
    return frame.select(*(known.get(field.name, missing).cast(spark_type(field.type)).alias(field.name)
                          for field in VIOLATIONS.schema))  # fmt: skip


def context_of(rows: pa.Table) -> ClusterContext:
    """The context of a bucket's partitions, from its rows of brokers, topics and the cluster."""
    topics, settings = rows.filter(rows["topic"].is_valid()), rows.filter(rows["mode"].is_valid()).to_pylist()
    counts = dict(zip(topics["topic"].to_pylist(), topics["partition_count"].fill_null(0).to_pylist(), strict=True))
    brokers = RegisteredBrokers.of(rows.filter(rows["broker_id"].is_valid()))
    min_isr, mode, elr = (settings[0][name] for name in ("min_insync", "mode", "elr")) if settings else (1, None, None)
    return ClusterContext(brokers, counts, min_isr, mode == KRAFT, elr)


def validate_whole(cluster: str, tables: Mapping[str, pa.Table]) -> pa.Table:
    """Rows of VIOLATIONS of a cluster whose tables are complete."""
    topics = tables["topics"]
    counts = dict(zip(topics["topic"].to_pylist(), topics["partition_count"].fill_null(0).to_pylist(), strict=True))
    (row,) = tables["clusters"].to_pylist()
    min_isr, mode, elr = settings_of(row)
    context = ClusterContext(RegisteredBrokers.of(tables["brokers"]), counts, min_isr, mode == KRAFT, elr)
    batches = [*violations(cluster, tables["partitions"], context), *shared_topic_ids(cluster, topics, mode)]
    return pa.Table.from_batches(batches, VIOLATIONS.schema)


def settings_of(row: Mapping[str, Any]) -> tuple[int, str, bool | None]:
    """The default of ``min.insync.replicas``, the mode, and whether eligible leader replicas are enabled (None: not
    known) of a row of CLUSTERS."""
    kraft_mode = is_kraft(row)
    defaults = configs_of(row["broker_default_configs"], f"cluster {row['cluster']} field broker_default_configs") or {}
    text = (min_insync_of_node(row) if kraft_mode else None) or defaults.get(MIN_INSYNC_CONFIG, "")
    value = _int32(text)
    min_isr = 1 if value is None else value
    return (min_isr, KRAFT, has_elr(row)) if kraft_mode else (min_isr, ZOOKEEPER, None)


def _settings(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        rows = [(row["cluster"], *_settings_or_problem(row)) for row in batch.to_pylist()]
        columns = zip(*rows, strict=True) if rows else ((),) * len(_SETTINGS.schema)
        arrays = [pa.array(column, field.type) for column, field in zip(columns, _SETTINGS.schema, strict=True)]
        yield pa.RecordBatch.from_arrays(arrays, schema=_SETTINGS.schema)


def _settings_or_problem(row: Mapping[str, Any]) -> tuple[int | None, str | None, bool | None, str | None]:
    if row[CLUSTER_ROWS] != 1:
        return None, None, None, f"{row[CLUSTER_ROWS]} rows"
    try:
        return *settings_of(row), None
    except SnapshotError as problem:
        return None, None, None, str(problem)


def _int32(text: str) -> int | None:
    """The number in a text; None for no int32."""
    try:
        value = int(text)
    except ValueError:
        return None
    return value if -(2**31) <= value < 2**31 else None


def _context_rows(table: DataFrame, bucket: Any, *columns: Any) -> DataFrame:
    return table.select("cluster", bucket.alias("bucket"), *columns)


def _violations(key: tuple[Any, ...], rows: pa.Table, context_rows: pa.Table) -> pa.Table:
    cluster, bucket = key[0].as_py(), key[1].as_py()
    context_rows = context_rows.select(_CONTEXT.names)
    if pc.any(context_rows["problem"].is_valid()).as_py():
        return VIOLATIONS.schema.empty_table()
    if not pc.any(context_rows["mode"].is_valid()).as_py():
        topics = {
            *rows["topic"].to_pylist(),
            *context_rows.filter(context_rows["topic"].is_valid())["topic"].to_pylist(),
        }
        named = sorted(topics, key=lambda topic: topic or "")
        return without_row(cluster, named if named or bucket else [None])
    context = context_of(context_rows)
    return pa.Table.from_batches(violations(cluster, rows, context), VIOLATIONS.schema)


def _shared(key: tuple[Any, ...], topics: pa.Table) -> pa.Table:
    mode = topics["mode"][0].as_py()
    return pa.Table.from_batches(shared_topic_ids(key[0].as_py(), topics, mode), VIOLATIONS.schema)
