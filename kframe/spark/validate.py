"""Whether the clusters of a fleet hold together: the rules of ``kframe.spark.rules`` over its tables, on Spark."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from kframe.snapshot.facts import MIN_INSYNC_CONFIG
from kframe.spark.rules import VIOLATIONS, ClusterContext, RegisteredBrokers, shared_topic_ids, violations

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

#: Groups that the topics of a cluster are dealt into, so that no task holds a large cluster at once.
BUCKETS: Final = 16
#: What goes to every bucket of a cluster: a broker, a topic or the cluster a row, and null in all other columns.
_CONTEXT: Final = pa.schema(
    [("broker_id", pa.int32()), ("registered", pa.bool_()), ("rack", pa.string()), ("topic", pa.string()),
     ("partition_count", pa.int32()), ("min_insync", pa.int32())]
)  # fmt: skip


def validate(fleet: Mapping[str, DataFrame], buckets: int = BUCKETS) -> DataFrame:
    """Rows of VIOLATIONS for the tables ``partitions``, ``brokers``, ``topics`` and ``clusters`` of a fleet.

    Partitions are shuffled once, into ``buckets`` groups a cluster by topic; a group is held as a whole.
    """
    from pyspark.sql import functions as sql

    ddl = VIOLATIONS.ddl
    every = sql.explode(sql.sequence(sql.lit(0), sql.lit(buckets - 1)))
    own = sql.pmod(sql.xxhash64("topic"), sql.lit(buckets)).cast("int")
    default = sql.expr(f"try_cast(broker_default_configs['{MIN_INSYNC_CONFIG}'] as int)")
    around = (
        _around(fleet["brokers"], every, "broker_id", "registered", "rack")
        .unionByName(_around(fleet["topics"], own, "topic", "partition_count"), allowMissingColumns=True)
        .unionByName(_around(fleet["clusters"], every, default.alias("min_insync")), allowMissingColumns=True)
    )
    rows = fleet["partitions"].withColumn("bucket", own).groupBy("cluster", "bucket")
    violations_ = rows.cogroup(around.groupBy("cluster", "bucket")).applyInArrow(_violations, ddl)
    ids = fleet["topics"].select("cluster", "topic", "topic_id").groupBy("cluster").applyInArrow(_shared, ddl)
    return violations_.unionByName(ids)


def context_of(rows: pa.Table) -> ClusterContext:
    """What a bucket's partitions are held to, from its rows of brokers, topics and the cluster."""
    topics, least = rows.filter(rows["topic"].is_valid()), rows["min_insync"].drop_null()
    counts = dict(zip(topics["topic"].to_pylist(), topics["partition_count"].fill_null(0).to_pylist(), strict=True))
    brokers = RegisteredBrokers.of(rows.filter(rows["broker_id"].is_valid()))
    return ClusterContext(brokers, counts, least[0].as_py() if len(least) else 1)


def validate_whole(cluster: str, tables: Mapping[str, pa.Table]) -> pa.Table:
    """Rows of VIOLATIONS of a cluster whose tables are held whole."""
    topics = tables["topics"]
    counts = dict(zip(topics["topic"].to_pylist(), topics["partition_count"].fill_null(0).to_pylist(), strict=True))
    defaults = [dict(row or ()) for row in tables["clusters"]["broker_default_configs"].to_pylist()]
    least = next((value for config in defaults if (value := _int32(config.get(MIN_INSYNC_CONFIG, ""))) is not None), 1)
    around = ClusterContext(RegisteredBrokers.of(tables["brokers"]), counts, least)
    batches = [*violations(cluster, tables["partitions"], around), *shared_topic_ids(cluster, topics)]
    return pa.Table.from_batches(batches, VIOLATIONS.schema)


def _int32(text: str) -> int | None:
    """As Spark's ``try_cast`` to int."""
    try:
        value = int(text)
    except ValueError:
        return None
    return value if -(2**31) <= value < 2**31 else None


def _around(table: DataFrame, bucket: Any, *columns: Any) -> DataFrame:
    return table.select("cluster", bucket.alias("bucket"), *columns)


def _violations(key: tuple[Any, ...], rows: pa.Table, around: pa.Table) -> pa.Table:
    cluster = key[0].as_py()
    context = context_of(around.select(_CONTEXT.names))
    return pa.Table.from_batches(violations(cluster, rows, context), VIOLATIONS.schema)


def _shared(key: tuple[Any, ...], topics: pa.Table) -> pa.Table:
    return pa.Table.from_batches(shared_topic_ids(key[0].as_py(), topics), VIOLATIONS.schema)
