"""No change is missed, however often the connection breaks."""

from __future__ import annotations

from collections.abc import Callable

from kframe_zookeeper import paths
from kframe_zookeeper.testing.proxy import Proxy
from kframe_zookeeper.testing.store_world import ZooKeeperWorld
from kframe_zookeeper.testing.stores import controller, opened, until

from kframe.model.events import (
    BrokerModified,
    BrokersChanged,
    DeletionsMarked,
    Elect,
    Event,
    TopicModified,
    TopicsChanged,
)
from kframe.testing.clusters import registration
from kframe.testing.store_world import ONE, TWO, small_cluster


def test_no_change_is_missed_while_the_connection_is_gone(worlds: Callable[..., ZooKeeperWorld], proxy: Proxy) -> None:
    world, heard = worlds(small_cluster()), list[Event]()
    store, _ = controller(world, proxy, heard)
    store.read_deletions()
    session = store._connection
    heard.clear()
    proxy.refuse()
    proxy.cut()
    world.modify_broker(registration(3, rack="moved"))
    world.operator.set(paths.topic_path("orders"), world.operator.get(paths.topic_path("orders"))[0])
    world.mark_for_deletion(["orders"])
    world.operator.create(paths.PREFERRED_ELECTION, b"")
    proxy.refuse(False)
    until(lambda: len(heard) >= 3)
    world.settle()
    assert set(heard) == {BrokerModified(3), TopicModified("orders"), DeletionsMarked()}, "only what has changed"
    heard.clear()
    world.unregister_brokers([1])
    world.operator.create(paths.topic_path("new"), b"")
    world.operator.set(paths.topic_path("empty.topic"), world.operator.get(paths.topic_path("empty.topic"))[0])
    world.settle()
    assert set(heard) == {BrokersChanged(), TopicsChanged(), TopicModified("empty.topic")}, "the others still watch"
    assert store._connection is session


def test_the_end_of_the_controller_is_told_though_it_came_while_we_were_away(
    worlds: Callable[..., ZooKeeperWorld], proxy: Proxy
) -> None:
    world, heard = worlds(small_cluster()), list[Event]()
    first, second = opened(world), opened(world, proxy, heard)
    first.claim(ONE)
    assert second.claim(TWO) is None
    world.settle()
    heard.clear()
    for _ in range(2):
        proxy.cut()
    proxy.refuse()
    proxy.cut()
    first.close()
    proxy.refuse(False)
    until(lambda: heard == [Elect()])
    assert second.claim(TWO) == 2
