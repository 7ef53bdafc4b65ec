"""A fleet's sweep ranks the failures of each cluster as one machine does, row for row."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from kframe.snapshot import Snapshot, read_snapshot
from kframe.snapshot.generate import generate
from kframe.spark.sweeping import FAILURES, SweepStage
from kframe.whatif import SortBy
from kframe.whatif.sweep import sweep
from tests.snapshot.samples import example
from tests.spark.outcomes import Rows, clusters, single_result, tables

HEALTHY = generate(20, 3, racks=2)


def reference_sweep(snapshot: Snapshot, options: SweepStage, cluster: str = "east") -> Rows:
    """Return one machine's result in the rows of a fleet."""
    swept = sweep(snapshot, options.config, depth=options.depth, racks=options.racks)
    ranks: dict[str, int] = {}
    rows = []
    for rank, row in enumerate(swept.table(swept.ranked(options.by)).to_pylist(), 1):
        ranks[row["kind"]] = ranks.get(row["kind"], 0) + 1
        kraft = {"directory": None, "may_lose_data": None, "rules": swept.rules}
        named = {"cluster": cluster, "rank": rank, "rank_of_kind": ranks[row["kind"]], **kraft, **row, "problem": None}
        rows.append({name: named[name] for name in FAILURES.schema.names})
    return rows


@given(clusters(), st.sampled_from([1, 2]), st.booleans(), st.sampled_from(list(SortBy)))
def test_whole_cluster_sweep_equals_one_machine(snapshot: Snapshot, depth: int, racks: bool, by: SortBy) -> None:
    options = SweepStage(depth=depth, racks=racks, by=by)
    result = single_result(options, tables(snapshot))
    assert not isinstance(result, str)
    assert result[FAILURES].schema == FAILURES.schema
    assert result[FAILURES].to_pylist() == reference_sweep(snapshot, options)


def test_min_isr_is_unknown_unless_configured() -> None:
    listed = read_snapshot(example("healthy", "kcat"))
    unknown, stated = (reference_sweep(listed, SweepStage(config)) for config in ({}, {"min.insync.replicas": "2"}))
    assert {row["under_min_isr"] for row in unknown} == {None}
    assert None not in {row["under_min_isr"] for row in stated}


def test_unknown_leaders_are_a_problem() -> None:
    bare = replace(HEALTHY, partitions=replace(HEALTHY.partitions, leader=None, isr=None))
    assert str(single_result(SweepStage(), tables(bare))).startswith("cluster east: found nothing about who leads")
