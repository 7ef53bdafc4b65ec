"""The replica index lists every row that has a replica on a broker, also after later assignments."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kframe.core.state.replica_index import ADDED_MAX, ReplicaIndex
from kframe.core.topics.replica_assignment import Assignments, assign
from kframe.model.arrays import Int32, Ragged
from kframe.model.cluster import ClusterState
from kframe.testing.clusters import PartitionSpec, cluster_of

pytestmark = pytest.mark.kernel

BROKERS = 6


def cluster_with(partitions: int) -> ClusterState:
    specs = [PartitionSpec((row % BROKERS, (row + 1) % BROKERS)) for row in range(partitions)]
    return cluster_of({"a": specs}, range(BROKERS))


def rows_with(cluster: ClusterState, broker: int) -> set[int]:
    return {row for row in range(len(cluster)) if broker in cluster.partitions.replicas_of(row).tolist()}


def mask(*brokers: int) -> np.ndarray[tuple[int], np.dtype[np.uint8]]:
    chosen = np.zeros(BROKERS, np.uint8)
    chosen[list(brokers)] = 1
    return chosen


def set_assignments(cluster: ClusterState, index: ReplicaIndex, row: int, replicas: list[int]) -> None:
    lists = Ragged.of([replicas])
    assign(cluster.partitions, np.array([row], np.int32), Assignments(lists, np.zeros(len(replicas), np.uint8)))
    index.add(np.array([row], np.int32))


@given(st.data())
def test_lookup_includes_all_rows_of_broker(data: st.DataObject) -> None:
    cluster = cluster_with(data.draw(st.integers(1, 40)))
    index = ReplicaIndex(cluster)
    lists = st.lists(st.integers(0, BROKERS - 1), unique=True, max_size=4)
    for _ in range(data.draw(st.integers(1, 12))):
        match data.draw(st.sampled_from(["ask", "give", "grow", "drop"])):
            case "give":
                set_assignments(cluster, index, data.draw(st.integers(0, len(cluster) - 1)), data.draw(lists))
            case "grow":
                name = f"t{len(cluster)}"
                cluster.add_topics([name], np.array([1]), Ragged.of([data.draw(lists)]))
            case "drop" if (topic := cluster.topics.find("a")) is not None:
                cluster.drop_topics(np.array([topic]))
        brokers = data.draw(st.lists(st.integers(0, BROKERS - 1), unique=True, min_size=1))
        named: Int32 = index.rows_on(mask(*brokers))
        assert named.dtype == np.int32
        assert (named[1:] > named[:-1]).all()
        assert set.union(*(rows_with(cluster, broker) for broker in brokers)) <= set(named.tolist())


def test_lookup_visits_only_rows_of_the_broker() -> None:
    cluster = cluster_with(6_000)
    index = ReplicaIndex(cluster)
    for broker in range(BROKERS):
        assert len(index.rows_on(mask(broker))) == 2_000
    set_assignments(cluster, index, 0, [5])
    assert len(index.rows_on(mask(5))) == 2_001 - (0 in rows_with(cluster_with(6), 5))


@pytest.mark.parametrize("notes", [ADDED_MAX, 10 * ADDED_MAX])
def test_added_rows_are_merged(notes: int) -> None:
    cluster = cluster_with(6_000)
    index = ReplicaIndex(cluster)
    index.rows_on(mask(0))
    for note in range(notes):
        set_assignments(cluster, index, note % 7, [note % BROKERS])
    assert len(index.rows_on(mask(0))) <= 2_000 + 7
