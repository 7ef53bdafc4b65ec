"""Brokers, topics and partitions together: rows are found by broker id, topic name and partition number."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kframe.core.state.stored_states import apply, reload
from kframe.errors import InputError, ShapeError
from kframe.model.arrays import Int32, Ragged
from kframe.model.brokers import Brokers
from kframe.model.changes import StoredStates
from kframe.model.cluster import ClusterState
from kframe.model.ids import NO_STATE, PartitionState, RecoveryState, ReplicaState
from kframe.model.slot_columns import BROKERS_MAX
from kframe.model.topics import Topics, are_topic_names, topic_name_problem
from kframe.testing.clusters import PartitionSpec, StateSpec, change_of, cluster_of, described, healthy
from tests.cluster_strategies import clusters


def int32_array(*numbers: int) -> Int32:
    return np.array(numbers, np.int32)


# -- brokers


def test_broker_index_is_permanent() -> None:
    brokers = Brokers()
    assert brokers.index_of([30, 10]).tolist() == [1, 0]
    assert brokers.index_of([20, 30, 20]).tolist() == [2, 1, 2]
    assert brokers.ids.tolist() == [10, 30, 20]
    assert (len(brokers), 20 in brokers, 99 in brokers, brokers.find(20), brokers.find(99)) == (3, True, False, 2, None)
    assert brokers.ids_of([2, -1, 0]) == [20, -1, 10]
    assert brokers.index_of([]).tolist() == []


def test_too_many_brokers_raise() -> None:
    brokers = Brokers()
    brokers.index_of(np.arange(BROKERS_MAX - 1, dtype=np.int64) * 3)
    with pytest.raises(InputError, match="found 32,768 different ones, expected at most 32,767"):
        brokers.index_of([1, 2])
    assert (len(brokers), 1 in brokers) == (BROKERS_MAX - 1, False)
    cluster = ClusterState()
    cluster.brokers = brokers
    cluster.add_topics(["t"], np.array([1], np.int32), Ragged.of([[int(index)] for index in brokers.index_of([1])]))
    assert cluster.partitions.replicas_of(0).tolist() == [BROKERS_MAX - 1]


@pytest.mark.parametrize("times", [1, 50], ids=["one by one", "by a table of all ids"])
@pytest.mark.parametrize("ids", [(), (3, 0, 30), (3, 2**31 - 1), (-2, 3)])
def test_broker_lookup_by_id(ids: tuple[int, ...], times: int) -> None:
    brokers = Brokers()
    brokers.index_of(ids)
    broker_ids = [3, -1, -2, 30, 31, 2**31 - 1, 0]
    indices = {broker_id: index for index, broker_id in enumerate(brokers.ids.tolist())}
    assert brokers.look_up(np.array(broker_ids * times)).tolist() == [
        indices.get(broker_id, -1) for broker_id in broker_ids * times
    ]
    assert len(brokers) == len(ids)


@pytest.mark.parametrize("dtype", [np.int32, np.int64])
def test_lookup_of_many_consecutive_broker_ids(dtype: type) -> None:
    brokers = Brokers()
    brokers.index_of((4, 5, 6))
    indexes = brokers.look_up(np.array([6, 4, 5, 4], dtype))
    assert indexes.dtype == np.int32
    assert indexes.tolist() == [2, 0, 1, 0]
    assert brokers.look_up(np.array([6, 4, 7, 3], dtype)).tolist() == [2, 0, -1, -1]


# -- topics


@pytest.mark.parametrize("name", ["a", "A.b_c-9", "a" * 249, "..."])
def test_topic_names(name: str) -> None:
    assert topic_name_problem(name) is None
    assert are_topic_names(["b", name])


@pytest.mark.parametrize("name", ["", ".", "..", "a" * 250, "a b", "ä", "a/b", "a\n", "\u0663"])
def test_invalid_topic_names(name: str) -> None:
    assert "1 to 249" in (topic_name_problem(name) or "")
    assert not are_topic_names(["b", name])


def test_rows_are_located_after_each_expansion() -> None:
    """Partitions 3 and 4 directly follow partitions 0 to 2. Rows of another topic precede partitions 5 and 6. Partition
    7 directly follows them."""
    topics = Topics()
    topics.add(["a"])
    for first_partition, first_row, count in ((0, 10, 3), (3, 13, 2), (5, 40, 2), (7, 42, 1)):
        topics.note_rows(0, first_partition, first_row, count)
    expected = [10, 11, 12, 13, 14, 40, 41, 42]
    assert [topics.row_of(0, partition) for partition in range(-1, 9)] == [None, *expected, None]
    assert topics.rows_of(0).tolist() == expected
    assert topics.locate(np.zeros(10, np.int32), np.arange(-1, 9)).tolist() == [-1, *expected, -1]
    assert topics.partition_count.tolist() == [8]
    assert topics.copy().rows_of(0).tolist() == expected


def test_index_of_dropped_topic_is_not_reused() -> None:
    topics = Topics()
    topics.add(["a", "b"])
    topics.note_blocks(int32_array(0, 1), int32_array(0, 2), int32_array(2, 2))
    topics.note_rows(0, 2, 9, 1)
    topics.deleting[0] = 1
    topics.drop(np.array([0], np.int32))
    assert (topics.find("a"), topics.row_of(0, 0), topics.row_of(0, 2), int(topics.deleting[0])) == (
        None,
        None,
        None,
        0,
    )
    assert topics.rows_of(0).tolist() == []
    assert topics.add(["a"]).tolist() == [2]
    assert topics.find("a") == 2


def test_wire_names_include_added_topics() -> None:
    topics = Topics()
    topics.add(["a", "bcd"])
    offsets, joined = topics.wire_names()
    assert (offsets.tolist(), joined) == ([0, 1, 4], b"abcd")
    topics.add(["e"])
    offsets, joined = topics.wire_names()
    assert (offsets.tolist(), joined) == ([0, 1, 4, 5], b"abcde")


# -- clusters


def test_view_has_broker_ids() -> None:
    spec = PartitionSpec((10, 20, 30), 20, (20, 10), 5, 4, 3, 1, adding_replicas=(30,), removing_replicas=(10,))
    cluster = cluster_of({"a": [healthy(10)], "b": [PartitionSpec((20,)), spec]}, (10, 20))
    view = cluster["b", 1]
    assert (view.topic, view.partition, view.replicas, view.isr, view.leader) == ("b", 1, (10, 20, 30), (20, 10), 20)
    assert (view.adding_replicas, view.removing_replicas) == ((30,), (10,))
    assert (view.leader_epoch, view.controller_epoch, view.partition_epoch) == (5, 4, 3)
    assert (view.recovery, view.state) == (RecoveryState.RECOVERING, PartitionState.NON_EXISTENT)
    assert view.replica_states == (ReplicaState.NON_EXISTENT,) * 3
    stateless = cluster["b", 0]
    assert (stateless.leader, stateless.isr, stateless.partition_epoch) == (None, (), NO_STATE)
    assert [cluster.name(row) for row in range(3)] == ["a-0", "b-0", "b-1"]
    assert [f"{partition.topic}-{partition.partition}" for partition in cluster] == ["a-0", "b-0", "b-1"]


@pytest.mark.parametrize("key", [("a", 1), ("a", -1), ("b", 0)])
def test_unknown_partition_raises(key: tuple[str, int]) -> None:
    cluster = cluster_of({"a": [healthy(1)]}, (1,))
    assert cluster.row(*key) is None
    with pytest.raises(KeyError, match=f"{key[0]}-{key[1]}"):
        _ = cluster[key]


def test_isr_can_be_longer_than_assignment() -> None:
    cluster = cluster_of({"a": [healthy(1), healthy(2)]}, (1, 2, 3))
    change = change_of(cluster, {"a-0": StateSpec(2, (3, 2, 1), 1, 0)}, controller_epoch=7)
    apply(cluster, change, int32_array(1))
    view = cluster["a", 0]
    assert (view.leader, view.isr, view.leader_epoch, view.partition_epoch, view.controller_epoch) == (
        2,
        (3, 2, 1),
        1,
        1,
        7,
    )
    assert (view.replicas, cluster["a", 1].isr) == ((1,), (2,))


@given(cluster=clusters(), data=st.data())
def test_applied_state_equals_change(cluster: ClusterState, data: st.DataObject) -> None:
    """Read rows as storage does, clear them in a copy, and store them again: the copy is equal."""
    p = cluster.partitions
    rows = np.flatnonzero(data.draw(st.lists(st.booleans(), min_size=len(p), max_size=len(p)))).astype(np.int32)
    has_state = p.partition_epoch[rows] != NO_STATE
    stored = StoredStates(
        rows,
        has_state,
        p.leaders_of(rows),
        p.leader_epoch[rows],
        p.controller_epochs_of(rows),
        p.partition_epoch[rows],
        p.recovery_of(rows),
        p.lists("isr", rows),
    )
    wiped = cluster.copy()
    wiped.partitions.isr_count[rows] = 0
    wiped.partitions.leader[rows[has_state]] = -1
    wiped.partitions.partition_epoch[rows] = 99
    reload(wiped, stored)
    assert described(wiped) == described(cluster)


@given(clusters())
def test_copy_is_equal_and_independent(cluster: ClusterState) -> None:
    before = described(cluster)
    copied = cluster.copy()
    assert described(copied) == before
    copied.partitions.leader[:] = 0
    copied.partitions.own("replica")
    copied.partitions.replica[:] = 0
    copied.brokers.registered[:] = 0
    copied.topics.deleting[:] = 0
    copied.brokers.index_of([99])
    assert described(cluster) == before
    assert 99 not in cluster.brokers


def test_topic_may_be_known_in_part() -> None:
    cluster = ClusterState()
    no_replicas = Ragged.empty(6)
    numbers = np.array([0, 1, 3, 7, 8, 2], np.int32)
    rows = cluster.add_topics(["whole", "part", "other"], np.array([2, 3, 1]), no_replicas, partitions=numbers)
    row_by_partition = {
        (name, number): cluster.row(name, number) for name in ("whole", "part", "other") for number in range(9)
    }
    assert {key: row for key, row in row_by_partition.items() if row is not None} == {
        ("whole", 0): 0,
        ("whole", 1): 1,
        ("part", 3): 2,
        ("part", 7): 3,
        ("part", 8): 4,
        ("other", 2): 5,
    }
    copied = cluster.copy()
    topic = np.array([1, 1, 1, 2, 0, 0], np.int32)
    assert copied.topics.locate(topic, np.array([7, 4, 9, 2, 1, 2], np.int32)).tolist() == [3, -1, -1, 5, 1, -1]
    assert copied.topics.rows_of_all(np.array([2, 1])).tolist() == [5, *rows[2:5].tolist()]
    copied.drop_topics(np.array([1], np.int32))
    assert copied.row("part", 7) is None
    assert copied.row("other", 2) == 5
    assert cluster.row("part", 7) == 3
    with pytest.raises(ShapeError, match="part is known only in part"):
        cluster.grow_topic(1, Ragged.of([[1]]))


def test_topic_with_cleared_id_resolves_by_name_only() -> None:
    cluster = cluster_of({"t": [PartitionSpec((1,))]}, [1])
    topics = cluster.topics
    index = topics.find("t")
    assert index is not None
    topics.set_id(index, b"x" * 16)
    topics.clear_id(index)
    assert (topics.find_id(b"x" * 16), topics.find("t"), topics.ids[index].any()) == (None, index, False)
