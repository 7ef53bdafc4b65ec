"""Storing states and counting rows: the kernels equal their references. The totals equal a recount."""

from __future__ import annotations

from types import ModuleType
from typing import Any, Final, TypeAlias

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from kframe import kernels
from kframe.model.arrays import Int32, Ragged
from kframe.model.cluster import ClusterState
from kframe.model.columns import COLUMNS
from kframe.model.ids import ReplicaState
from tests.cluster_strategies import clusters, subset
from verification import reference

pytestmark = pytest.mark.kernel

#: Number of replica states, with that of code 0.
STATES: Final = max(ReplicaState) + 1
#: Arguments of ``store_states`` besides rows: leaders, leader epochs, recovery states, two kinds of epochs, ISRs.
States: TypeAlias = tuple[Int32, Int32, NDArray[np.uint8], Int32, Int32, Ragged]


@st.composite
def stores(draw: st.DrawFn) -> tuple[ClusterState, Int32, States]:
    """A cluster, some of its rows, and a new state for each. ISRs may exceed the slots of the rows."""
    cluster = draw(clusters())
    rows, brokers = subset(draw, len(cluster)), len(cluster.brokers)

    def column(lowest: int, highest: int) -> Int32:
        values = st.lists(st.integers(lowest, highest), min_size=len(rows), max_size=len(rows))
        return np.array(draw(values), np.int32)

    isr = Ragged.of([tuple(draw(st.lists(st.integers(0, brokers - 1), unique=True, max_size=9))) for _ in rows])
    recovery = column(0, 1).astype(np.uint8)
    return cluster, rows, (column(-1, brokers - 1), column(0, 9), recovery, column(0, 9), column(1, 9), isr)


def stored(
    module: ModuleType, cluster: ClusterState, rows: Int32, states: States
) -> tuple[int, list[int], dict[str, Any]]:
    changed = cluster.copy()
    p, (leader, leader_epoch, recovery, partition_epoch, controller_epoch, isr) = changed.partitions, states
    p.ensure_capacity(rows, isr.counts)
    counted = np.full(len(rows), 9, np.uint8)
    count = module.store_states(
        rows,
        leader,
        leader_epoch,
        recovery,
        partition_epoch,
        p.number_epochs(controller_epoch),
        isr.offsets,
        isr.values,
        p.slot_start,
        p.leader,
        p.leader_epoch,
        p.status,
        p.partition_epoch,
        p.epoch_number,
        p.isr_count,
        p.isr,
        counted,
    )
    return count, counted.tolist(), {column.name: getattr(p, column.name).tolist() for column in COLUMNS}


@given(stores())
def test_store_states_equals_reference(case: tuple[ClusterState, Int32, States]) -> None:
    assert stored(kernels, *case) == stored(reference, *case)


def update_counts(module: ModuleType, cluster: ClusterState, rows: Int32, counted: Any, totals: Any) -> int:
    p, topics = cluster.partitions, cluster.topics
    changes: int = module.update_partition_counts(
        rows,
        p.topic,
        p.partition_epoch,
        p.status,
        p.leader,
        p.slot_start,
        p.replica_count,
        p.isr_count,
        p.replica,
        p.isr,
        p.replica_status,
        topics.deleting,
        topics.deletion_started,
        counted,
        totals,
    )
    return changes


@given(cluster=clusters(), data=st.data())
def test_partition_counts_equal_reference_and_recount(cluster: ClusterState, data: st.DataObject) -> None:
    """Count in pieces, with repeated rows, and again after the columns have changed."""
    p = cluster.partitions
    count = len(p)
    counted, expected_counted = np.zeros(count, np.uint8), np.zeros(count, np.uint8)
    totals, expected_totals = np.zeros(3, np.int64), np.zeros(3, np.int64)
    for _ in range(2):
        pieces = data.draw(st.lists(st.integers(0, count - 1), max_size=2 * count)) if count else []
        for rows in (np.array(pieces, np.int32), np.arange(count, dtype=np.int32)):
            changes = update_counts(kernels, cluster, rows, counted, totals)
            assert changes == update_counts(reference, cluster, rows, expected_counted, expected_totals)
            assert (counted.tolist(), totals.tolist()) == (expected_counted.tolist(), expected_totals.tolist())
        assert totals.tolist() == [int((counted & bit != 0).sum()) for bit in (1, 2, 4)]
        for name, values in (("leader", 3), ("status", 32), ("partition_epoch", 2)):
            column_values = data.draw(st.lists(st.integers(0, values - 1), min_size=count, max_size=count))
            getattr(p, name)[:] = np.array(column_values, np.int32) - (name == "partition_epoch")
        cluster.topics.deleting[:] = data.draw(st.integers(0, 1))
        cluster.topics.deletion_started[:] = data.draw(st.integers(0, 1))


def counted_states(module: ModuleType, cluster: ClusterState, rows: Int32, topics: int) -> NDArray[np.int32]:
    """Return the replicas of ``rows`` by state and topic."""
    p, counts = cluster.partitions, np.zeros(STATES * topics, np.int32)
    replicas = module.count_replica_states(
        rows, p.topic, p.slot_start, p.replica_count, p.replica_status, topics, counts
    )
    assert replicas == counts.sum() == p.replica_count[rows].sum()
    return counts


