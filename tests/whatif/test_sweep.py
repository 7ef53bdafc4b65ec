"""Sweeps of small clusters, and of the real one."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from pyarrow import parquet

from kframe.errors import InputError, ShapeError, SnapshotError
from kframe.model.arrays import Ragged
from kframe.snapshot import BrokerFacts, Health, PartitionFacts, Snapshot, Source, TopicFacts, generate, read_snapshot
from kframe.snapshot.content import Mode
from kframe.testing.clusters import PartitionSpec, cluster_of, registration
from kframe.whatif import Failure, SortBy, Sweep, sweep
from kframe.whatif.engines.zookeeper import sweep_columns
from kframe.whatif.sweep_export import write_plot, write_table
from tests.whatif.samples import small
from tests.whatif.test_real_cluster import example_of
from tests.whatif.test_sweep_invariants import brute_force, swept


def test_unclean_elections_follow_topic_setting() -> None:
    swept = {tuple(record["brokers"]): record for record in sweep(small(unclean=1), racks=False).records()}
    assert (swept[3,]["unclean_elections"], swept[3,]["needs_unclean_election"], swept[3,]["leaders_moved"]) == (
        1,
        0,
        1,
    )
    assert (swept[2, 3]["unclean_elections"], swept[1, 3]["unclean_elections"]) == (1, 0)
    assert (swept[3,]["newly_may_lose_data"], swept[1, 3]["newly_may_lose_data"]) == (1, 0)


@pytest.mark.parametrize(
    "by, worst",
    [
        (SortBy.OFFLINE, [[1, 3], [1, 2], [2, 3]]),
        (SortBy.UNDER_MIN_ISR, [[1, 3], [1, 2], [2, 3]]),
        (SortBy.UNCLEAN, [[2, 3], [3], [3]]),
        (SortBy.SKEW, [[1], [1], [3]]),
    ],
)
def test_worst_failures_by_each_metric(by: SortBy, worst: list[list[int]]) -> None:
    assert [record["brokers"] for record in sweep(small()).worst(3, by)] == worst


def test_worst_failures_of_kind() -> None:
    swept = sweep(small())
    assert [record["brokers"] for record in swept.worst(9, kind=Failure.BROKER)] == [[1], [3], [2]]
    racks = {(record["kind"], record["rack"]) for record in swept.worst(9, kind=Failure.RACK)}
    assert racks == {("rack", "a"), ("rack", "b"), ("rack", "c")}


def test_unselected_failures_are_omitted() -> None:
    swept = sweep(small(), depth=1, racks=False)
    assert [record["brokers"] for record in swept.records()] == [[1], [2], [3]]


def with_partition(replicas: tuple[int, ...], isr: tuple[int, ...], brokers: int, min_isr: int) -> Sweep:
    cluster = cluster_of(
        {"wide": [PartitionSpec(replicas, leader=replicas[0], isr=isr)]},
        [registration(broker_id, None, 10 + broker_id) for broker_id in range(1, brokers + 1)],
    )
    cluster.topics.min_insync[0] = min_isr
    return sweep(Snapshot.from_cluster(cluster))


@pytest.mark.parametrize("min_isr, failure_count", [(1, 0), (38, 0), (39, 780), (40, 820)])
def test_min_isr_of_partition_with_forty_replicas(min_isr: int, failure_count: int) -> None:
    replicas = tuple(range(1, 41))
    swept = with_partition(replicas, replicas, 40, min_isr)
    column = swept.column("under_min_isr")
    assert column is not None
    assert (len(swept), int(np.count_nonzero(column))) == (820, failure_count)
    failures = [record["brokers"] for record in swept.records() if record["leaders_moved"]]
    assert failures == [[1], *([1, other] for other in range(2, 41))]


def test_min_isr_of_unknown_settings_is_unknown() -> None:
    snapshot = replace(small(), topics=replace(small().topics, configs=None))
    swept = sweep(snapshot)
    assert swept.column("under_min_isr") is None
    assert swept.worst(1)[0]["under_min_isr"] is swept.before["under_min_isr"] is None
    assert swept.table(swept.ranked())["at_min_isr"].null_count == len(swept)
    with pytest.raises(InputError, match="topic settings"):
        swept.pairs(SortBy.UNDER_MIN_ISR)


def test_snapshot_without_leaders_is_refused() -> None:
    bare = replace(small(), partitions=PartitionFacts(Ragged.of([[1], [1], [1], [1], [1]])))
    with pytest.raises(SnapshotError, match="nothing about who leads"):
        sweep(bare)


@pytest.mark.parametrize("name", ["healthy", "broker-4-dead"])
def test_sweep_of_recorded_cluster_equals_what_ifs(name: str) -> None:
    snapshot = read_snapshot(example_of(name, "zookeeper.jsonl"))
    assert swept(snapshot, {}) == brute_force(snapshot, {})


#: The worst failures of the real cluster: brokers; partitions offline, under min ISR, leaders moved; leader skew.
REAL = [([4, 5], 12, 142, 208, 1.239), ([2, 4], 12, 116, 204, 1.188), ([3, 4], 11, 141, 205, 1.237)]


def test_worst_failures_of_recorded_cluster() -> None:
    swept = sweep(read_snapshot(example_of("healthy", "zookeeper.jsonl")))
    names = ("brokers", "offline", "under_min_isr", "leaders_moved", "leader_skew")
    assert [tuple(record[name] for name in names) for record in swept.worst(3)] == REAL
    assert {name: int((swept.kind == kind).sum()) for kind, name in enumerate(Failure)} == {
        "broker": 6,
        "pair": 15,
        "rack": 3,
        "directory": 0,
    }


def test_table_equals_records(tmp_path: Path) -> None:
    swept = sweep(generate(400, 9, 3, racks=4, health=Health(0.2, 0.2, 0.5, 2)))
    write_table(swept, swept.ranked(), tmp_path / "out.parquet")
    rows = parquet.read_table(tmp_path / "out.parquet").to_pylist()
    for row in rows:
        for name in ("leaders_mean", "leader_skew"):
            row[name] = round(row[name], 3)
    assert rows == list(swept.records(swept.ranked()))


def test_heat_map_is_symmetric_with_single_brokers_on_diagonal() -> None:
    swept = sweep(small())
    assert swept.pairs(SortBy.OFFLINE).tolist() == [[2, 2, 3], [2, 1, 2], [3, 2, 2]]
    assert swept.pairs(SortBy.UNCLEAN).tolist() == [[0, 0, 0], [0, 0, 1], [0, 1, 1]]


def test_plot_is_deterministic(tmp_path: Path) -> None:
    for name in ("one.svg", "two.svg", "three.png"):
        write_plot(sweep(small()), SortBy.SKEW, tmp_path / name)
    assert (tmp_path / "one.svg").read_bytes() == (tmp_path / "two.svg").read_bytes()
    assert (tmp_path / "three.png").read_bytes()[:4] == b"\x89PNG"
    assert {record.name for record in tmp_path.iterdir()} == {"one.svg", "two.svg", "three.png"}


@pytest.mark.parametrize("mode", ["zookeeper", "kraft"])
def test_depth_0_has_the_racks_alone(mode: Mode) -> None:
    snapshot = generate(400, 9, 3, racks=4, health=Health(0.2, 0.2, 0.5, 2)).with_mode(mode)
    racks = [record for record in sweep(snapshot, depth=1).records() if record["kind"] == "rack"]
    assert list(sweep(snapshot, depth=0).records()) == racks


def test_blocks_of_partitions_add_up(monkeypatch: pytest.MonkeyPatch) -> None:
    snapshot = generate(400, 9, 3, racks=4, health=Health(0.2, 0.2, 0.5, 2)).with_mode("zookeeper")
    whole = list(sweep(snapshot).records())
    monkeypatch.setattr(sweep_columns, "BLOCK_ROWS", 33)
    assert list(sweep(snapshot).records()) == whole


def test_ids_of_brokers_may_have_gaps() -> None:
    snapshot = generate(60, 5, 3, racks=2).with_mode("zookeeper")
    ids = np.array([0, 3, 4, 70_000, 2**30], np.int32)
    partitions = snapshot.partitions
    assert partitions.leader is not None
    assert partitions.isr is not None
    number = np.searchsorted([broker.broker_id for broker in snapshot.brokers], np.arange(10))
    renamed = replace(
        snapshot,
        brokers=tuple(replace(broker, broker_id=int(id_)) for broker, id_ in zip(snapshot.brokers, ids, strict=True)),
        partitions=replace(
            partitions,
            replicas=Ragged(partitions.replicas.offsets, ids[number[partitions.replicas.values]]),
            isr=Ragged(partitions.isr.offsets, ids[number[partitions.isr.values]]),
            leader=ids[number[partitions.leader]],
        ),
    )
    assert np.array_equal(sweep(renamed).counts, sweep(snapshot).counts)


def test_partition_with_too_many_replicas_is_refused() -> None:
    wide = [list(range(40_000))]
    partitions = PartitionFacts(Ragged.of(wide), np.zeros(1, np.int32), Ragged.of([[0]]))
    topics = TopicFacts(("wide",), np.ones(1, np.int32))
    with pytest.raises(ShapeError, match="40000 replicas"):
        sweep(Snapshot((BrokerFacts(0, True),), topics, partitions, Source("drawn", "")))
