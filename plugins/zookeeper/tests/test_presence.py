"""A controller that stands among the brokers for those who look for it there, and is none."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest
from kframe_zookeeper import paths
from kframe_zookeeper.live import ZooKeeperCluster
from kframe_zookeeper.store import ZooKeeperStore
from kframe_zookeeper.testing.store_world import ZooKeeperWorld
from kframe_zookeeper.testing.stores import opened, until

from kframe.testing.clusters import registration
from kframe.testing.store_world import ONE, TWO, small_cluster

OURS = paths.broker_path(ONE)


def showing(world: ZooKeeperWorld) -> ZooKeeperStore:
    """A store that shows its controller; it has no role yet."""
    store = opened(world)
    store.announce(registration(ONE))
    return store


def ids(store: ZooKeeperStore) -> list[int]:
    return [one.broker_id for one in store.read_brokers()]


def test_it_stands_there_as_long_as_it_has_the_role(worlds: Callable[..., ZooKeeperWorld]) -> None:
    world = worlds(small_cluster())
    store = showing(world)
    assert world.operator.exists(OURS) is None
    store.claim(ONE)
    data, stat = world.operator.get(OURS)
    found = json.loads(data)
    assert found["kframe_controller"] is True
    assert found["endpoints"] == [f"PLAINTEXT://{one.host}:{one.port}" for one in registration(ONE).endpoints]
    assert stat.owner_session_id == world.operator.get(paths.CONTROLLER)[1].owner_session_id
    store.release()
    assert world.operator.exists(OURS) is None
    assert world.operator.exists(paths.CONTROLLER) is None


def test_it_is_shown_also_if_it_is_announced_when_it_has_the_role(worlds: Callable[..., ZooKeeperWorld]) -> None:
    world = worlds(small_cluster())
    store = opened(world)
    store.claim(ONE)
    store.announce(registration(ONE))
    until(lambda: world.operator.exists(OURS) is not None)


def test_nobody_of_ours_takes_it_for_a_broker(worlds: Callable[..., ZooKeeperWorld]) -> None:
    world = worlds(small_cluster())
    store, other = showing(world), opened(world)
    before = ids(other)
    store.claim(ONE)
    assert world.operator.exists(OURS) is not None
    assert (ids(store), ids(other)) == (before, before)
    cluster = ZooKeeperCluster(world.settings())
    assert list(cluster.broker_addresses()) == before
    assert ONE not in cluster.capture().to_cluster().brokers.ids.tolist()


def test_who_loses_the_role_goes(worlds: Callable[..., ZooKeeperWorld]) -> None:
    world = worlds(small_cluster())
    store, other = showing(world), opened(world)
    store.claim(ONE)
    assert other.take_over(TWO) == 2
    until(lambda: world.operator.exists(OURS) is None)


def test_a_broker_of_that_id_is_left_alone(
    worlds: Callable[..., ZooKeeperWorld], caplog: pytest.LogCaptureFixture
) -> None:
    world = worlds(small_cluster())
    store = showing(world)
    world.operator.create(OURS, b"a broker's", ephemeral=True)
    assert store.claim(ONE) == 1
    assert "is another's" in caplog.text
    store.release()
    assert world.operator.get(OURS)[0] == b"a broker's"
