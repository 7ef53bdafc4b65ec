"""Stored states in columns are equivalent to a dictionary of versioned records."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kframe.core.state.stored_states import reload
from kframe.embedded.describe import describe_partition
from kframe.embedded.states import StateColumns
from kframe.embedded.write_times import WriteTimes
from kframe.model.changes import WriteCode
from kframe.model.cluster import UNKNOWN_ZXID, ClusterState
from kframe.model.ids import NO_BROKER_EPOCH, NO_STATE, PartitionState, ReplicaFlag, ReplicaState
from kframe.testing.clusters import PartitionSpec, StateSpec, change_of, cluster_of, described, healthy, rows_of

BROKERS = (1, 2, 3, 7)
NAMES = ("a-0", "a-1", "b-0", "c-0", "c-1", "c-2")


def cluster_in_order(topics: list[str], brokers: list[int]) -> ClusterState:
    """Topics a, b and c without states, numbered in this order; likewise the brokers."""
    sizes = {"a": 2, "b": 1, "c": 3}
    return cluster_of({topic: [PartitionSpec((1, 2, 3))] * sizes[topic] for topic in topics}, registered=brokers)


def model_write(model: dict[str, dict[str, Any]], name: str, state: StateSpec, controller_epoch: int) -> WriteCode:
    """Apply one compare-and-set to a dictionary of records."""
    stored = model.get(name)
    if state.expected == NO_STATE and stored is not None:
        return WriteCode.EXISTS
    if state.expected != NO_STATE and stored is None:
        return WriteCode.MISSING
    if stored is not None and stored["partition_epoch"] != state.expected:
        return WriteCode.STALE
    model[name] = {
        "leader": state.leader,
        "isr": list(state.isr),
        "leader_epoch": state.leader_epoch,
        "controller_epoch": controller_epoch,
        "leader_recovery_state": state.recovery,
        "partition_epoch": state.expected + 1,
    }
    return WriteCode.OK


STATES = st.builds(
    StateSpec,
    leader=st.sampled_from((-1, *BROKERS)),
    isr=st.lists(st.sampled_from(BROKERS), unique=True).map(tuple),
    leader_epoch=st.integers(0, 5),
    expected=st.integers(NO_STATE, 2),
    recovery=st.integers(0, 1),
)
ORDERS = st.tuples(st.permutations(["a", "b", "c"]), st.permutations(list(BROKERS)))
WRITES = st.lists(st.dictionaries(st.sampled_from(NAMES), STATES, max_size=6), max_size=6)


@given(ORDERS, ORDERS, WRITES)
def test_columns_equal_a_dictionary_of_records(
    stored_order: tuple[list[str], list[int]],
    controller_order: tuple[list[str], list[int]],
    writes: list[dict[str, StateSpec]],
) -> None:
    columns = StateColumns(cluster_in_order(*stored_order))
    controller, model = cluster_in_order(*controller_order), dict[str, dict[str, Any]]()
    for controller_epoch, states in enumerate(writes):
        result = columns.write(controller, change_of(controller, states, controller_epoch))
        codes = [model_write(model, name, state, controller_epoch) for name, state in states.items()]
        assert result.codes.tolist() == codes
        epochs = [
            model[name]["partition_epoch"] if code is WriteCode.OK else NO_STATE
            for name, code in zip(states, codes, strict=True)
        ]
        assert result.partition_epoch.tolist() == epochs
    stored = columns.read(controller, rows_of(controller, NAMES))
    assert dict(zip(NAMES, stored.exists.tolist(), strict=True)) == {name: name in model for name in NAMES}
    reload(controller, stored)
    for cluster in (columns.cluster, controller):
        actual = described(cluster)
        assert {name: {key: actual[name][key] for key in state} for name, state in model.items()} == model


def test_controller_state_is_not_stored() -> None:
    cluster = cluster_of({"t": [healthy(1, 2, 3)]}, registered=[1, 2])
    cluster.flag_replicas(0, cluster.brokers.index_of([1]), ReplicaFlag.OFFLINE_DIR)
    cluster.flag_replicas(0, cluster.brokers.index_of([1, 3]), ReplicaFlag.ADDING)
    p, rows = cluster.partitions, np.array([0])
    p.set_states(rows, PartitionState.ONLINE)
    p.set_replica_states(slice(None), ReplicaState.ONLINE)
    cluster.brokers.shutting_down[:] = 1
    stored = StateColumns(cluster).cluster
    assert stored.partitions.states_of(rows).tolist() == [PartitionState.NON_EXISTENT]
    assert stored.partitions.replica_states(slice(None)).tolist() == [ReplicaState.NON_EXISTENT] * 3
    assert stored.partitions.replica_flags(slice(None)).tolist() == [ReplicaFlag.ADDING, 0, ReplicaFlag.ADDING]
    assert stored.brokers.registered_ids() == []
    assert stored.brokers.shutting_down.tolist() == [0, 0, 0]
    assert stored.brokers.broker_epoch.tolist() == [NO_BROKER_EPOCH] * 3
    assert stored.brokers.ids.tolist() == [1, 2, 3]
    assert p.states_of(rows).tolist() == [PartitionState.ONLINE], "the caller's columns are left alone"


def test_row_of_a_dropped_topic_is_missing() -> None:
    controller = cluster_of({"t": [healthy(1)], "u": [healthy(1)]}, registered=[1])
    columns = StateColumns(controller)
    change = change_of(controller, {"t-0": StateSpec(1, (1,), 1, 0), "u-0": StateSpec(1, (1,), 1, 0)}, 1)
    controller.partitions.own("topic")
    controller.partitions.topic[0] = -1
    assert columns.write(controller, change).codes.tolist() == [WriteCode.MISSING, WriteCode.OK]
    assert columns.read(controller, change.rows).exists.tolist() == [False, True]


def test_overwrite_keeps_omitted_fields() -> None:
    columns = StateColumns(
        cluster_of({"t": [healthy(1, 2, 3, leader_epoch=4), PartitionSpec((2, 3))]}, registered=[1, 2, 3])
    )
    assert columns.overwrite("t", 0, isr=[3, 1]) == 1
    before = describe_partition(columns.cluster.view(0))
    assert (before["leader"], before["isr"], before["leader_epoch"], before["partition_epoch"]) == (1, [3, 1], 4, 1)
    assert columns.overwrite("t", 0, leader=-1, leader_epoch=9, controller_epoch=6, recovery=1) == 2
    assert describe_partition(columns.cluster.view(0)) == before | {
        "leader": -1,
        "leader_epoch": 9,
        "controller_epoch": 6,
        "leader_recovery_state": 1,
        "partition_epoch": 2,
    }


@pytest.mark.parametrize("writes", [[[0]], [[0], [1]], [[0, 1, 2, 3, 4, 5], [0]], [[7], [7], [3]]])
def test_write_times_equal_those_of_a_column(writes: list[list[int]]) -> None:
    """A few writes of few rows are retained as they are, more in a column. New rows were never written."""
    times, expected = WriteTimes(), np.full(8, UNKNOWN_ZXID)
    assert not times
    for zxid, rows in enumerate(writes):
        times.note(np.array(rows, np.int32), zxid, 8)
        expected[rows] = zxid
    assert times
    assert times.column(8).tolist() == expected.tolist()
    assert times.column(10).tolist() == [*expected.tolist(), UNKNOWN_ZXID, UNKNOWN_ZXID]
