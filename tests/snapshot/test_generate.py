"""Synthetic clusters: reproducible from a seed, with Kafka's replica placement and the requested faults."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kframe.errors import ParameterError
from kframe.snapshot import Health, Snapshot, generate
from kframe.snapshot.checks import check_brokers_listed, check_snapshot, check_topic_name
from kframe.snapshot.placement import assign_replicas
from kframe.snapshot.seeded import Purpose, hashed
from kframe.snapshot.summary import conditions_of, loads_of
from tests.snapshot.samples import facts

DEGRADED = Health(under_replicated=0.2, preferred_replica_imbalance=0.1, unclean=0.5, min_insync=2)


def assert_valid(snapshot: Snapshot) -> None:
    for name in snapshot.topics.names:
        check_topic_name(name, "")
    check_snapshot(snapshot, lambda kind, index, column: f"{kind} {index} {column}")
    check_brokers_listed(snapshot, "")
    assert list(snapshot.topics.names) == sorted(set(snapshot.topics.names))
    assert int(snapshot.topics.partition_counts.sum()) == len(snapshot)


@pytest.mark.parametrize(
    "snapshot, digest",
    [
        (generate(1_000, 10), "4763baef4e7481b1"),
        (generate(1_000, 10, seed=1), "bc6d6ab55ea2f272"),
        (generate(1_000, 10, 4, racks=3, topics=7, seed=-5, health=DEGRADED), "6b9bff7c9f51697a"),
        (generate(1_000, 10, layout="peerbench"), "66f410e7c30e42a3"),
    ],
    ids=["default", "seed", "unwell", "peerbench"],
)
def test_generated_digest_is_platform_independent(snapshot: Snapshot, digest: str) -> None:
    assert snapshot.digest()[:16] == digest


@given(
    partitions=st.integers(1, 300),
    brokers=st.integers(1, 12),
    replication_factor=st.integers(1, 5),
    racks=st.integers(0, 5),
    topics=st.integers(1, 40),
    seed=st.integers(-(2**70), 2**70),
    shares=st.tuples(st.floats(0, 1), st.floats(0, 1), st.floats(0, 1)),
)
def test_generated_clusters_are_valid(
    partitions: int,
    brokers: int,
    replication_factor: int,
    racks: int,
    topics: int,
    seed: int,
    shares: tuple[float, float, float],
) -> None:
    replication_factor, racks = min(replication_factor, brokers), min(racks, brokers)
    health = Health(*shares, min_insync=1)
    snapshot = generate(
        partitions, brokers, replication_factor, topics=min(topics, partitions), racks=racks, seed=seed, health=health
    )
    assert_valid(snapshot)
    assert len(snapshot.topics) == min(topics, partitions)
    assert snapshot.assumptions == ()


def kafka_assignment(first: int, shift: int, brokers: int, replication_factor: int, racks: int) -> list[int]:
    """Return Kafka's replica placement of one partition (3.9 ``AdminUtils``), one broker after another."""

    def candidate_broker(attempt: int) -> int:
        step = 1 + (shift * max(racks, 1) + attempt) % (brokers - 1)
        return (first + step) % brokers

    replicas, attempt = [first], 0
    while len(replicas) < replication_factor:
        broker = candidate_broker(attempt)
        attempt += 1
        used = {broker_id % racks for broker_id in replicas} if racks else set()
        rack_is_free = not racks or broker % racks not in used or len(used) == racks
        if rack_is_free and broker not in replicas:
            replicas.append(broker)
    return replicas


@given(
    brokers=st.integers(2, 13),
    racks=st.integers(0, 5),
    replication_factor=st.integers(1, 7),
    partitions=st.lists(st.tuples(st.integers(0, 12), st.integers(0, 40)), min_size=1, max_size=20),
)
def test_replica_assignment_equals_kafkas(
    brokers: int, racks: int, replication_factor: int, partitions: list[tuple[int, int]]
) -> None:
    replication_factor, racks = min(replication_factor, brokers), min(racks, brokers)
    first = np.array([leader % brokers for leader, _ in partitions], np.int32)
    rounds = np.array([shift for _, shift in partitions], np.int32)
    placed = assign_replicas(first, rounds, brokers, replication_factor, racks)
    expected = [
        kafka_assignment(leader % brokers, shift, brokers, replication_factor, racks) for leader, shift in partitions
    ]
    assert placed.tolist() == expected


