"""Rows of DataFrames are packed by cluster; errors in them are problems of their cluster or scenario alone."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from kframe.snapshot.generate import generate
from kframe.spark import grouping
from kframe.spark.grouping import pack
from kframe.spark.inputs import ClusterRows
from kframe.spark.plans import PlanningStage
from kframe.spark.schema import PARTITIONS, SCENARIOS
from kframe.spark.sweeping import SweepStage
from tests.spark.outcomes import result_of, scenario, single_result, tables

SNAPSHOT = generate(250, 4, seed=5)
NULLS = pa.nulls(250, pa.int32())
MINIMAL = ("cluster", "topic", "partition", "replicas", "leader", "isr")


def test_rows_are_packed_by_cluster(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(grouping, "_PACKED_ROWS", 100)
    named = {name: tables(SNAPSHOT, name)["partitions"] for name in ("east", "west")}
    unnamed = named["east"].set_column(0, "cluster", pa.nulls(250, pa.string()))
    mixed = pa.concat_tables([*named.values(), unnamed]).take(pa.array([(7 * row) % 750 for row in range(750)]))
    actual: dict[str | None, list[Any]] = {}
    for piece in pack(mixed.to_batches(max_chunksize=90), PARTITIONS):
        (row,) = piece.to_pylist()
        assert (row["part"], row["name"]) == (0, "partitions")
        actual.setdefault(row["cluster"], []).extend(pa.ipc.open_stream(row["data"]).read_all().to_pylist())
    for name, whole in [*named.items(), (None, unnamed)]:
        assert sorted(map(repr, actual.pop(name))) == sorted(map(repr, whole.to_pylist()))
    assert actual == {}


def test_scenarios_are_packed_by_part() -> None:
    rows = pa.Table.from_pylist([scenario(name=f"s{number}", cluster="east") for number in range(6)], SCENARIOS.schema)
    rows = rows.append_column("part", pa.array([0, 1, 2, 0, 1, 0], pa.int32()))
    parts = {
        row["part"]: pa.ipc.open_stream(row["data"]).read_all()["scenario"].to_pylist()
        for piece in pack(rows.to_batches(), SCENARIOS)
        for row in piece.to_pylist()
    }
    assert parts == {0: ["s0", "s3", "s5"], 1: ["s1", "s4"], 2: ["s2"]}


def with_column(table: pa.Table, column: str, values: Any) -> pa.Table:
    index = table.schema.get_field_index(column)
    return table.set_column(index, column, pa.array(values, table.schema.field(index).type))


@pytest.mark.parametrize(
    ("column", "values", "problem"),
    [
        ("leader", NULLS, "nothing about who leads"),
        ("leader", [None] + [0] * 249, "field leader: found 1 null in 250 rows"),
        ("leader", [77] * 250, "found broker 77, expected one of the replicas"),
        ("partition", [0] * 250, "topic-00000-0 out of turn"),
        ("partition", NULLS, "field partition"),
        *(
            (column, [[1, None], *[[1]] * 249], f"field {column}: found 1 null in lists, expected lists without nulls")
            for column in ("isr", "replicas", "adding_replicas", "removing_replicas")
        ),
    ],
)
def test_invalid_partitions_are_a_problem(column: str, values: Any, problem: str) -> None:
    contents = tables(SNAPSHOT)
    contents["partitions"] = with_column(contents["partitions"], column, values)
    result = single_result(SweepStage(), contents)
    assert isinstance(result, str)
    assert problem in result
    assert "east" in result


def test_missing_columns_and_tables_are_unknown() -> None:
    partitions = tables(SNAPSHOT)["partitions"]
    contents = {
        "partitions": pa.table(
            {
                field.name: partitions[field.name] if field.name in MINIMAL else pa.nulls(250, field.type)
                for field in PARTITIONS.schema
            },
            PARTITIONS.schema,
        )
    }
    result = result_of(contents, scenario(brokers=[1]))
    assert not isinstance(result, str)
    assert {row["leader_epoch_after"] for row in result["changes"]} == {None}
    assert {row["under_min_isr"] for row in result["conditions"]} == {None}
    full = result_of(tables(SNAPSHOT), scenario(brokers=[1]))
    assert not isinstance(full, str)
    assert [(row["topic"], row["partition"], row["leader_after"]) for row in result["changes"]] == [
        (row["topic"], row["partition"], row["leader_after"]) for row in full["changes"]
    ]
    assert result["broker_counts"] == [row | {"rack": None} for row in full["broker_counts"]]
    assert not isinstance(single_result(PlanningStage({"remove_brokers": (1,)}), contents), str)


def test_settings_of_topics_in_partitions_are_known() -> None:
    partitions = tables(SNAPSHOT)["partitions"]
    contents = {"partitions": with_column(partitions, "min_insync_replicas", [3] * 250)}
    result = result_of(contents, scenario(brokers=[1]))
    assert not isinstance(result, str)
    assert result["conditions"][-1]["under_min_isr"] == sum(
        len([member for member in isr if member != 1]) < 3 for isr in partitions["isr"].to_pylist()
    )


def test_brokers_without_registrations_are_up_if_they_lead_or_are_in_sync() -> None:
    contents = tables(SNAPSHOT)
    contents["brokers"] = with_column(contents["brokers"], "registered", [None] * 4)
    brokers = ClusterRows("east", contents).snapshot().brokers
    assert [(facts.broker_id, facts.registered) for facts in brokers] == [(broker, True) for broker in range(4)]


@pytest.mark.parametrize(
    ("cluster", "clusters", "problem"),
    [
        ("east", 2, "cluster east table clusters: found 2 rows, expected one row of each cluster"),
        ("east", 0, "cluster east table clusters: found 0 rows, expected one row of each cluster"),
        (None, 1, "rows without a cluster: found null, expected the name of a cluster"),
    ],
)
def test_cluster_without_a_single_row_is_a_problem(cluster: str | None, clusters: int, problem: str) -> None:
    contents = tables(SNAPSHOT)
    contents["clusters"] = pa.concat_tables([contents["clusters"].slice(0, 0), *[contents["clusters"]] * clusters])
    with pytest.raises(Exception, match=problem):
        ClusterRows(cluster, contents).snapshot()


def test_repeated_broker_is_a_problem() -> None:
    contents = tables(SNAPSHOT)
    contents["brokers"] = pa.concat_tables([contents["brokers"], contents["brokers"].slice(0, 1)])
    assert "broker 0 twice" in str(result_of(contents, scenario(brokers=[1])))


@pytest.mark.parametrize(
    "changed,message",
    [
        ({"brokers": [1, None]}, "scenario s field brokers: found a null in the list, expected a value in each place"),
        ({"racks": [None]}, "scenario s field racks: found a null in the list"),
        ({"names": [None]}, "scenario s field names: found a null in the list"),
        ({"verb": None}, "scenario s: found verb None"),
        ({"scenario": None}, "table scenarios field scenario: found null, expected the name of the scenario"),
    ],
)
def test_nulls_in_a_scenario_are_a_problem(changed: dict[str, Any], message: str) -> None:
    assert str(result_of(tables(SNAPSHOT), {**scenario(brokers=[1]), **changed})).startswith(message)
