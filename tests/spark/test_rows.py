"""A snapshot is unchanged after a conversion to a fleet's rows and back, in any order of rows."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from kframe.errors import SnapshotError
from kframe.snapshot import generate, read_snapshot
from kframe.spark.rows import rows_of, snapshot_of, table_of
from kframe.spark.schema import BROKERS, CLUSTERS, PARTITIONS, TOPICS
from tests.snapshot.samples import STATES, example

FLEET = (PARTITIONS, BROKERS, TOPICS, CLUSTERS)


def tables(snapshot: Any) -> list[pa.Table]:
    return [table_of(rows_of(snapshot, "c", table, 100), table) for table in FLEET]


@pytest.mark.parametrize("format", ["zookeeper", "describe", "kcat"])
@pytest.mark.parametrize("phase", STATES)
def test_snapshot_roundtrip(phase: str, format: str) -> None:
    snapshot = read_snapshot(example(phase, format))
    shuffled = [table.take(np.random.default_rng(7).permutation(table.num_rows)) for table in tables(snapshot)]
    back = snapshot_of(*shuffled)
    assert back.digest() == snapshot.digest()
    assert dict(back.provenance) == dict(snapshot.provenance)
    assert back.source == snapshot.source


def test_batches_are_bounded_and_in_the_schema() -> None:
    batches = list(rows_of(generate(1_000, 5, 3), "c", PARTITIONS, 300))
    assert [batch.num_rows for batch in batches] == [300, 300, 300, 100]
    assert {batch.schema for batch in batches} == {PARTITIONS.schema}


def without(row: int) -> Callable[[pa.Table], pa.Table]:
    return lambda table: table.filter(pa.array(np.arange(table.num_rows) != row))


def repeated(table: pa.Table) -> pa.Table:
    return pa.concat_tables([table.slice(1), table.slice(1, 1)])


def partly_null(table: pa.Table) -> pa.Table:
    leaders = pa.array([None, *table["leader"].to_pylist()[1:]], pa.int32())
    return table.set_column(table.schema.get_field_index("leader"), "leader", leaders)


@pytest.mark.parametrize("index,change,message", [
    (0, without(3), "cluster c table partitions: found 9 partitions, expected the 10"),
    (0, repeated, "cluster c table partitions: found .* out of turn"),
    (0, partly_null, "cluster c field leader: found 1 nulls in 10 rows"),
    (1, without(0), "cluster c: found unknown broker id 0"),
    (2, lambda table: pa.concat_tables([table, table]), "cluster c table topics: found topic .* again"),
])  # fmt: skip
def test_inconsistent_tables_are_refused(index: int, change: Callable[[pa.Table], pa.Table], message: str) -> None:
    rows = tables(generate(10, 3, 2, partitions_per_topic=10))
    rows[index] = change(rows[index])
    with pytest.raises(SnapshotError, match=message):
        snapshot_of(*rows)
