"""The store contract of kframe, on a real ZooKeeper."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from kframe_zookeeper.testing.servers import ServerHandle
from kframe_zookeeper.testing.store_world import ZooKeeperWorld

from kframe.model.cluster import ClusterState
from kframe.testing.store_contract import StoreContract, WorldFactory


class TestZooKeeperStore(StoreContract):
    @pytest.fixture
    def make_world(self, zookeeper: ServerHandle) -> Iterator[WorldFactory]:
        worlds: list[ZooKeeperWorld] = []

        def make(cluster: ClusterState) -> ZooKeeperWorld:
            worlds.append(ZooKeeperWorld(zookeeper.address, cluster))
            return worlds[-1]

        yield make
        for world in worlds:
            world.close()
