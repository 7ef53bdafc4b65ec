"""Counts of parts of a cluster add up to those of the whole."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from kframe.engines.results.sweep import Sweep
from kframe.engines.settings import knows_min_insync
from kframe.engines.zookeeper.sweep import sweep_of
from kframe.engines.zookeeper.sweep_rows import KEY, SCHEMA, counts_of, part_counts, rows_of
from kframe.model.columns import Int32
from kframe.snapshot import Health, Snapshot, generate
from kframe.whatif.sweep import sweep
from tests.whatif.test_sweep_invariants import configs, snapshots
from verification.support.properties import examples


def part_of(snapshot: Snapshot, rows: Int32) -> Snapshot:
    """Return these partitions of a cluster with new row numbers. Topics without any of them remain, without
    partitions."""
    topics, p = snapshot.topics, snapshot.partitions
    columns: dict[str, Any] = {name: column[rows] for name, column in p.numbers().items() if column is not None}
    columns |= {name: column.take(rows) for name, column in p.lists().items() if column is not None}
    counts = np.bincount(topics.topic_of_rows()[rows], minlength=len(topics)).astype(np.int32)
    return replace(
        snapshot,
        topics=replace(topics, partition_counts=counts),
        partitions=replace(p, replicas=p.replicas.take(rows), **columns),
    )


def same(left: Sweep, right: Sweep) -> bool:
    return list(left.records()) == list(right.records()) and (left.before, left.before_skew) == (
        right.before,
        right.before_skew,
    )


@examples(1.2)
@given(snapshots(), configs(), st.data())
def test_counts_of_parts_add_up_in_any_order(
    snapshot: Snapshot, config: dict[str, object], data: st.DataObject
) -> None:
    count = len(snapshot)
    owner = np.array(data.draw(st.lists(st.integers(0, 2), min_size=count, max_size=count)), np.int32)
    parts = [part_of(snapshot, np.flatnonzero(owner == number).astype(np.int32)) for number in range(3)]
    batches = [rows_of(part_counts(part, config)) for part in data.draw(st.permutations(parts))]
    rows = pa.Table.from_batches(batches, SCHEMA)
    sums = rows.group_by(list(KEY)).aggregate([("count", "sum")]).rename_columns({"count_sum": "count"})
    has_configs = knows_min_insync(snapshot.topics, config)
    whole = sweep(snapshot, config)
    for counted_rows in (rows, sums):
        assert same(sweep_of(counts_of(counted_rows, snapshot.brokers), configs_known=has_configs), whole)


def test_rows_have_unique_keys_and_nonzero_counts() -> None:
    snapshot = generate(600, 7, racks=3, health=Health(0.3, 0.3, 0.5, 2))
    rows = rows_of(part_counts(snapshot)).to_pylist()
    keys = [tuple(row[name] for name in KEY) for row in rows]
    assert len(set(keys)) == len(keys) > 0
    assert 0 not in {row["count"] for row in rows}
    assert {row["failure"] for row in rows} == {"before", "none", "broker", "pair", "rack"}
    assert all(row["broker"] < row["other"] for row in rows if row["failure"] == "pair")


def test_single_failures_need_no_pairs() -> None:
    snapshot = generate(60, 4, racks=2)
    rows = rows_of(part_counts(snapshot, depth=1))
    assert "pair" not in rows["failure"].to_pylist()
    swept = sweep_of(counts_of(rows, snapshot.brokers, pairs=False))
    assert same(swept, sweep(snapshot, depth=1))