@pytest.mark.parametrize("racks", [0, 3])
@pytest.mark.parametrize("partitions_per_topic", [1, 10, 100])
def test_balance(racks: int, partitions_per_topic: int) -> None:
    snapshot = generate(60_000, 30, racks=racks, partitions_per_topic=partitions_per_topic)
    loads = loads_of(snapshot)
    assert loads.leaders is not None
    for load in (loads.leaders, loads.replicas):
        assert load.max() / load.mean() < 1.06
        assert load.min() / load.mean() > 0.94


@pytest.mark.parametrize(
    "arguments, sizes",
    [
        ({"partitions": 250}, [100, 100, 50]),
        ({"partitions": 7, "partitions_per_topic": 3}, [3, 3, 1]),
        ({"partitions": 7, "topics": 3}, [3, 2, 2]),
        ({"partitions": 1}, [1]),
    ],
)
def test_topic_sizes(arguments: dict[str, int], sizes: list[int]) -> None:
    assert generate(brokers=3, **arguments).topics.partition_counts.tolist() == sizes  # type: ignore[arg-type]


def test_topic_ids_are_valid_random_uuids() -> None:
    ids = generate(20_000, 3, partitions_per_topic=1).topics.topic_ids
    assert ids is not None
    assert len(np.unique(ids, axis=0)) == 20_000
    assert set((ids[:, 6] >> 4).tolist()) == {4}
    assert set((ids[:, 8] >> 6).tolist()) == {2}
    assert 62 not in ids[:, 0] >> 2


# Health


@pytest.mark.parametrize("share", [0.0, 0.25, 1.0])
def test_under_replicated(share: float) -> None:
    snapshot = generate(20_000, 10, health=Health(under_replicated=share))
    assert_valid(snapshot)
    mask = conditions_of(snapshot).under_replicated
    assert mask is not None
    assert mask.mean() == pytest.approx(share, abs=0.01)
    isr = snapshot.partitions.isr
    assert isr is not None
    assert set(isr.counts[mask].tolist()) <= {2}
    assert snapshot.partitions.partition_epoch is not None
    assert np.array_equal(snapshot.partitions.partition_epoch, mask.astype(np.int32))


@pytest.mark.parametrize("replication_factor, reached", [(1, 0.0), (2, 0.5), (3, 1.0)])
def test_preferred_replica_imbalance_moves_leaders_within_isr(replication_factor: int, reached: float) -> None:
    snapshot = generate(
        10_000, 10, replication_factor, health=Health(under_replicated=0.5, preferred_replica_imbalance=1.0)
    )
    assert_valid(snapshot)
    partitions, mask = snapshot.partitions, conditions_of(snapshot).preferred_replica_imbalance
    assert mask is not None
    assert mask.mean() == pytest.approx(reached, abs=0.02)
    assert partitions.leader_epoch is not None
    assert np.array_equal(partitions.leader_epoch, mask.astype(np.int32))
    assert all(row["leader"] in row["isr"] for row in facts(snapshot).values())


def test_topic_settings() -> None:
    snapshot = generate(5_000, 3, partitions_per_topic=1, health=Health(unclean=0.3, min_insync=2))
    topics = snapshot.topics
    unclean = [topics.unclean(index) for index in range(len(topics))]
    assert set(unclean) == {True, None}
    assert unclean.count(True) / len(unclean) == pytest.approx(0.3, abs=0.03)
    assert {topics.min_insync(index) for index in range(len(topics))} == {2}
    assert generate(100, 3).topics.configs == {}


def test_larger_cluster_contains_smaller_one() -> None:
    small, large = facts(generate(300, 5, seed=9, health=DEGRADED)), facts(generate(900, 5, seed=9, health=DEGRADED))
    assert {name: large[name] for name in small} == small


# The benchmark's layout.


def peerbench_partition(topic: int, partition: int, brokers: int) -> tuple[str, list[int]]:
    """Return one partition of a topic by the formula of the reference benchmark."""
    bits = (topic + 1) * 0x9E3779B97F4A7C15 % 2**64
    position = topic * 100 + partition
    leader, shift = position % brokers, position // brokers
    followers = [(leader + 1 + (shift + k - 1) % (brokers - 1)) % brokers for k in (1, 2)]
    return f"topic-{bits >> 32:08x}-{partition}", [leader, *followers]