@given(cluster=clusters(), data=st.data())
def test_replica_states_are_set_and_counted(cluster: ClusterState, data: st.DataObject) -> None:
    """The counts of counted topics equal a recount. Later topics, and topics that are not counted, keep theirs."""
    rows = np.flatnonzero(cluster.partitions.topic >= 0).astype(np.int32)
    topics = len(cluster.topics)
    before = counted_states(kernels, cluster, rows, topics)
    assert before.tolist() == counted_states(reference, cluster, rows, topics).tolist()
    topic_limit = data.draw(st.integers(0, topics))
    is_counted = np.array(data.draw(st.lists(st.integers(0, 1), min_size=topic_limit, max_size=topic_limit)), np.uint8)
    target, sources = data.draw(st.sampled_from(ReplicaState)), data.draw(st.integers(0, 2**STATES - 1))
    slots = np.flatnonzero(data.draw(st.lists(st.booleans(), max_size=cluster.partitions.slot_count)))
    p = cluster.partitions
    owners = np.repeat(np.arange(len(p), dtype=np.int32), p.replica_count)
    assigned = p.slots_of(np.arange(len(p))).astype(np.int32)
    chosen = np.isin(assigned, slots)
    results = []
    for module in (kernels, reference):
        changed = cluster.copy()
        counts = before.reshape(STATES, topics)[:, :topic_limit].copy().reshape(-1)
        totals = (counts.reshape(STATES, topic_limit) * is_counted).sum(axis=1).astype(np.int64)
        legal = np.full(int(chosen.sum()), 9, np.uint8)
        matches = module.set_replica_states(
            owners[chosen],
            assigned[chosen],
            sources,
            target,
            changed.partitions.topic,
            is_counted,
            changed.partitions.replica_status,
            counts,
            totals,
            legal,
        )
        results.append((matches, legal.tolist(), changed.partitions.replica_status.tolist(), counts.tolist()))
        after = counted_states(reference, changed, rows, topics).reshape(STATES, topics)[:, :topic_limit]
        expected = np.where(is_counted != 0, after, before.reshape(STATES, topics)[:, :topic_limit])
        assert counts.reshape(STATES, topic_limit).tolist() == expected.tolist()
        assert totals.tolist() == (expected * is_counted).sum(axis=1).tolist()
    assert results[0] == results[1]


@given(cluster=clusters(), data=st.data())
def test_replica_states_on_a_broker_equal_reference(cluster: ClusterState, data: st.DataObject) -> None:
    """The same states, counts and marks for the replicas of any rows on any broker."""
    p, topics = cluster.partitions, len(cluster.topics)
    registered = np.flatnonzero(p.topic >= 0).astype(np.int32)
    chosen = data.draw(st.lists(st.booleans(), min_size=len(registered), max_size=len(registered)))
    rows = registered[np.array(chosen, np.bool_)]
    broker = data.draw(st.integers(0, len(cluster.brokers)))
    sources, target = data.draw(st.integers(0, 2**STATES - 1)), data.draw(st.sampled_from(ReplicaState))
    is_counted = np.array(data.draw(st.lists(st.integers(0, 1), min_size=topics, max_size=topics)), np.uint8)
    results = []
    for module in (kernels, reference):
        changed = cluster.copy()
        counts, totals = np.zeros(STATES * topics, np.int32), np.zeros(STATES, np.int64)
        legal = np.full(len(rows), 9, np.int8)
        matches = module.set_replica_states_on(
            rows,
            broker,
            sources,
            target,
            p.topic,
            p.slot_start,
            p.replica_count,
            p.replica,
            is_counted,
            changed.partitions.replica_status,
            counts,
            totals,
            legal,
        )
        assert matches == np.count_nonzero(legal == 1)
        results.append((legal.tolist(), changed.partitions.replica_status.tolist(), counts.tolist(), totals.tolist()))
    assert results[0] == results[1]


@given(cluster=clusters())
def test_initial_states_equal_references(cluster: ClusterState) -> None:
    """Flags, and states of slots without a replica, stay as they are."""
    results = []
    for module in (kernels, reference):
        p, live = cluster.copy().partitions, cluster.brokers.live
        shape = p.slot_start, p.replica_count, p.replica
        online = module.initialize_replica_states(*shape, live, p.replica_status)
        others = module.initialize_partition_states(
            p.leader, p.partition_epoch, *shape, p.replica_status, live, p.status
        )
        results.append((online, others, p.replica_status.tolist(), p.status.tolist()))
    assert results[0] == results[1]
    before, unused = cluster.partitions, np.ones(cluster.partitions.slot_count, np.bool_)
    assert p.replica_flags(slice(None)).tolist() == before.replica_flags(slice(None)).tolist()
    unused[before.slots_of(np.arange(len(before)))] = False
    assert p.replica_status[unused].tolist() == before.replica_status[unused].tolist()
