"""A fleet's sweep: one machine and any number of shards rank failures equally, row for row."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from kframe.snapshot import Snapshot, read_snapshot
from kframe.snapshot.generate import Health, generate
from kframe.spark import sweeping
from kframe.spark.part import SHARD_WITH_FACTS
from kframe.spark.sweeping import COUNTS, FAILURES, Sweeping, counted, ranked, sweep_whole
from kframe.whatif import SortBy
from kframe.whatif.sweep import sweep
from kframe.whatif.sweep_export import failures_table
from tests.snapshot.samples import example
from tests.spark.sharding import Rows, clusters, shard_rows, table, to_play
from tests.spark.test_failover import frames, rows
from verification.support.properties import examples

HEALTHY = generate(20, 3, racks=2)


def reference_sweep(snapshot: Snapshot, options: Sweeping, cluster: str = "east") -> Rows:
    """Return one machine's result in the rows of a fleet."""
    swept = sweep(snapshot, options.config, depth=options.depth, racks=options.racks)
    ranks: dict[str, int] = {}
    rows = []
    for rank, row in enumerate(failures_table(swept, swept.ranked(options.by)).to_pylist(), 1):
        ranks[row["kind"]] = ranks.get(row["kind"], 0) + 1
        kraft = {"directory": None, "may_lose_data": None, "rules": swept.rules}
        named = {"cluster": cluster, "rank": rank, "rank_of_kind": ranks[row["kind"]], **kraft, **row, "problem": None}
        rows.append({name: named[name] for name in FAILURES.schema.names})
    return rows


def merged_sweep(snapshot: Snapshot, options: Sweeping, parts: Iterable[pa.RecordBatch], *, summed: bool) -> Rows:
    """Return the shards' combined result, from separate or summed counts."""
    shard_batches = [batch.select(SHARD_WITH_FACTS.names) for batch in to_play(snapshot, parts, [])]
    counts = pa.Table.from_batches(list(counted(shard_batches, options)), COUNTS.schema)
    if summed:
        sums = counts.group_by(list(COUNTS.key)).aggregate([("count", "sum")])
        counts = sums.rename_columns({"count_sum": "count"})
    facts = pa.Table.from_batches(shard_batches[:1])
    table = ranked(counts, facts, options)
    assert table.schema == FAILURES.schema
    listed: Rows = table.to_pylist()
    return listed


@examples(1.2)
@given(st.data())
def test_sweep_of_shards_equals_one_machine(data: st.DataObject) -> None:
    snapshot = data.draw(clusters())
    config: Mapping[str, object] = data.draw(st.sampled_from([{}, {"unclean.leader.election.enable": "true"}]))
    options = Sweeping(config, data.draw(st.sampled_from([2, 2, 1])), data.draw(st.booleans()),
                   data.draw(st.sampled_from(SortBy)))  # fmt: skip
    whole = table(snapshot)
    owners = data.draw(st.lists(st.integers(0, 3), min_size=1, max_size=7))
    parts = shard_rows(whole, owners, data.draw(st.permutations(range(whole.num_rows))))
    actual = merged_sweep(snapshot, options, data.draw(st.permutations(parts)), summed=data.draw(st.booleans()))
    assert actual == reference_sweep(snapshot, options)


def test_sweep_on_spark_equals_one_machine(spark: Any) -> None:
    """A real cluster, a generated one, one without settings and one with an error, in small shards."""
    listed = read_snapshot(example("healthy", "kcat"))
    generated = generate(
        2000,
        9,
        racks=3,
        health=Health(under_replicated=0.1, preferred_replica_imbalance=0.1, unclean=0.2, min_insync=2),
    )
    fleet = {
        "real": read_snapshot(example("healthy", "zookeeper")),
        "made": generated,
        "unknown": listed,
        "odd": generated,
    }
    partitions, brokers, cluster_rows = frames(spark, fleet)
    options = Sweeping({"min.insync.replicas": "2"}, by=SortBy.UNDER_MIN_ISR)
    swept = sweeping.sweep(
        partitions, brokers, cluster_rows.where("cluster != 'odd'"), options.config, by=options.by, target=300
    )
    actual: dict[str, Rows] = {}
    for row in rows(swept.orderBy("cluster", "rank")):
        actual.setdefault(row["cluster"], []).append(row)
    failed = actual.pop("odd")
    assert [(row["problem"], row["rank"]) for row in failed] == [
        ("rows of cluster odd, which the clusters table lacks", None)
    ]
    assert actual == {name: reference_sweep(fleet[name], options, name) for name in actual}
    assert None not in {row["under_min_isr"] for row in actual["unknown"]}
    assert actual.keys() == {"real", "made", "unknown"}


@given(clusters(), st.sampled_from([1, 2]), st.booleans(), st.sampled_from(list(SortBy)))
def test_whole_cluster_sweep_equals_one_machine(snapshot: Snapshot, depth: int, racks: bool, by: SortBy) -> None:
    options = Sweeping(depth=depth, racks=racks, by=by)
    table = sweep_whole("east", snapshot, options)
    assert table.schema == FAILURES.schema
    assert table.to_pylist() == reference_sweep(snapshot, options)


def test_min_isr_is_unknown_unless_configured() -> None:
    listed = read_snapshot(example("healthy", "kcat"))
    unknown, stated = (reference_sweep(listed, Sweeping(config)) for config in ({}, {"min.insync.replicas": "2"}))
    assert {row["under_min_isr"] for row in unknown} == {None}
    assert None not in {row["under_min_isr"] for row in stated}


def test_unknown_leaders_are_a_problem() -> None:
    bare = replace(HEALTHY, partitions=replace(HEALTHY.partitions, leader=None, isr=None))
    (row,) = sweep_whole("east", bare, Sweeping()).to_pylist()
    assert row["cluster"] == "east"
    assert row["problem"].startswith("cluster east: found nothing about who leads")