def test_peerbench_layout_equals_benchmark_cluster() -> None:
    snapshot = generate(12_300, 7, layout="peerbench", seed=99)
    expected = dict(peerbench_partition(topic, partition, 7) for topic in range(123) for partition in range(100))
    assert {name: row["replicas"] for name, row in facts(snapshot).items()} == expected
    assert_valid(snapshot)
    assert snapshot.brokers[5].endpoints is not None
    assert snapshot.brokers[5].endpoints[0].host == "broker-005.cluster.local"
    assert snapshot.brokers[5].broker_epoch == 1005


# Bad arguments


@pytest.mark.parametrize(
    "arguments, where, expected",
    [
        ({"partitions": 0}, "partitions", "1 to"),
        ({"partitions": -5}, "partitions", "1 to"),
        ({"partitions": 2**31}, "partitions", "1 to"),
        ({"partitions": 10**9}, "partitions times the replication factor", "1 to"),
        ({"brokers": 0}, "brokers", "1 to"),
        ({"brokers": 2}, "replication_factor", "1 to 2"),
        ({"replication_factor": 0}, "replication_factor", "1 to"),
        ({"racks": 6}, "racks", "0 to 5"),
        ({"racks": -1}, "racks", "0 to 5"),
        ({"topics": 11}, "topics", "1 to 10"),
        ({"topics": 2, "partitions_per_topic": 5}, "topics", "one of them"),
        ({"partitions_per_topic": 0}, "partitions_per_topic", "1 to"),
        ({"health": Health(under_replicated=1.5)}, "under_replicated", "a share from 0 to 1"),
        ({"health": Health(preferred_replica_imbalance=-0.1)}, "preferred_replica_imbalance", "a share from 0 to 1"),
        ({"health": Health(unclean=float("nan"))}, "unclean", "a share from 0 to 1"),
        ({"health": Health(min_insync=0)}, "min_insync", "1 to"),
        ({"layout": "spiral"}, "layout", "even or peerbench"),
        ({"layout": "peerbench"}, "layout", "topics of 100 partitions"),
        ({"layout": "peerbench", "partitions": 100, "racks": 2}, "layout", "no racks"),
        ({"layout": "peerbench", "partitions": 100, "brokers": 3}, "layout", "more brokers than replicas"),
    ],
)
def test_impossible_cluster_sizes_are_refused(arguments: dict[str, object], where: str, expected: str) -> None:
    with pytest.raises(ParameterError) as caught:
        generate(**{"partitions": 10, "brokers": 5, **arguments})  # type: ignore[arg-type]
    assert caught.value.where == where
    assert expected in caught.value.expected


# The random numbers.


def splitmix(seed: int, purpose: int, position: int) -> int:
    """Return one number of the stream, computed step by step."""

    def mixed(value: int) -> int:
        value = (value ^ value >> 30) * 0xBF58476D1CE4E5B9 % 2**64
        value = (value ^ value >> 27) * 0x94D049BB133111EB % 2**64
        return value ^ value >> 31

    step = 0x9E3779B97F4A7C15
    origin = mixed(((seed % 2**64 ^ mixed((purpose + step) % 2**64)) + step) % 2**64)
    return mixed((origin + (position + 1) * step) % 2**64)


@given(st.integers(-(2**65), 2**65), st.sampled_from(list(Purpose)), st.integers(0, 50))
def test_hashed(seed: int, purpose: Purpose, count: int) -> None:
    assert hashed(seed, purpose, count).tolist() == [splitmix(seed, purpose, position) for position in range(count)]


def test_no_object_per_partition() -> None:
    object_counts = []
    for partitions in (1_000, 200_000):
        tracemalloc.start()
        snapshot = generate(partitions, 10, topics=1, racks=2, health=DEGRADED)
        cluster = snapshot.to_cluster()
        converted = Snapshot.from_cluster(cluster)
        object_counts.append(sum(trace.count for trace in tracemalloc.take_snapshot().statistics("filename")))
        tracemalloc.stop()
        assert len(snapshot) == len(cluster) == len(converted) == partitions
    assert object_counts[1] - object_counts[0] < 500
