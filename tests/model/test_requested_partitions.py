"""The partitions of a request in columns."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from kframe.model.columns import Int32
from kframe.model.tables import RequestedPartitions
from kframe.testing.clusters import cluster_of, healthy
from tests.cluster_strategies import clusters, subset

_NAMES = st.sampled_from(["a", "b", "c"])


@given(st.one_of([
    st.lists(st.tuples(topics, st.integers(-1, 9))) for topics in (_NAMES, _NAMES.map(lambda name: name.encode() * 16))
]))  # fmt: skip
def test_pairs_keep_their_order_and_name_each_topic_once(pairs: list[tuple[str | bytes, int]]) -> None:
    requested = RequestedPartitions.of(pairs)
    assert list(requested) == pairs == [requested[position] for position in range(len(requested))]
    assert set(requested.topics) == {topic for topic, _ in pairs}
    assert len(set(requested.topics)) == len(requested.topics)


@given(st.data())
def test_rows_of_a_cluster_are_requested_by_name(data: st.DataObject) -> None:
    cluster = data.draw(clusters())
    rows: Int32 = subset(data.draw, len(cluster))
    rows = rows[cluster.partitions.topic[rows] >= 0]
    expected = [(cluster.view(int(row)).topic, cluster.view(int(row)).partition) for row in rows]
    assert list(cluster.requested(rows)) == expected


def test_topics_are_found_by_name_or_by_id() -> None:
    topics = cluster_of({"t": [healthy(1)], "u": [healthy(1)]}, (1,)).topics
    for index, name in enumerate(topics.names):
        topics.set_id(index, name.encode() * 16)
    assert topics.find_all(("u", "none", "t")).tolist() == [1, -1, 0]
    assert topics.find_all((b"u" * 16, bytes(16), b"t" * 16)).tolist() == [1, -1, 0]
    assert topics.find_all(()).tolist() == np.empty(0, np.int32).tolist()
