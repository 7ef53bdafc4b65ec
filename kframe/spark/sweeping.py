"""Every failure of one broker, of two and of a rack, in every cluster of a fleet.

Failures are counted by shard and evaluated by cluster. Counts of the parts of a cluster add up to those of the whole
(``kframe.engines.zookeeper.sweep_rows``). Each shard is therefore read once, and no partition row is shuffled, however
many failures there are.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kframe.engines.results.sweep import KINDS, METRICS, SortBy, Sweep
from kframe.engines.settings import knows_min_insync
from kframe.engines.zookeeper.sweep import sweep_of
from kframe.engines.zookeeper.sweep_rows import KEY, SCHEMA, counts_of, part_counts, rows_of
from kframe.errors import ConfigError, InputError
from kframe.snapshot import Snapshot
from kframe.spark.failover import by_mode, cluster_facts, shards, split_by_mode, without_partitions
from kframe.spark.frames import conform, of_cogroup, unique_clusters
from kframe.spark.kraft import config_for, without_features
from kframe.spark.part import SHARD_WITH_FACTS, ClusterFacts, leaders_unknown, parts_of
from kframe.spark.schema import BROKERS, INT, INTS, LONG, PARTITIONS, TEXT, FleetTable, of_cluster, with_columns_of
from kframe.spark.shards import TARGET_ROWS
from kframe.whatif.sweep import sweep as sweep_snapshot
from kframe.whatif.sweep_export import failures_table

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

#: Counts of shards, to be summed by cluster. Two more values of ``failure``: UNKNOWN counts parts whose topic
#: settings are not known, PROBLEM those that could not be counted, whose ``name`` says why.
COUNTS: Final = FleetTable("sweep_counts", of_cluster(SCHEMA), ("cluster", *KEY))
UNKNOWN: Final = "unknown"
PROBLEM: Final = "problem"

#: A row a failure, as ``kframe whatif sweep --out`` writes it. ``rank`` is its position in its cluster, worst first,
#: ``rank_of_kind`` that among failures of its kind; both from 1. Only KRaft clusters have a ``directory`` and
#: ``may_lose_data``. ``rules`` are those that decided. A cluster that could not be swept has a row
#: for each ``problem``, and null in all other columns.
FAILURES: Final = FleetTable(
    "failures",
    pa.schema(
        [("cluster", TEXT), ("rank", LONG), ("rank_of_kind", LONG), ("kind", TEXT), ("brokers", INTS), ("rack", TEXT),
         ("directory", TEXT), *((name, INT) for name in METRICS), ("leaders_max", INT), ("leaders_mean", pa.float64()),
         ("leader_skew", pa.float64()), ("may_lose_data", INT), ("rules", TEXT), ("problem", TEXT)]
    ),
    ("cluster", "rank", "problem"),
)  # fmt: skip


@dataclass(frozen=True)
class Sweeping:
    """What is swept, as plain data that can be sent to executors. As ``kframe.whatif.sweep`` takes it."""

    config: Mapping[str, object] = field(default_factory=dict)
    depth: int = 2
    racks: bool = True
    by: SortBy = SortBy.OFFLINE


def counted(batches: Iterable[pa.RecordBatch], how: Sweeping) -> Iterator[pa.RecordBatch]:
    """Rows of SHARD_WITH_FACTS as rows of COUNTS.

    Raises ConfigError for a setting.
    """
    for row, part in parts_of(batches):
        if isinstance(part, str):
            yield _of_cluster(row["cluster"], _marker_row(PROBLEM, part))
            continue
        yield from _counts(row["cluster"], part, how)


def swept_whole(batches: Iterable[pa.RecordBatch], how: Sweeping) -> Iterator[pa.RecordBatch]:
    """Rows of SHARD_WITH_FACTS, each a whole cluster, as rows of FAILURES. Raises ConfigError for a setting."""
    for row, part in parts_of(batches):
        if isinstance(part, str):
            yield from _problem(row["cluster"], part).to_batches()
        else:
            yield from sweep_whole(row["cluster"], part, how).to_batches()


def ranked(counts: pa.Table, facts: pa.Table, how: Sweeping) -> pa.Table:
    """All rows of COUNTS of a cluster, and its row of known facts, as rows of FAILURES, the worst first.

    Rows of COUNTS may be summed up already. Cost as ``sweep_of``.
    """
    problems = pc.equal(counts["failure"], PROBLEM)
    if pc.any(problems).as_py():
        named = counts.filter(problems).rename_columns({"name": PROBLEM}).select(["cluster", PROBLEM])
        return with_columns_of(FAILURES.schema, named)
    return _ranked(counts, ClusterFacts.of(facts.to_pylist()[0]), how)


def sweep_whole(cluster: str, snapshot: Snapshot, how: Sweeping) -> pa.Table:
    """Rows of FAILURES of a whole cluster. Raises ConfigError for a setting."""
    if snapshot.partitions.leader is None or snapshot.partitions.isr is None:
        return _problem(cluster, str(leaders_unknown(f"cluster {cluster}")))
    if snapshot.is_kraft:
        return _sweep_kraft(cluster, snapshot, how)
    counts = pa.Table.from_batches(_counts(cluster, snapshot, how))
    return _ranked(counts, ClusterFacts.of_snapshot(cluster, snapshot), how)


def _counts(cluster: str, part: Snapshot, how: Sweeping) -> Iterator[pa.RecordBatch]:
    """Rows of COUNTS of a part of a cluster."""
    config = without_features(how.config)
    yield _of_cluster(cluster, rows_of(part_counts(part, config, depth=how.depth, racks=how.racks)))
    if not knows_min_insync(part.topics, config):
        yield _of_cluster(cluster, _marker_row(UNKNOWN))


def _ranked(counts: pa.Table, cluster: ClusterFacts, how: Sweeping) -> pa.Table:
    unknown = pc.equal(counts["failure"], UNKNOWN)
    brokers = cluster.brokers if how.racks else tuple(replace(broker, rack=None) for broker in cluster.brokers)
    whole = counts_of(counts.filter(pc.invert(unknown)), brokers, pairs=how.depth == 2)
    return _in_order(cluster.name, sweep_of(whole, configs_known=not pc.any(unknown).as_py()), how)


def _sweep_kraft(cluster: str, snapshot: Snapshot, how: Sweeping) -> pa.Table:
    try:
        swept = sweep_snapshot(snapshot, config_for(how.config, snapshot), depth=how.depth, racks=how.racks)
    except ConfigError:
        raise
    except InputError as problem:
        return _problem(cluster, str(problem))
    return _in_order(cluster, swept, how)


def _in_order(cluster: str, swept: Sweep, how: Sweeping) -> pa.Table:
    order = swept.ranked(how.by)
    rank_of_kind = np.empty(len(order), np.int64)
    for kind in range(len(KINDS)):
        of_kind = swept.kind[order] == kind
        rank_of_kind[of_kind] = np.arange(1, np.count_nonzero(of_kind) + 1)
    table = failures_table(swept, order)
    columns = {
        "cluster": pa.repeat(pa.scalar(cluster, TEXT), len(order)),
        "rules": pa.repeat(pa.scalar(swept.rules, TEXT), len(order)),
        "rank": pa.array(np.arange(1, len(order) + 1)),
        "rank_of_kind": pa.array(rank_of_kind),
    }
    return with_columns_of(
        FAILURES.schema, pa.table(columns | dict(zip(table.column_names, table.columns, strict=True)))
    )


def sweep(
    partitions: DataFrame, brokers: DataFrame, clusters: DataFrame, config: Mapping[str, object] | None = None, *,
    depth: int = 2, racks: bool = True, by: SortBy = SortBy.OFFLINE, target: int = TARGET_ROWS,
) -> DataFrame:  # fmt: skip
    """Fail each registered broker of every cluster, each two if ``depth`` is 2, and each rack: rows of FAILURES.

    Of a KRaft cluster, which one task sweeps whole, also fail each log directory. The numbers and the order are those
    of ``kframe.whatif.sweep`` and its ``ranked``. A task evaluates one cluster; its cost depends only on the brokers
    (``docs/explanation/sweep-algorithm.md``). ``target`` is as in ``shards``.
    """
    from pyspark.sql import functions as f

    options = Sweeping(dict(config or {}), depth, racks, by)
    partitions, brokers, known = conform(partitions, PARTITIONS), conform(brokers, BROKERS), unique_clusters(clusters)
    facts = cluster_facts(brokers, clusters)
    zookeeper, kraft = by_mode(partitions, known)

    def with_facts(parts: DataFrame) -> DataFrame:
        joined = parts.drop("controller_epoch").join(f.broadcast(facts), "cluster", "left")
        return joined.select(*SHARD_WITH_FACTS.names)

    def counts(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        return counted(batches, options)

    def failures(_key: tuple[Any, ...], counts: pa.Table, facts: pa.Table) -> pa.Table:
        return ranked(counts, facts, options)

    def whole(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        return swept_whole(batches, options)

    parts = shards(*zookeeper, target=target).unionByName(without_partitions((brokers, clusters), known))
    sums = (
        with_facts(parts).mapInArrow(counts, COUNTS.ddl)
        .groupBy("cluster", *KEY).agg(f.sum("count").alias("count"))
    )  # fmt: skip
    counted_facts, _ = split_by_mode(facts)
    ranked_counts = (
        sums.groupBy("cluster")
        .cogroup(counted_facts.groupBy("cluster"))
        .applyInArrow(of_cogroup(failures), FAILURES.ddl)
    )
    in_kraft = with_facts(shards(*kraft, target=target, whole=True)).mapInArrow(whole, FAILURES.ddl)
    return ranked_counts.unionByName(in_kraft)


def _marker_row(failure: str, name: str | None = None) -> pa.RecordBatch:
    return pa.RecordBatch.from_pylist([{"failure": failure, "name": name, "count": 1}], SCHEMA)


def _of_cluster(cluster: str, counts: pa.RecordBatch) -> pa.RecordBatch:
    columns = [pa.repeat(pa.scalar(cluster, TEXT), counts.num_rows), *counts.columns]
    return pa.RecordBatch.from_arrays(columns, schema=COUNTS.schema)


def _problem(cluster: str, problem: str) -> pa.Table:
    return with_columns_of(FAILURES.schema, pa.table({"cluster": [cluster], PROBLEM: [problem]}))
