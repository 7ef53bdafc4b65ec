"""Loads with malformed nodes, lost responses, oversized responses and old servers."""

from __future__ import annotations

import logging
from collections.abc import Callable

import numpy as np
import pytest
from kazoo.client import KazooClient
from kframe_zookeeper.znodes import paths
from kframe_zookeeper.znodes.configs import ConfigNotification, encode_config_change

from kframe.model.arrays import Int32
from kframe.model.events import (
    BrokersChanged,
    Event,
    IsrChangesNotified,
    LogDirEventsNotified,
    TopicModified,
    TopicsChanged,
    TopicSettingsChanged,
)
from kframe.plugin.store import Claim, Load, Prepare, ReadBrokers, ReadStates
from kframe.testing.clusters import described, rows_of
from kframe.testing.store_fixture import FIRST_ID, small_cluster
from kframe.testing.waiting import wait_until
from verification.zookeeper.proxy import GET_CHILDREN, MULTI_READ, Break, BreakPoint, Link, Proxy
from verification.zookeeper.sessions import FixtureFactory
from verification.zookeeper.stores import BREAK_POINTS, big_cluster, controller, opened


def test_malformed_znodes_are_quarantined(make_fixture: FixtureFactory) -> None:
    fixture = make_fixture(small_cluster())
    expected = described(small_cluster())
    operator = fixture.operator
    operator.set(paths.state_path("orders", 0), b'{"controller_epoch":1,"leader":"1"}')
    operator.set(paths.state_path("orders", 1), b"")
    operator.set(paths.topic_path("empty.topic"), b"[]")
    operator.set(paths.broker_path(2), b'{"version":1')
    operator.set(paths.config_path("topics", "leaving_topic"), b"no")
    state = b' { "isr" : [ 3 ], "leader" : -1, "leader_epoch" : 9, "version" : 1, "extra" : {}, '
    operator.set(paths.state_path("orders", 2), state + b'"controller_epoch" : 4, "leader_recovery_state" : 1 } ')
    store = opened(fixture)
    loaded = store.perform(Load())
    assert set(store.quarantined()) == {
        paths.state_path("orders", 0),
        paths.state_path("orders", 1),
        paths.topic_path("empty.topic"),
        paths.broker_path(2),
        paths.config_path("topics", "leaving_topic"),
    }
    states = described(loaded)
    assert set(states) == {"orders-0", "orders-1", "orders-2", "leaving_topic-0"}
    assert [states[f"orders-{number}"]["leader"] for number in range(2)] == [None, None]
    assert states["orders-2"] == expected["orders-2"] | {"controller_epoch": 4, "partition_epoch": 1}
    assert loaded.brokers.registered_ids() == [1, 3]
    operator.set(paths.broker_path(2), operator.get(paths.broker_path(1))[0])
    assert [broker.broker_id for broker in store.perform(ReadBrokers())] == [1, 2, 3]
    assert paths.broker_path(2) not in store.quarantined()


def test_malformed_registration_keeps_its_last_content(make_fixture: FixtureFactory) -> None:
    fixture = make_fixture(small_cluster())
    store = opened(fixture)
    path, before = paths.broker_path(2), store.perform(ReadBrokers())
    fixture.operator.set(path, b'{"version":1')
    assert store.perform(ReadBrokers()) == before == store.perform(ReadBrokers()), "the broker is still registered"
    assert set(store.quarantined()) == {path}
    fixture.operator.delete(path)
    fixture.operator.create(path, b"{", ephemeral=True)
    assert [broker.broker_id for broker in store.perform(ReadBrokers())] == [1, 3], (
        "a new registration without a valid content"
    )
    assert [broker.broker_id for broker in opened(fixture).perform(ReadBrokers())] == [1, 3]


def test_states_are_loaded_with_their_zxids(make_fixture: FixtureFactory) -> None:
    fixture = make_fixture(small_cluster())
    names = [("orders", number) for number in range(3)]
    fixture.operator.set(paths.state_path("orders", 1), fixture.operator.get(paths.state_path("orders", 1))[0])
    loaded = opened(fixture).perform(Load())
    assert loaded.state_zxid is not None
    stats = [fixture.operator.get(paths.state_path(*name))[1] for name in names]
    assert loaded.state_zxid[rows_of(loaded, ["orders-0", "orders-1", "orders-2"])].tolist() == [
        stat.mzxid for stat in stats
    ]
    assert stats[1].mzxid > max(stats[0].mzxid, stats[2].mzxid)


def test_each_load_reports_the_registered_brokers(make_fixture: FixtureFactory) -> None:
    fixture, loads = make_fixture(small_cluster()), list[list[int]]()
    store = opened(fixture)
    store.report_brokers(lambda registrations: loads.append([broker.broker_id for broker in registrations]))
    for has_multi_read in (True, False):
        store._connected().session.has_multi_read = has_multi_read
        store.perform(Load())
    assert loads == [[1, 2, 3], [1, 2, 3]]


