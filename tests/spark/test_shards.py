"""Rows of partitions are packed into shards and unpacked; errors of shards are reported by cluster."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest

from kframe.snapshot.generate import generate
from kframe.spark.play import TO_PLAY, EngineSettings, play
from kframe.spark.shards import pack, unpack
from tests.spark.sharding import scenario, table, to_play

SNAPSHOT = generate(250, 4, seed=5)
NULLS = pa.nulls(250, pa.int32())


def test_rows_of_mixed_clusters_keep_order() -> None:
    east, west = table(SNAPSHOT, "east"), table(SNAPSHOT, "west")
    mixed = pa.concat_tables([east, west]).take(pa.array([(7 * row) % 500 for row in range(500)]))
    actual: dict[str, list[Any]] = {"east": [], "west": []}
    for batch in pack(mixed.to_batches(max_chunksize=90), target=100):
        (shard,) = batch.to_pylist()
        rows = unpack(shard["pieces"])
        names = list(zip(rows["topic"].to_pylist(), rows["partition"].to_pylist(), strict=True))
        assert len(names) == shard["rows"]
        assert names == sorted(names)
        actual[shard["cluster"]] += rows.to_pylist()
    for name, whole in (("east", east), ("west", west)):
        assert (
            sorted(actual[name], key=lambda row: (row["topic"], row["partition"])) == whole.drop("cluster").to_pylist()
        )


def test_topic_of_any_size_is_sharded() -> None:
    single_topic = table(generate(300, 3, topics=1))
    assert [batch["rows"][0].as_py() for batch in pack(single_topic.to_batches(), target=128)] == [128, 128, 44]


@pytest.mark.parametrize(
    ("column", "values", "problem"),
    [
        ("leader", NULLS, "nothing about who leads"),
        ("leader", pa.array([None] + [0] * 249, pa.int32()), "field leader: found 1 null in 250 rows"),
        ("leader", pa.array([77] * 250, pa.int32()), "unknown broker id 77"),
        ("partition", pa.array([0] * 250, pa.int32()), "partition topic-00000-0 twice"),
        ("partition", NULLS, "field partition"),
    ],
)  # fmt: skip
def test_invalid_shard_is_a_problem(column: str, values: Any, problem: str) -> None:
    whole = table(SNAPSHOT)
    changed = whole.set_column(whole.schema.get_field_index(column), column, values)
    (row,) = play(to_play(SNAPSHOT, pack(changed.to_batches()), [scenario(brokers=[1])]), EngineSettings())
    result = row["problem"][0].as_py()
    assert result.startswith("cluster east")
    assert problem in result


def test_missing_columns_are_unknown() -> None:
    columns = table(SNAPSHOT).select(["cluster", "topic", "partition", "replicas", "leader", "isr"])
    (row,) = play(to_play(SNAPSHOT, pack(columns.to_batches()), [scenario(brokers=[1])]), EngineSettings())
    (played,) = row.to_pylist()
    assert played["problem"] is None
    assert {row["leader_epoch_after"] for row in played["changes"]} == {None}
    assert {row["under_min_isr"] for row in played["conditions"]} == {None}


def test_repeated_broker_is_a_problem() -> None:
    twice = replace(SNAPSHOT, brokers=(*SNAPSHOT.brokers, SNAPSHOT.brokers[0]))
    (row,) = play(to_play(twice, pack(table(SNAPSHOT).to_batches()), [scenario(brokers=[1])]), EngineSettings())
    assert "broker 0 twice" in row["problem"][0].as_py()


def test_rows_without_cluster_are_a_problem_of_their_own() -> None:
    names = pa.array(["east"] * 200 + [None] * 50, pa.string())
    mixed = table(SNAPSHOT).set_column(0, "cluster", names)
    shards = list(pack(mixed.to_batches(max_chunksize=90)))
    assert {(shard["cluster"][0].as_py(), shard["rows"][0].as_py()) for shard in shards} == {("east", 200), (None, 50)}
    unnamed = [{**row, "brokers": None} for shard in shards for row in shard.to_pylist() if row["cluster"] is None]
    (row,) = play([pa.RecordBatch.from_pylist(unnamed, TO_PLAY.schema)], EngineSettings())
    assert row["problem"][0].as_py() == "rows without a cluster: found null, expected the name of a cluster"


@pytest.mark.parametrize("column,value", [
    ("isr", [1, None]), ("replicas", [None]), ("adding_replicas", [None]), ("removing_replicas", [2, None]),
])  # fmt: skip
def test_null_in_a_list_is_a_problem(column: str, value: list[Any]) -> None:
    rows = table(SNAPSHOT)
    lists = pa.array([value, *rows[column].to_pylist()[1:]], rows.schema.field(column).type)
    rows = rows.set_column(rows.schema.get_field_index(column), column, lists)
    (row,) = play(to_play(SNAPSHOT, pack(rows.to_batches()), [scenario(brokers=[1])]), EngineSettings())
    assert row["problem"][0].as_py() == (
        f"cluster east field {column}: found 1 null in lists, expected lists without nulls"
    )


def test_cluster_twice_is_a_problem() -> None:
    batches = to_play(SNAPSHOT, pack(table(SNAPSHOT).to_batches()), [scenario(brokers=[1])])
    rows = [{**row, "cluster_rows": 2} for batch in batches for row in batch.to_pylist()]
    (row,) = play([pa.RecordBatch.from_pylist(rows, TO_PLAY.schema)], EngineSettings())
    assert row["problem"][0].as_py() == "cluster east table clusters: found 2 rows, expected one row of each cluster"


def test_scenario_twice_is_a_problem_of_its_own() -> None:
    scenarios = [scenario(brokers=[1], name=name) for name in ("a", "b", "b")]
    played = play(to_play(SNAPSHOT, pack(table(SNAPSHOT).to_batches()), scenarios), EngineSettings())
    assert {row["scenario"][0].as_py(): row["problem"][0].as_py() for row in played} == {
        "a": None, "b": "table scenarios: found scenario b 2 times, expected each name once in a cluster",
    }  # fmt: skip


@pytest.mark.parametrize("changed,message", [
    ({"brokers": [1, None]}, "scenario s field brokers: found a null in the list, expected a value in each place"),
    ({"racks": [None]}, "scenario s field racks: found a null in the list"),
    ({"names": [None]}, "scenario s field names: found a null in the list"),
    ({"verb": None}, "scenario s: found verb None"),
    ({"scenario": None}, "table scenarios field scenario: found null, expected the name of the scenario"),
])  # fmt: skip
def test_nulls_in_a_scenario_are_a_problem(changed: dict[str, Any], message: str) -> None:
    batches = to_play(SNAPSHOT, pack(table(SNAPSHOT).to_batches()), [{**scenario(brokers=[1]), **changed}])
    (row,) = play(batches, EngineSettings(), whole=True)
    assert row["problem"][0].as_py().startswith(message)
