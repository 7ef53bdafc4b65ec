"""New replica lists: the kernel equals its reference. Its postconditions hold."""

from __future__ import annotations

from types import ModuleType
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kframe import kernels
from kframe.model.arrays import Ragged
from kframe.model.cluster import ClusterState
from kframe.model.ids import ReplicaState
from tests.cluster_strategies import clusters, subset
from verification import reference

pytestmark = pytest.mark.kernel


@st.composite
def assignments(draw: st.DrawFn) -> tuple[ClusterState, Any, Ragged, Any]:
    """A cluster, some of its rows, and a new replica list with flags for each."""
    cluster = draw(clusters())
    rows, brokers = subset(draw, len(cluster)), len(cluster.brokers)
    lists = [_list(draw, cluster.partitions.replicas_of(row).tolist(), brokers) for row in rows.tolist()]
    new_lists = Ragged.of(lists)
    flags = draw(st.lists(st.integers(0, 3), min_size=len(new_lists.values), max_size=len(new_lists.values)))
    return cluster, rows, new_lists, np.array(flags, np.uint8)


def _list(draw: st.DrawFn, now: list[int], brokers: int) -> tuple[int, ...]:
    """Any brokers after a prefix of the present list: none of it, some, or all."""
    retained = now[: draw(st.integers(0, len(now)))]
    others = st.lists(st.sampled_from([broker for broker in range(brokers) if broker not in retained]), unique=True)
    return (*retained, *(draw(others)[:5] if len(retained) < brokers else ()))


def assigned(module: ModuleType, cluster: ClusterState, rows: Any, new_lists: Ragged, flags: Any) -> tuple[Any, ...]:
    changed = cluster.copy()
    p = changed.partitions
    p.ensure_capacity(rows, new_lists.counts + p.replica_count[rows])
    p.own("replica_count", "replica")
    max_replicas, removed_counts = int(p.replica_count.max(initial=0)), np.empty(len(rows), np.int32)
    total = module.assign_replicas(
        rows,
        new_lists.offsets,
        new_lists.values,
        flags,
        p.slot_start,
        p.replica_count,
        p.replica,
        p.replica_status,
        np.empty(max_replicas, np.int32),
        np.empty(max_replicas, np.uint8),
        removed_counts,
    )
    columns: list[np.ndarray[Any, Any]] = [p.replica_count, p.replica, p.replica_status]
    return total, removed_counts.tolist(), [column.tolist() for column in columns], changed


@given(assignments())
def test_assign_replicas_equals_reference(case: tuple[ClusterState, Any, Ragged, Any]) -> None:
    compiled, expected = assigned(kernels, *case), assigned(reference, *case)
    assert compiled[:3] == expected[:3]


@given(assignments())
def test_replicas_keep_state_and_removed_replicas_follow_list(case: tuple[ClusterState, Any, Ragged, Any]) -> None:
    cluster, rows, expected, _ = case
    _, removed_counts, _, changed = assigned(kernels, *case)
    for i, row in enumerate(rows.tolist()):
        before = dict(zip(cluster.view(row).replicas, cluster.view(row).replica_states, strict=True))
        after = changed.view(row)
        assert list(after.replicas) == changed.brokers.ids_of(expected[i])
        assert after.replica_states == tuple(before.get(b, ReplicaState.NON_EXISTENT) for b in after.replicas)
        start = int(changed.partitions.slot_start[row]) + len(after.replicas)
        removed = changed.brokers.ids_of(changed.partitions.replica[start : start + removed_counts[i]])
        assert removed == [broker for broker in before if broker not in after.replicas]
