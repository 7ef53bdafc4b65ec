"""A snapshot is unchanged after a conversion to a fleet's rows and back, in any order of rows."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from kframe.errors import SnapshotError
from kframe.model.arrays import Ragged
from kframe.snapshot import PartitionFacts, TopicFacts, generate, read_snapshot
from kframe.spark.inputs import ClusterRows
from kframe.spark.rows import rows_of, snapshot_of, table_of
from kframe.spark.schema import CLUSTER_TABLES, PARTITIONS
from kframe.whatif import WhatIf
from tests.snapshot.samples import ROOT, STATES, example

OBSERVERS = ROOT / "tests" / "snapshot" / "texts" / "observers.txt"
NO_TOPICS = TopicFacts((), np.empty(0, np.int32))


def tables(snapshot: Any) -> list[pa.Table]:
    return [table_of(rows_of(snapshot, "c", table, 100), table) for table in CLUSTER_TABLES]


def test_cluster_without_topics_or_brokers_roundtrip() -> None:
    snapshot = replace(generate(4, 3), topics=NO_TOPICS, partitions=PartitionFacts(Ragged.empty(0)), brokers=())
    back = snapshot_of(*tables(snapshot))
    assert (len(back), back.topics.names, back.brokers) == (0, (), ())


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


def with_value(column: str, value: Any) -> Callable[[pa.Table], pa.Table]:
    """Change a column of the first row."""

    def changed(table: pa.Table) -> pa.Table:
        index, field = table.schema.get_field_index(column), table.schema.field(column)
        return table.set_column(index, field, pa.array([value, *table[column].to_pylist()[1:]], field.type))

    return changed


@pytest.mark.parametrize(
    "index,change,message",
    [
        (0, without(3), "cluster c table partitions: found 9 partitions, expected the 10"),
        (0, repeated, "cluster c table partitions: found .* out of turn"),
        (0, partly_null, "cluster c field leader: found 1 null in 10 rows"),
        (1, without(0), "cluster c: found unknown broker id 0"),
        (2, lambda table: pa.concat_tables([table, table]), "cluster c table topics: found topic .* again"),
        (3, lambda table: pa.concat_tables([table, table]), "table clusters: found 2 rows, expected one row"),
        (0, with_value("isr", [0, None]), "cluster c field isr: found 1 null in lists, expected lists without nulls"),
        (0, with_value("replicas", [None]), "cluster c field replicas: found 1 null in lists"),
        (0, with_value("adding_replicas", [None, None]), "cluster c field adding_replicas: found 2 nulls in lists"),
        (1, with_value("endpoints", [None]), "cluster c table brokers broker 0 field endpoints: found a null in them"),
        (
            1,
            with_value("endpoints", [{"listener": "L", "host": None, "port": 1, "security_protocol": "SSL"}]),
            "broker 0 field endpoints: found a null in them",
        ),
        (2, with_value("configs", [("retention.ms", None)]), "field configs: found a null value of retention.ms"),
        (
            3,
            with_value("broker_default_configs", [("min.insync.replicas", None)]),
            "cluster c field broker_default_configs: found a null value of min.insync.replicas",
        ),
    ],
)
def test_inconsistent_tables_are_refused(index: int, change: Callable[[pa.Table], pa.Table], message: str) -> None:
    rows = tables(generate(10, 3, 2, partitions_per_topic=10))
    rows[index] = change(rows[index])
    with pytest.raises(SnapshotError, match=message):
        snapshot_of(*rows)


def test_rows_keep_observers_and_partitions_alone_show_them() -> None:
    """Confluent's observers do not count as under-replicated."""
    snapshot = read_snapshot(OBSERVERS)
    rows = tables(snapshot)
    back = snapshot_of(*rows)
    assert back.digest() == snapshot.digest()
    assert back.partitions.observers is not None
    assert snapshot.partitions.observers is not None
    assert back.partitions.observers.values.tolist() == snapshot.partitions.observers.values.tolist()
    part = ClusterRows("c", {PARTITIONS.name: rows[0]}).snapshot()
    assert WhatIf(part).health().counts() == WhatIf(snapshot).health().counts()
    assert WhatIf(part).health().counts()["under_replicated"] == 0
    assert snapshot_of(*tables(generate(4, 3))).partitions.observers is None
