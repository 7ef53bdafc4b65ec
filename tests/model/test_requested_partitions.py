"""The partitions of a request in columns."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from kframe.model.arrays import Int32
from kframe.model.cluster import ClusterState
from kframe.model.tables import RequestedPartitions
from kframe.testing.clusters import cluster_of, healthy
from tests.cluster_strategies import clusters

_NAMES = st.sampled_from(["a", "b", "c"])


def _pairs(topics: st.SearchStrategy[Any]) -> st.SearchStrategy[list[tuple[Any, int]]]:
    return st.lists(st.tuples(topics, st.integers(-1, 9)))


@given(_pairs(_NAMES) | _pairs(_NAMES.map(lambda name: name.encode() * 16)))
def test_pairs_keep_order_and_list_each_topic_once(pairs: list[tuple[str | bytes, int]]) -> None:
    requested = RequestedPartitions.of(pairs)
    assert list(requested) == pairs == [requested[position] for position in range(len(requested))]
    assert set(requested.topics) == {topic for topic, _ in pairs}
    assert len(set(requested.topics)) == len(requested.topics)


@given(clusters(), st.integers(-1, 3))
def test_rows_of_a_cluster_are_requested_by_name(cluster: ClusterState, step: int) -> None:
    rows: Int32 = np.flatnonzero(cluster.partitions.topic >= 0).astype(np.int32)[:: step or 1]
    expected = [(cluster.view(row).topic, cluster.view(row).partition) for row in rows.tolist()]
    assert list(cluster.requested(rows)) == expected


def test_topics_are_looked_up_by_name_or_by_id() -> None:
    topics = cluster_of({"t": [healthy(1)], "u": [healthy(1)]}, (1,)).topics
    for index, name in enumerate(topics.names):
        topics.set_id(index, name.encode() * 16)
    assert topics.find_all(("u", "t", "u")).tolist() == [1, 0, 1]
    assert topics.find_all(("u",)).tolist() == [1]
    assert topics.find_all(("u", "none", "t")).tolist() == [1, -1, 0]
    assert topics.find_all((b"u" * 16, bytes(16), b"t" * 16)).tolist() == [1, -1, 0]
    assert topics.find_all(()).tolist() == np.empty(0, np.int32).tolist()
