"""Validate the clusters of a fleet on Spark by the rules of ``kframe.spark.rules``."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from kframe.snapshot.facts import MIN_INSYNC_CONFIG
from kframe.spark.kraft import KRAFT, ZOOKEEPER, has_elr, is_kraft, min_insync_of_node
from kframe.spark.rules import VIOLATIONS, ClusterContext, RegisteredBrokers, shared_topic_ids, violations
from kframe.spark.schema import FLAG, INT, TEXT, FleetTable

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

#: Groups that the topics of a cluster are dealt into, so that no task holds a large cluster at once.
BUCKETS: Final = 16
#: What goes to every bucket of a cluster: a broker, a topic or the cluster a row, and null in all other columns.
_CONTEXT: Final = pa.schema(
    [("broker_id", pa.int32()), ("registered", pa.bool_()), ("fenced", pa.bool_()), ("rack", pa.string()),
     ("topic", pa.string()), ("partition_count", pa.int32()), ("min_insync", pa.int32()), ("mode", pa.string()),
     ("elr", pa.bool_())]
)  # fmt: skip

#: The result of ``settings_of`` for each cluster.
_SETTINGS: Final = FleetTable(
    "settings", pa.schema([("cluster", TEXT), ("min_insync", INT), ("mode", TEXT), ("elr", FLAG)])
)


def validate(fleet: Mapping[str, DataFrame], buckets: int = BUCKETS) -> DataFrame:
    """Rows of VIOLATIONS for the tables ``partitions``, ``brokers``, ``topics`` and ``clusters`` of a fleet.

    Partitions are shuffled once, into ``buckets`` groups a cluster by topic; a group is held as a whole.
    """
    from pyspark.sql import functions as sql

    ddl = VIOLATIONS.ddl
    all_buckets = sql.explode(sql.sequence(sql.lit(0), sql.lit(buckets - 1)))
    topic_bucket = sql.pmod(sql.xxhash64("topic"), sql.lit(buckets)).cast("int")
    settings = fleet["clusters"].mapInArrow(_settings, _SETTINGS.ddl)
    context_rows = (
        _context_rows(fleet["brokers"], all_buckets, "broker_id", "registered", "fenced", "rack")
        .unionByName(_context_rows(fleet["topics"], topic_bucket, "topic", "partition_count"), allowMissingColumns=True)
        .unionByName(_context_rows(settings, all_buckets, "min_insync", "mode", "elr"), allowMissingColumns=True)
    )
    rows = fleet["partitions"].withColumn("bucket", topic_bucket).groupBy("cluster", "bucket")
    violations_ = rows.cogroup(context_rows.groupBy("cluster", "bucket")).applyInArrow(_violations, ddl)
    topics = fleet["topics"].select("cluster", "topic", "topic_id")
    modes = sql.broadcast(settings.select("cluster", "mode"))
    ids = topics.join(modes, "cluster", "left").groupBy("cluster").applyInArrow(_shared, ddl)
    return violations_.unionByName(ids)


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
    defaults = dict(row["broker_default_configs"] or ())
    text = (min_insync_of_node(row) if kraft_mode else None) or defaults.get(MIN_INSYNC_CONFIG, "")
    value = _int32(text)
    min_isr = 1 if value is None else value
    return (min_isr, KRAFT, has_elr(row)) if kraft_mode else (min_isr, ZOOKEEPER, None)


def _settings(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        rows = [(row["cluster"], *settings_of(row)) for row in batch.to_pylist()]
        columns = zip(*rows, strict=True) if rows else ((),) * len(_SETTINGS.schema)
        arrays = [pa.array(column, field.type) for column, field in zip(columns, _SETTINGS.schema, strict=True)]
        yield pa.RecordBatch.from_arrays(arrays, schema=_SETTINGS.schema)


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
    cluster = key[0].as_py()
    context = context_of(context_rows.select(_CONTEXT.names))
    return pa.Table.from_batches(violations(cluster, rows, context), VIOLATIONS.schema)


def _shared(key: tuple[Any, ...], topics: pa.Table) -> pa.Table:
    mode = topics["mode"][0].as_py() or ZOOKEEPER
    return pa.Table.from_batches(shared_topic_ids(key[0].as_py(), topics, mode), VIOLATIONS.schema)
