"""New replica lists: the kernel equals its reference. Its postconditions hold."""

from __future__ import annotations

from types import ModuleType
from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from kframe import kernels
from kframe.kernels import reference
from kframe.model.cluster import ClusterState
from kframe.model.columns import Ragged
from kframe.model.ids import ReplicaState
from tests.cluster_strategies import clusters, subset


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


def assigned(module: ModuleType, cluster: ClusterState, rows: Any, wanted: Ragged, flags: Any) -> tuple[Any, ...]:
    twin = cluster.copy()
    p = twin.partitions
    p.ensure_capacity(rows, wanted.counts + p.replica_count[rows])
    longest, departed = int(p.replica_count.max(initial=0)), np.empty(len(rows), np.int32)
    total = module.assign_replicas(
        rows, wanted.offsets, wanted.values, flags, p.slot_start, p.replica_count, p.replica, p.replica_state,
        p.replica_flags, np.empty(longest, np.int32), np.empty(longest, np.uint8), np.empty(longest, np.uint8),
        departed,
    )  # fmt: skip
    columns: list[np.ndarray[Any, Any]] = [p.replica_count, p.replica, p.replica_state, p.replica_flags]
    return total, departed.tolist(), [column.tolist() for column in columns], twin


@given(assignments())
def test_the_kernel_equals_its_twin(case: tuple[ClusterState, Any, Ragged, Any]) -> None:
    compiled, twin = assigned(kernels, *case), assigned(reference, *case)
    assert compiled[:3] == twin[:3]


@given(assignments())
def test_states_go_with_their_replicas_and_who_left_stands_behind(case: tuple[ClusterState, Any, Ragged, Any]) -> None:
    cluster, rows, expected, _ = case
    _, departed, _, twin = assigned(kernels, *case)
    for i, row in enumerate(rows.tolist()):
        before = dict(zip(cluster.view(row).replicas, cluster.view(row).replica_states, strict=True))
        after = twin.view(row)
        assert list(after.replicas) == twin.brokers.ids_of(expected[i])
        assert after.replica_states == tuple(before.get(b, ReplicaState.NON_EXISTENT) for b in after.replicas)
        start = int(twin.partitions.slot_start[row]) + len(after.replicas)
        behind = twin.brokers.ids_of(twin.partitions.replica[start : start + departed[i]])
        assert behind == [broker for broker in before if broker not in after.replicas]
