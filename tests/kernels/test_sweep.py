"""The kernels of the sweep equal their references on any columns."""

from __future__ import annotations

from types import ModuleType
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kframe import kernels
from kframe.model.cluster import ClusterState
from kframe.whatif.engines.zookeeper.sweep_healthy import rack_bits
from tests.cluster_strategies import clusters
from tests.kernels.compare import failure_counts, pair_failure_counts
from verification.reference import sweep as reference

pytestmark = pytest.mark.kernel

Settings = tuple[list[int], list[int], list[int], int]


@st.composite
def cases(draw: st.DrawFn) -> tuple[ClusterState, Settings, tuple[int, int]]:
    """Return a cluster, its settings and a range of rows. Settings are racks of brokers, min.insync.replicas and
    unclean election of topics. Also the number of rack bits."""
    cluster = draw(clusters())
    brokers, topics = len(cluster.brokers), len(cluster.topics)
    racks = draw(st.lists(st.integers(-1, 2), min_size=brokers, max_size=brokers))
    min_isrs = draw(st.lists(st.integers(1, 5), min_size=topics, max_size=topics))
    unclean = draw(st.lists(st.integers(0, 1), min_size=topics, max_size=topics))
    first = draw(st.integers(0, len(cluster)))
    return (
        cluster,
        (racks, min_isrs, unclean, draw(st.integers(1, 62))),
        (first, draw(st.integers(first, len(cluster)))),
    )


def count_all(module: ModuleType, cluster: ClusterState, settings: Settings, rows: tuple[int, int]) -> list[Any]:
    """Return all counts of both kernels, added to arrays of 7."""
    p, b = cluster.partitions, len(cluster.brokers)
    racks, min_isrs, unclean, bits = settings
    rack = np.array(racks, np.int32)
    columns = (
        p.topic,
        p.leader,
        p.partition_epoch,
        p.slot_start,
        p.replica_count,
        p.isr_count,
        p.replica,
        p.isr,
        cluster.brokers.registered,
        rack,
        rack_bits(rack, cluster.brokers.registered, bits),
        cluster.topics.deleting,
        np.array(min_isrs, np.int32),
        np.array(unclean, np.uint8),
    )
    for column in columns:
        column.flags.writeable = False
    single, pairs = failure_counts(b, 3), pair_failure_counts(b, rows[1] - rows[0])
    width = int(p.replica_count.max(initial=0)) + int(p.isr_count.max(initial=0)) + 1
    counted = module.count_failures(*rows, *columns, *single.values())
    pair_count = module.count_pair_failures(*rows, *columns, np.empty((3, width), np.int32), *pairs.values())
    return [counted, pair_count, *(array.tolist() for array in (*single.values(), *pairs.values()))]


@given(cases())
def test_sweep_kernels_equal_references(case: tuple[ClusterState, Settings, tuple[int, int]]) -> None:
    assert count_all(kernels, *case) == count_all(reference, *case)
