"""Stores for fault tests: open, behind a proxy, with the role, and with partitions for bulk writes."""

from __future__ import annotations

from typing import Any

import pytest
from kframe_zookeeper.sandbox.fixture import ZooKeeperFixture
from kframe_zookeeper.store.store import ZooKeeperStore

from kframe.plugin.cluster import NO_STATE, ClusterState
from kframe.plugin.store import Claim, Event, Load, Prepare
from kframe.testing.clusters import PartitionSpec, StateSpec, change_of, cluster_of, healthy
from kframe.testing.store_fixture import FIRST_ID
from verification.zookeeper.proxy import BreakPoint, Proxy

TOPICS, PARTITIONS = 12, 100
BREAK_POINTS = pytest.mark.parametrize(
    "break_point", list(BreakPoint), ids=lambda break_point: break_point.name.lower()
)


def big_cluster() -> ClusterState:
    """1,200 partitions, enough for three batches of writes. Half of them have a state at version 0."""
    specs = [healthy(1, 2) if number % 2 else PartitionSpec((1, 2)) for number in range(PARTITIONS)]
    return cluster_of({f"topic-{number:02}": specs for number in range(TOPICS)}, registered=[1, 2, 3])


def every_row(cluster: ClusterState, leader: int, leader_epoch: int, *, stored: int = 0) -> Any:
    """A change of every partition. ``stored`` is the version of the partitions that had a state at first."""
    names = [cluster.name(row) for row in range(len(cluster))]
    states = {
        name: StateSpec(
            leader, (leader, 3), leader_epoch, NO_STATE if int(name.rpartition("-")[2]) % 2 == 0 else stored
        )
        for name in names
    }
    return change_of(cluster, states, 1)


def opened(fixture: ZooKeeperFixture, proxy: Proxy | None = None, events: list[Event] | None = None) -> ZooKeeperStore:
    """An open store, behind ``proxy`` if given."""
    store = fixture.connect(None if proxy is None else proxy.address)
    store.open((list[Event]() if events is None else events).append)
    return store


def controller(
    fixture: ZooKeeperFixture, proxy: Proxy, events: list[Event] | None = None
) -> tuple[ZooKeeperStore, ClusterState]:
    """A store behind a proxy. It has the role. Also the cluster that it has loaded."""
    store = opened(fixture, proxy, events)
    assert store.perform(Claim(FIRST_ID)) == 1
    store.perform(Prepare())
    return store, store.perform(Load())