def test_repeated_replica_leaves_other_partitions_intact(
    make_fixture: FixtureFactory, caplog: pytest.LogCaptureFixture
) -> None:
    fixture = make_fixture(small_cluster())
    fixture.operator.set(paths.topic_path("orders"), b'{"version":3,"partitions":{"0":[1,2,1],"1":[2],"2":[3,3]}}')
    store = opened(fixture)
    with caplog.at_level(logging.WARNING, "kframe.zookeeper"):
        states = described(store.perform(Load()))
    assert [states[f"orders-{number}"]["replicas"] for number in range(3)] == [[1, 2], [2], [3]]
    assert store.quarantined() == {}
    assert [record.getMessage() for record in caplog.records] == [
        "2 partitions list a broker twice as a replica; the first entry counts: orders-0, orders-2"
    ]


# -- bulk reads


def test_servers_without_multi_read_load_the_same_cluster(make_fixture: FixtureFactory) -> None:
    fixture = make_fixture(big_cluster())
    store = opened(fixture)
    expected = described(store.perform(Load()))
    assert store._connection is not None
    store._connection.session.has_multi_read = False
    assert described(store.perform(Load())) == expected
    rows: Int32 = np.arange(1200, dtype=np.int32)[::-1].copy()
    cluster = store.perform(Load())
    assert cluster.state_zxid is None, "old servers do not return zxids"
    assert store.perform(ReadStates(cluster, rows)).exists.tolist() == [bool(row % 100 % 2) for row in rows.tolist()]


@BREAK_POINTS
def test_load_continues_after_broken_connections(
    make_fixture: FixtureFactory, proxy: Proxy, break_point: BreakPoint
) -> None:
    fixture = make_fixture(big_cluster())
    store, cluster = controller(fixture, proxy)
    proxy.script(*(Break(break_point, nth, MULTI_READ) for nth in (1, 3, 5)))
    assert described(store.perform(Load())) == described(cluster)


CHANGES: dict[str, tuple[int, bytes, Callable[[KazooClient], object], type[Event]]] = {
    "a broker unregisters": (
        GET_CHILDREN,
        paths.BROKER_IDS.encode(),
        lambda client: client.delete(paths.broker_path(3)),
        BrokersChanged,
    ),
    "a topic is created": (
        GET_CHILDREN,
        paths.TOPICS.encode(),
        lambda client: client.create(paths.topic_path("new"), b""),
        TopicsChanged,
    ),
    "a topic is written": (
        MULTI_READ,
        b"/topic-11\0",
        lambda client: client.set(paths.topic_path("topic-11"), b'{"version":3}'),
        TopicModified,
    ),
    "settings change": (
        MULTI_READ,
        b"/config/topics/topic-11\0",
        lambda client: client.create(
            paths.CONFIG_CHANGE, encode_config_change(ConfigNotification("topics", "topic-11")), sequence=True
        ),
        TopicSettingsChanged,
    ),
    "an ISR changes": (
        MULTI_READ,
        b"/topic-11/partitions/99/state",
        lambda client: client.create(paths.ISR_CHANGE, b'{"version":1,"partitions":[]}', sequence=True),
        IsrChangesNotified,
    ),
    "a log directory fails": (
        MULTI_READ,
        b"/topic-11/partitions/99/state",
        lambda client: client.create(paths.LOG_DIR_EVENT, b"{}", sequence=True),
        LogDirEventsNotified,
    ),
}


@pytest.mark.parametrize("change_name", CHANGES)
def test_change_during_a_load_is_notified(make_fixture: FixtureFactory, proxy: Proxy, change_name: str) -> None:
    """The change happens after the server has sent the response without it."""
    fixture, events = make_fixture(big_cluster()), list[Event]()
    opcode, content, change, expected = CHANGES[change_name]
    store = opened(fixture, proxy, events)
    store.perform(Claim(FIRST_ID))
    store.perform(Prepare())

    def apply_change(_link: Link) -> None:
        change(fixture.operator)

    break_point = Break(BreakPoint.BEFORE_RESPONSE, 1, opcode, apply_change, content)
    proxy.script(break_point)
    store.perform(Load())
    assert break_point.happened.is_set()
    wait_until(lambda: any(isinstance(event, expected) for event in events))


def test_oversized_answers_are_requested_in_parts(make_fixture: FixtureFactory) -> None:
    fixture = make_fixture(big_cluster())
    store = fixture.connect(reply_bytes_max=20_000)
    store.open(list[Event]().append)
    assert described(store.perform(Load())) == described(big_cluster())
