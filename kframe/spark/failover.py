"""Failovers of a fleet as frames: partitions, brokers, clusters and scenarios in, outcomes out.

``played`` runs the engine; the other functions read its frame, so that it can be cached or written in between. The
facts of a cluster are joined to its shards by broadcast: partition rows are never shuffled. Columns are those of the
tables in ``schema``, ``play`` and ``requests``.
"""

from __future__ import annotations

import functools
import logging
from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from kframe.spark.frames import CLUSTER_ROWS, conform, unique_clusters
from kframe.spark.kraft import KRAFT
from kframe.spark.play import (
    ANNOUNCED,
    BROKER_COUNTS,
    CHANGES,
    CONDITIONS,
    IMPACTS,
    PARTS,
    PLAYED,
    TO_PLAY,
    EngineSettings,
    play,
)
from kframe.spark.requests import REQUESTS, encode
from kframe.spark.schema import BROKERS, KRAFT_FACTS, PARTITIONS, SCENARIOS, FleetTable
from kframe.spark.shards import SHARDS, TARGET_ROWS, pack

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import Column, DataFrame


def shards(partitions: DataFrame, clusters: DataFrame, *, target: int = TARGET_ROWS, whole: bool = False) -> DataFrame:
    """Rows of PARTITIONS as rows of SHARDS, without a shuffle of partition rows.

    One shard holds all topics under deletion of a cluster, since the deletion of a topic depends on all of its
    partitions. That shard exists even without such topics, so that scenarios also run on a cluster without partitions.
    With ``whole`` each cluster is one shard, for selectors that read the whole batch of an election.
    """
    from pyspark.sql import functions as f

    partitions = conform(partitions, PARTITIONS)

    def packed(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        return pack(batches, target)

    empty = _empty_shards(clusters)

    def merge_shards(frame: DataFrame) -> DataFrame:
        return (
            frame.mapInArrow(packed, SHARDS.ddl).unionByName(empty).groupBy("cluster")
            .agg(f.sum("rows").alias("rows"), f.max("controller_epoch").alias("controller_epoch"),
                 f.flatten(f.collect_list("pieces")).alias("pieces"))
        )  # fmt: skip

    if whole:
        return merge_shards(partitions)
    # In this form, Spark skips files whose statistics show no topic under deletion.
    deleting, remaining = partitions.where("deleting"), partitions.where("deleting is null or not deleting")
    return remaining.mapInArrow(packed, SHARDS.ddl).unionByName(merge_shards(deleting))


def by_mode(partitions: DataFrame, clusters: DataFrame) -> tuple[tuple[DataFrame, DataFrame], ...]:
    """Partitions and clusters in ZooKeeper mode, and those of KRaft clusters. A KRaft cluster is not cut into shards:
    the replicas of a topic's partition 0 bound ``min.insync.replicas`` of all its partitions."""
    from pyspark.sql import functions as f

    zookeeper, kraft = split_by_mode(clusters)
    names = f.broadcast(kraft.select("cluster"))
    partitions_by_mode = (
        partitions.join(names, "cluster", how).select(*partitions.columns) for how in ("left_anti", "left_semi")
    )
    return tuple(zip(partitions_by_mode, (zookeeper, kraft), strict=True))


def split_by_mode(frame: DataFrame) -> tuple[DataFrame, DataFrame]:
    """The rows of clusters in ZooKeeper mode, and those of KRaft clusters, by a column ``mode``. Null is ZooKeeper."""
    from pyspark.sql import functions as f

    return frame.where(f.col("mode").isNull() | (f.col("mode") != KRAFT)), frame.where(f.col("mode") == KRAFT)


def cluster_facts(brokers: DataFrame, clusters: DataFrame) -> DataFrame:
    """A row a cluster with the facts that each of its parts needs. These are its brokers as a list, its controller,
    its defaults, its mode and KRAFT_FACTS. CLUSTER_ROWS tells where several rows of ``clusters`` name the cluster."""
    from pyspark.sql import functions as f

    lists = conform(brokers, BROKERS).groupBy("cluster").agg(_collected(BROKERS).alias("brokers"))
    known = unique_clusters(clusters).select(
        "cluster", "controller_id", "broker_default_configs", "controller_epoch", "mode", *KRAFT_FACTS.names,
        CLUSTER_ROWS,
    )  # fmt: skip
    joined = known.join(lists, "cluster", "left")
    return joined.withColumn("brokers", f.coalesce("brokers", f.array()))


def played(
    partitions: DataFrame,
    brokers: DataFrame,
    clusters: DataFrame,
    scenarios: DataFrame,
    engine: EngineSettings | None = None,
    *,
    target: int = TARGET_ROWS,
    whole: bool | None = None,
) -> DataFrame:
    """Every scenario played on every shard of its clusters. The result has rows of PLAYED.

    Rows of a cluster that is not among ``clusters``, or twice, are reported as a problem, and so is a scenario twice.
    ``whole`` is as in ``shards``. The scenarios of ``needs_whole`` require it. KRaft clusters are always played whole.
    By default it is set where selectors may read the whole batch of an election
    (``EngineSettings.needs_whole_clusters``).
    Raises InputError for a frame without the columns of its table.
    """
    from pyspark.sql import functions as f

    how = EngineSettings() if engine is None else engine
    whole = how.needs_whole_clusters() if whole is None else whole
    partitions, brokers = conform(partitions, PARTITIONS), conform(brokers, BROKERS)
    scenarios, known = conform(scenarios, SCENARIOS), unique_clusters(clusters)
    if whole:
        parts = shards(partitions, known, target=target, whole=True)
    else:
        zookeeper, kraft = by_mode(partitions, known)
        parts = shards(*zookeeper, target=target).unionByName(shards(*kraft, target=target, whole=True))
    listed = scenarios_of(known, scenarios)
    parts = parts.unionByName(without_partitions((brokers, clusters, listed), known))
    facts = cluster_facts(brokers, clusters)
    shards_with_facts = parts.drop("controller_epoch").join(f.broadcast(facts), "cluster", "left")
    by_cluster = listed.groupBy("cluster").agg(_collected(SCENARIOS).alias("scenarios"))
    to_play = shards_with_facts.join(f.broadcast(by_cluster), "cluster", "left").select(*TO_PLAY.schema.names)

    def plays(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        # The rows of a what-if report an election without a leader; executors need not log it as well.
        logging.getLogger("kframe.statechange").setLevel(logging.CRITICAL)
        return play(batches, how, whole=whole)

    return to_play.mapInArrow(plays, PLAYED.ddl)


def without_partitions(frames: Iterable[DataFrame], known: DataFrame) -> DataFrame:
    """An empty shard of each cluster that a frame names and ``known`` lacks, so that its problem is reported."""
    from pyspark.sql import functions as f

    names = functools.reduce(lambda left, right: left.unionByName(right), (frame.select("cluster") for frame in frames))
    unlisted = names.distinct().join(f.broadcast(known.select("cluster")), "cluster", "left_anti")
    return _empty_shards(unlisted)


def _empty_shards(clusters: DataFrame) -> DataFrame:
    """A row of SHARDS without partitions for each row of a frame."""
    from pyspark.sql import functions as f

    return clusters.select(
        "cluster", f.lit(0).cast("bigint").alias("rows"), f.lit(None).cast("int").alias("controller_epoch"),
        f.array().cast("array<binary>").alias("pieces"),
    )  # fmt: skip


def changes(played: DataFrame) -> DataFrame:
    """The changed partitions, a row each: CHANGES."""
    return _rows(played, CHANGES)


def broker_counts(played: DataFrame) -> DataFrame:
    """The replicas and leaders of each broker before and after: BROKER_COUNTS."""
    group_columns = ["broker_id", "rack", "registered_before", "registered_after"]
    return _summed(_rows(played, BROKER_COUNTS), BROKER_COUNTS, group_columns)


def conditions(played: DataFrame) -> DataFrame:
    """The number of partitions in each condition after each step: CONDITIONS. Null if a shard lacks the column."""
    return _summed(_rows(played, CONDITIONS), CONDITIONS, ["step", "name"])


def impacts(played: DataFrame) -> DataFrame:
    """The outcome of each scenario in numbers of partitions: IMPACTS. Null if a shard lacks the column."""
    return _summed(_rows(played, IMPACTS), IMPACTS, ["rules"])


def problems(played: DataFrame) -> DataFrame:
    """Why scenarios could not be played on a cluster, each reason once. These scenarios have no other results."""
    return played.where("problem is not null").select("cluster", "scenario", "problem").distinct()


def requests(
    played: DataFrame, facts: DataFrame, engine: EngineSettings | None = None, *, keep: bool = False
) -> DataFrame:
    """The requests to each broker: REQUESTS. ``facts`` are ``cluster_facts``. With ``keep`` encoded bodies are kept."""
    from pyspark.sql import functions as f

    config = dict((engine or EngineSettings()).config)
    key = ["cluster", "scenario", "step", "cause", "round"]
    batches = (
        _rows(played, ANNOUNCED)
        .groupBy(*key)
        .agg(f.bool_and("sent").alias("sent"), f.collect_list("data").alias("data"))
    )
    whole = batches.where("sent").drop("sent").join(f.broadcast(facts), "cluster")

    def encoded(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        return encode(batches, config, keep)

    return whole.mapInArrow(encoded, REQUESTS.ddl)


def failover(
    partitions: DataFrame,
    brokers: DataFrame,
    clusters: DataFrame,
    scenarios: DataFrame,
    engine: EngineSettings | None = None,
    **how: Any,
) -> DataFrame:
    """The changed partitions of every scenario. These are the ``changes`` of ``played``. Nothing else is computed."""
    only_changes = replace(engine or EngineSettings(), parts=(CHANGES.name,))
    return changes(played(partitions, brokers, clusters, scenarios, only_changes, **how))


def _rows(played: DataFrame, part: FleetTable) -> DataFrame:
    """The rows of a part, without scenarios that a part of the cluster could not play."""
    from pyspark.sql import Window
    from pyspark.sql import functions as f

    assert part.name in PARTS
    failed = f.bool_or(f.col("problem").isNotNull()).over(Window.partitionBy("cluster", "scenario"))
    complete = played.select("cluster", "scenario", part.name, failed.alias("failed")).where(~f.col("failed"))
    return complete.select("cluster", "scenario", f.inline(part.name)).select(*part.schema.names)


def _summed(rows: DataFrame, table: FleetTable, group_columns: list[str]) -> DataFrame:
    """Counts added up over the shards."""
    key = ["cluster", "scenario", *group_columns]
    return rows.groupBy(*key).agg(*(total(name) for name in table.schema.names if name not in key))


def total(name: str) -> Column:
    """The sum of a column. Null if any of it is."""
    from pyspark.sql import functions as f

    return f.when(f.count(name) == f.count(f.lit(1)), f.sum(name)).alias(name)


def _collected(table: FleetTable) -> Column:
    from pyspark.sql import functions as f

    return f.collect_list(f.struct(*table.schema.names[1:]))


def scenarios_of(clusters: DataFrame, scenarios: DataFrame) -> DataFrame:
    """The scenarios of each cluster, a row each: its own, and those of every cluster.

    One pass over both, without filters: a Python data source whose relation is read twice in a query with different
    filters was seen to give too few rows.
    """
    from pyspark.sql import functions as f

    known = clusters.select(f.col("cluster").alias("known"))
    every = scenarios.join(known, f.col("cluster").isNull() | (f.col("cluster") == f.col("known")), "left")
    return every.withColumn("cluster", f.coalesce("cluster", "known")).select(*SCENARIOS.schema.names)
