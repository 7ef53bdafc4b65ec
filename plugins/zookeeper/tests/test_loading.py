"""What the store reads: broken nodes are left out, answers may be lost or too long, old servers do."""

from __future__ import annotations

import logging
from collections.abc import Callable

import numpy as np
import pytest
from kframe_zookeeper import paths
from kframe_zookeeper.testing.proxy import MULTI_READ, Break, Moment, Proxy
from kframe_zookeeper.testing.store_world import ZooKeeperWorld
from kframe_zookeeper.testing.stores import MOMENTS, big_cluster, controller, opened

from kframe.model.columns import Int32
from kframe.model.events import Event
from kframe.testing.clusters import described
from kframe.testing.store_world import small_cluster


def test_what_cannot_be_read_is_left_out_and_reported(worlds: Callable[..., ZooKeeperWorld]) -> None:
    world = worlds(small_cluster())
    expected = described(small_cluster())
    operator = world.operator
    operator.set(paths.state_path("orders", 0), b'{"controller_epoch":1,"leader":"1"}')
    operator.set(paths.state_path("orders", 1), b"")
    operator.set(paths.topic_path("empty.topic"), b"[]")
    operator.set(paths.broker_path(2), b'{"version":1')
    operator.set(paths.config_path("topics", "leaving_topic"), b"no")
    odd = b' { "isr" : [ 3 ], "leader" : -1, "leader_epoch" : 9, "version" : 1, "extra" : {}, '
    operator.set(paths.state_path("orders", 2), odd + b'"controller_epoch" : 4, "leader_recovery_state" : 1 } ')
    store = opened(world)
    loaded = store.load()
    assert set(store.quarantined()) == {
        paths.state_path("orders", 0), paths.state_path("orders", 1), paths.topic_path("empty.topic"),
        paths.broker_path(2), paths.config_path("topics", "leaving_topic"),
    }  # fmt: skip
    found = described(loaded)
    assert set(found) == {"orders-0", "orders-1", "orders-2", "leaving_topic-0"}
    assert [found[f"orders-{number}"]["leader"] for number in range(2)] == [None, None]
    assert found["orders-2"] == expected["orders-2"] | {"controller_epoch": 4, "partition_epoch": 1}
    assert loaded.brokers.registered_ids() == [1, 3]
    operator.set(paths.broker_path(2), operator.get(paths.broker_path(1))[0])
    assert [one.broker_id for one in store.read_brokers()] == [1, 2, 3]
    assert paths.broker_path(2) not in store.quarantined()


def test_a_replica_that_is_stored_twice_darkens_nothing(
    worlds: Callable[..., ZooKeeperWorld], caplog: pytest.LogCaptureFixture
) -> None:
    world = worlds(small_cluster())
    world.operator.set(paths.topic_path("orders"), b'{"version":3,"partitions":{"0":[1,2,1],"1":[2],"2":[3,3]}}')
    store = opened(world)
    with caplog.at_level(logging.WARNING, "kframe.zookeeper"):
        found = described(store.load())
    assert [found[f"orders-{number}"]["replicas"] for number in range(3)] == [[1, 2], [2], [3]]
    assert store.quarantined() == {}
    assert [record.getMessage() for record in caplog.records] == [
        "2 partitions have a broker twice among their replicas, which counts once: orders-0, orders-2"
    ]


# -- bulk reads


def test_servers_without_multi_read_give_the_same(worlds: Callable[..., ZooKeeperWorld]) -> None:
    world = worlds(big_cluster())
    store = opened(world)
    expected = described(store.load())
    assert store._connection is not None
    store._connection.session.has_multi_read = False
    assert described(store.load()) == expected
    rows: Int32 = np.arange(1200, dtype=np.int32)[::-1].copy()
    cluster = store.load()
    assert store.read_states(cluster, rows).found.tolist() == [bool(row % 100 % 2) for row in rows.tolist()]


@MOMENTS
def test_a_load_goes_on_after_broken_connections(
    worlds: Callable[..., ZooKeeperWorld], proxy: Proxy, moment: Moment
) -> None:
    world = worlds(big_cluster())
    store, cluster = controller(world, proxy)
    proxy.script(*(Break(moment, nth, MULTI_READ) for nth in (1, 3, 5)))
    assert described(store.load()) == described(cluster)


def test_answers_too_long_for_the_connection_are_asked_for_in_parts(worlds: Callable[..., ZooKeeperWorld]) -> None:
    world = worlds(big_cluster())
    store = world.connect(reply_bytes_max=20_000)
    store.open(list[Event]().append)
    assert described(store.load()) == described(big_cluster())
