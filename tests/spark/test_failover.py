"""Failovers of a fleet on a real Spark: the same rows as on one machine, and errors in rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa

from kframe.snapshot import Snapshot, read_snapshot
from kframe.snapshot.generate import Health, generate
from kframe.spark import failover
from kframe.spark.rows import rows_of
from kframe.spark.scenarios import each_broker, each_rack
from kframe.spark.schema import BROKERS, CLUSTERS, PARTITIONS, SCENARIOS, FleetTable
from tests.snapshot.samples import example
from tests.spark.sharding import Rows, assert_same_rows, reference_rows, scenario

Frames = tuple[Any, Any, Any]


def frames(spark: Any, snapshots: Mapping[str, Snapshot], cuts: int = 3) -> Frames:
    """Return partitions in ``cuts`` pieces without order, brokers and clusters."""

    def frame(table: FleetTable) -> Any:
        batches = [batch for name, snapshot in snapshots.items() for batch in rows_of(snapshot, name, table)]
        return spark.createDataFrame(pa.Table.from_batches(batches, table.schema), table.ddl)

    return frame(PARTITIONS).repartition(cuts), frame(BROKERS), frame(CLUSTERS)


def scenario_frame(spark: Any, rows: Sequence[Mapping[str, Any]]) -> Any:
    """Return scenarios as a frame."""
    return spark.createDataFrame(pa.Table.from_pylist(list(rows), SCENARIOS.schema), SCENARIOS.ddl)


def rows(frame: Any) -> Rows:
    """Return a frame's rows as plain values."""
    return [row.asDict(recursive=True) | {} for row in frame.collect()]


def everything(played: Any, facts: Any) -> dict[str, Rows]:
    """Return all results of a simulated fleet."""
    results = {
        "changes": failover.changes(played), "broker_counts": failover.broker_counts(played),
        "impacts": failover.impacts(played), "conditions": failover.conditions(played),
        "requests": failover.requests(played, facts, keep=True),
    }  # fmt: skip
    return {name: [_plain(row) for row in rows(frame)] for name, frame in results.items()}


def _plain(row: dict[str, Any]) -> dict[str, Any]:
    encoded = row.get("encoded")
    return row if encoded is None else row | {"encoded": [bytes(body) for body in encoded]}


def test_spark_equals_one_machine(spark: Any) -> None:
    """A real and a generated cluster in one fleet: changes, counts, conditions, requests and their bytes."""
    fleet = {
        "real": read_snapshot(example("healthy", "zookeeper")),
        "made": generate(
            20_000,
            12,
            racks=3,
            health=Health(under_replicated=0.1, preferred_replica_imbalance=0.1, unclean=0.2, min_insync=2),
        ),
    }
    scenario_row = scenario("fail", [2, 4], together=False)
    partitions, brokers, clusters = frames(spark, fleet)
    played = failover.played(
        partitions, brokers, clusters, scenario_frame(spark, [scenario_row]), target=4000
    ).persist()
    results = everything(played, failover.cluster_facts(brokers, clusters))
    played.unpersist()
    for cluster, snapshot in fleet.items():
        of_cluster = {name: [row for row in rows_ if row["cluster"] == cluster] for name, rows_ in results.items()}
        assert_same_rows(of_cluster, reference_rows(snapshot, scenario_row, cluster=cluster))


def test_each_broker_and_each_rack_of_every_cluster(spark: Any) -> None:
    fleet = {"east": generate(300, 4, racks=2, seed=1), "west": generate(200, 3, racks=3, seed=2)}
    partitions, brokers, clusters = frames(spark, fleet)
    everywhere = each_broker(brokers).unionByName(each_rack(brokers))
    actual = {(row["cluster"], row["scenario"]): row["states_changed"]
             for row in rows(failover.impacts(failover.played(partitions, brokers, clusters, everywhere)))}  # fmt: skip
    expected = {}
    for cluster, snapshot in fleet.items():
        for broker in snapshot.brokers:
            expected[cluster, f"broker-{broker.broker_id}"] = len(
                reference_rows(snapshot, scenario(brokers=[broker.broker_id]))["changes"]
            )
        for rack in {broker.rack for broker in snapshot.brokers}:
            expected[cluster, f"rack-{rack}"] = len(reference_rows(snapshot, scenario(racks=[rack or ""]))["changes"])
    assert actual == expected


def test_problems_are_reported_and_other_scenarios_continue(spark: Any) -> None:
    fleet = {"east": generate(30, 4), "west": generate(20, 3)}
    partitions, brokers, clusters = frames(spark, fleet)
    played = failover.played(
        partitions, brokers, clusters.where("cluster = 'east'"),
        scenario_frame(spark, [scenario(brokers=[broker], name=f"broker-{broker}") for broker in (2, 9)]),
    )  # fmt: skip
    problems = {(row["cluster"], row["scenario"]): row["problem"] for row in rows(failover.problems(played))}
    assert problems.keys() == {("east", "broker-9"), ("west", None)}
    assert "broker 9" in problems["east", "broker-9"]
    assert "clusters table" in problems["west", None]
    assert {row["scenario"] for row in rows(failover.changes(played))} == {"broker-2"}
