"""What the store reads: broken nodes are left out, answers may be lost or too long, old servers do."""

from __future__ import annotations

import logging
from collections.abc import Callable

import numpy as np
import pytest
from kazoo.client import KazooClient
from kframe_zookeeper import paths
from kframe_zookeeper.testing.proxy import GET_CHILDREN, MULTI_READ, Break, Link, Moment, Proxy
from kframe_zookeeper.testing.store_world import ZooKeeperWorld
from kframe_zookeeper.testing.stores import MOMENTS, big_cluster, controller, opened, until
from kframe_zookeeper.znodes import ConfigChange, encode_config_change

from kframe.model.columns import Int32
from kframe.model.events import (
    BrokersChanged,
    Event,
    IsrChangesLeft,
    LogDirEventsLeft,
    TopicModified,
    TopicsChanged,
    TopicSettingsChanged,
)
from kframe.testing.clusters import described, rows_of
from kframe.testing.store_world import ONE, small_cluster


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


def test_a_registration_that_can_be_read_no_longer_is_taken_as_it_was(worlds: Callable[..., ZooKeeperWorld]) -> None:
    world = worlds(small_cluster())
    store = opened(world)
    path, before = paths.broker_path(2), store.read_brokers()
    world.operator.set(path, b'{"version":1')
    assert store.read_brokers() == before == store.read_brokers(), "its broker lives"
    assert set(store.quarantined()) == {path}
    world.operator.delete(path)
    world.operator.create(path, b"{", ephemeral=True)
    assert [one.broker_id for one in store.read_brokers()] == [1, 3], "another registration, of which nothing is known"
    assert [one.broker_id for one in opened(world).read_brokers()] == [1, 3]


def test_states_are_loaded_with_the_transactions_that_wrote_them(worlds: Callable[..., ZooKeeperWorld]) -> None:
    world = worlds(small_cluster())
    names = [("orders", number) for number in range(3)]
    world.operator.set(paths.state_path("orders", 1), world.operator.get(paths.state_path("orders", 1))[0])
    loaded = opened(world).load()
    assert loaded.written_at is not None
    stats = [world.operator.get(paths.state_path(*name))[1] for name in names]
    assert loaded.written_at[rows_of(loaded, ["orders-0", "orders-1", "orders-2"])].tolist() == [
        stat.mzxid for stat in stats
    ]
    assert stats[1].mzxid > max(stats[0].mzxid, stats[2].mzxid)


def test_who_is_registered_is_told_by_each_load(worlds: Callable[..., ZooKeeperWorld]) -> None:
    world, told = worlds(small_cluster()), list[list[int]]()
    store = opened(world)
    store.foretell(lambda registrations: told.append([one.broker_id for one in registrations]))
    for has_multi_read in (True, False):
        store._connected().session.has_multi_read = has_multi_read
        store.load()
    assert told == [[1, 2, 3], [1, 2, 3]]


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
    assert cluster.written_at is None, "not asked of old servers"
    assert store.read_states(cluster, rows).found.tolist() == [bool(row % 100 % 2) for row in rows.tolist()]


@MOMENTS
def test_a_load_goes_on_after_broken_connections(
    worlds: Callable[..., ZooKeeperWorld], proxy: Proxy, moment: Moment
) -> None:
    world = worlds(big_cluster())
    store, cluster = controller(world, proxy)
    proxy.script(*(Break(moment, nth, MULTI_READ) for nth in (1, 3, 5)))
    assert described(store.load()) == described(cluster)


CHANGES: dict[str, tuple[int, bytes, Callable[[KazooClient], object], type[Event]]] = {
    "a broker leaves": (
        GET_CHILDREN, paths.BROKER_IDS.encode(), lambda it: it.delete(paths.broker_path(3)), BrokersChanged
    ),
    "a topic is created": (
        GET_CHILDREN, paths.TOPICS.encode(), lambda it: it.create(paths.topic_path("new"), b""), TopicsChanged
    ),
    "a topic is written": (
        MULTI_READ, b"/topic-11\0", lambda it: it.set(paths.topic_path("topic-11"), b'{"version":3}'), TopicModified
    ),
    "settings change": (
        MULTI_READ, b"/config/topics/topic-11\0", lambda it: it.create(
            paths.CONFIG_CHANGE, encode_config_change(ConfigChange("topics", "topic-11")), sequence=True
        ), TopicSettingsChanged,
    ),
    "an ISR changes": (
        MULTI_READ, b"/topic-11/partitions/99/state", lambda it: it.create(
            paths.ISR_CHANGE, b'{"version":1,"partitions":[]}', sequence=True
        ), IsrChangesLeft,
    ),
    "a log directory dies": (
        MULTI_READ, b"/topic-11/partitions/99/state", lambda it: it.create(paths.LOG_DIR_EVENT, b"{}", sequence=True),
        LogDirEventsLeft,
    ),
}  # fmt: skip


@pytest.mark.parametrize("what", CHANGES)
def test_a_change_while_a_controller_reads_is_told(
    worlds: Callable[..., ZooKeeperWorld], proxy: Proxy, what: str
) -> None:
    """It happens when the server has answered the request that would have shown it, and the answer is on its way."""
    world, heard = worlds(big_cluster()), list[Event]()
    opcode, holding, change, expected = CHANGES[what]
    store = opened(world, proxy, heard)
    store.claim(ONE)
    store.prepare()

    def happens(_link: Link) -> None:
        change(world.operator)

    moment = Break(Moment.BEFORE_ANSWER, 1, opcode, happens, holding)
    proxy.script(moment)
    store.load()
    assert moment.happened.is_set()
    until(lambda: any(isinstance(event, expected) for event in heard))


def test_answers_too_long_for_the_connection_are_asked_for_in_parts(worlds: Callable[..., ZooKeeperWorld]) -> None:
    world = worlds(big_cluster())
    store = world.connect(reply_bytes_max=20_000)
    store.open(list[Event]().append)
    assert described(store.load()) == described(big_cluster())
