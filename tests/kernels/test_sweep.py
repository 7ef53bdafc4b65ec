"""The kernels of the sweep equal their twins, whatever stands in the columns."""

from __future__ import annotations

import inspect
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from kframe import _naive_sweep, _sweep
from kframe.model.cluster import ClusterState
from tests.worlds import clusters

Settings = tuple[list[int], list[int], list[int]]


@st.composite
def cases(draw: st.DrawFn) -> tuple[ClusterState, Settings, tuple[int, int]]:
    """A cluster; racks of brokers, min.insync.replicas and unclean elections of topics; and which rows are counted."""
    cluster = draw(clusters())
    brokers, topics = len(cluster.brokers), len(cluster.topics)
    racks = draw(st.lists(st.integers(-1, 2), min_size=brokers, max_size=brokers))
    least = draw(st.lists(st.integers(1, 5), min_size=topics, max_size=topics))
    unclean = draw(st.lists(st.integers(0, 1), min_size=topics, max_size=topics))
    first = draw(st.integers(0, len(cluster)))
    return cluster, (racks, least, unclean), (first, draw(st.integers(first, len(cluster))))


def tallied(kernels: ModuleType, cluster: ClusterState, drawn: Settings, rows: tuple[int, int]) -> list[Any]:
    """All that both kernels count, added to 7 everywhere."""
    p, b = cluster.partitions, len(cluster.brokers)
    racks, least, unclean = drawn
    columns = (p.topic, p.leader, p.partition_epoch, p.slot_start, p.replica_count, p.isr_count, p.replica, p.isr,
               cluster.brokers.registered, np.array(racks, np.int32), cluster.topics.deleting,
               np.array(least, np.int32), np.array(unclean, np.uint8))  # fmt: skip
    for column in columns:
        column.flags.writeable = False
    shapes = [(2, 8), (b, 8), (3, 8), (2, b), (b, b), (3, b), (b * (b - 1) // 2, 8)]
    counts: list[NDArray[Any]] = [np.full(shape, 7, np.int32) for shape in shapes]
    *single, pairs = counts
    width = int(p.replica_count.max(initial=0)) + int(p.isr_count.max(initial=0)) + 1
    room = 4 * (rows[1] - rows[0])
    key, change = np.full(room, -7, np.int64), np.full(room, 7, np.int8)
    counted = kernels.tally_failures(*rows, *columns, *single)
    filled = kernels.tally_pairs(*rows, *columns, np.empty((3, width), np.int32), pairs, key, change)
    return [counted, filled, *(array.tolist() for array in counts), key.tolist(), change.tolist()]


@given(cases())
def test_a_kernel_equals_its_twin(case: tuple[ClusterState, Settings, tuple[int, int]]) -> None:
    assert tallied(_sweep, *case) == tallied(_naive_sweep, *case)


@pytest.mark.parametrize("name", _naive_sweep.__all__)
def test_twins_take_the_same_arguments(name: str) -> None:
    kernel, twin = (inspect.signature(getattr(module, name)).parameters for module in (_sweep, _naive_sweep))
    assert list(kernel) == list(twin)


def test_every_kernel_has_a_twin() -> None:
    named = {name for name, member in vars(_sweep).items() if callable(member) and name[0].islower()}
    assert named == set(_naive_sweep.__all__)
