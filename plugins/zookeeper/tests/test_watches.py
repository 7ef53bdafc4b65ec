"""No change is missed, however often the connection breaks."""

from __future__ import annotations

import threading

import pytest
from kazoo.protocol.states import Callback
from kframe_zookeeper.sandbox.fixture import ZooKeeperFixture
from kframe_zookeeper.session.watches import Arming
from kframe_zookeeper.store.store import ZooKeeperStore
from kframe_zookeeper.znodes import paths

from kframe.model.events import (
    BrokerModified,
    BrokersChanged,
    ControllerChanged,
    DeletionsMarked,
    Event,
    Reelect,
    TopicModified,
    TopicsChanged,
)
from kframe.plugin.store import Claim, ReadDeletions
from kframe.testing.clusters import registration
from kframe.testing.store_fixture import FIRST_ID, SECOND_ID, small_cluster
from kframe.testing.waiting import wait_until
from verification.zookeeper.proxy import Proxy
from verification.zookeeper.sessions import FixtureFactory
from verification.zookeeper.stores import controller, opened


def active_and_standby(fixture: ZooKeeperFixture, proxy: Proxy) -> tuple[ZooKeeperStore, ZooKeeperStore, list[Event]]:
    """The stores of the controller and of a standby, and the events of the latter, which the proxy connects."""
    events = list[Event]()
    first, second = opened(fixture), opened(fixture, proxy, events)
    first.perform(Claim(FIRST_ID))
    assert second.perform(Claim(SECOND_ID)) is None
    fixture.settle()
    events.clear()
    return first, second, events


def test_changes_during_a_broken_connection_are_notified(make_fixture: FixtureFactory, proxy: Proxy) -> None:
    fixture, events = make_fixture(small_cluster()), list[Event]()
    store, _ = controller(fixture, proxy, events)
    store.perform(ReadDeletions())
    session = store._connection
    events.clear()
    proxy.refuse()
    proxy.cut()
    fixture.modify_broker(registration(3, rack="moved"))
    fixture.operator.set(paths.topic_path("orders"), fixture.operator.get(paths.topic_path("orders"))[0])
    fixture.mark_for_deletion(["orders"])
    fixture.operator.create(paths.PREFERRED_ELECTION, b"")
    proxy.refuse(False)
    wait_until(lambda: len(events) >= 3)
    fixture.settle()
    assert set(events) == {BrokerModified(3), TopicModified("orders"), DeletionsMarked()}, "only what has changed"
    events.clear()
    fixture.unregister_brokers([1])
    fixture.operator.create(paths.topic_path("new"), b"")
    fixture.operator.set(paths.topic_path("empty.topic"), fixture.operator.get(paths.topic_path("empty.topic"))[0])
    fixture.settle()
    assert set(events) == {BrokersChanged(), TopicsChanged(), TopicModified("empty.topic")}, "the others still watch"
    assert store._connection is session


def test_controller_deletion_during_a_broken_connection_is_notified(make_fixture: FixtureFactory, proxy: Proxy) -> None:
    first, second, events = active_and_standby(make_fixture(small_cluster()), proxy)
    for _ in range(2):
        proxy.cut()
    proxy.refuse()
    proxy.cut()
    first.close()
    proxy.refuse(False)
    wait_until(lambda: events == [Reelect()])
    assert second.perform(Claim(SECOND_ID)) == 2


def test_watch_armed_before_its_last_event_is_handled_survives_a_reconnect(
    make_fixture: FixtureFactory, proxy: Proxy
) -> None:
    fixture, events = make_fixture(small_cluster()), list[Event]()
    first, second = opened(fixture), opened(fixture, proxy, events)
    connection, resumed = second._connection, threading.Event()
    assert connection is not None
    connection.session.client.handler.dispatch_callback(Callback("busy", resumed.wait, ()))
    first.perform(Claim(FIRST_ID))
    assert second.perform(Claim(SECOND_ID)) is None
    assert not events, "the first event waits for the busy thread"
    resumed.set()
    fixture.settle()
    assert events == [ControllerChanged()]
    events.clear()
    proxy.refuse()
    proxy.cut()
    first.close()
    proxy.refuse(False)
    wait_until(lambda: events == [Reelect()])


def test_event_without_watcher_is_notified_after_a_reconnect(make_fixture: FixtureFactory, proxy: Proxy) -> None:
    """While kazoo connects again, it has no watcher for a moment."""
    first, second, events = active_and_standby(make_fixture(small_cluster()), proxy)
    connection = second._connection
    assert connection is not None
    client = connection.session.client
    (watched,) = (path for path in client._data_watchers if path.endswith(paths.CONTROLLER))
    del client._data_watchers[watched]
    first.close()
    client.exists("/")  # The server sends the event before this response.
    assert not events
    proxy.cut()
    wait_until(lambda: events == [Reelect()])


def test_connection_that_breaks_again_while_watches_are_armed(
    make_fixture: FixtureFactory, proxy: Proxy, monkeypatch: pytest.MonkeyPatch
) -> None:
    fixture, events = make_fixture(small_cluster()), list[Event]()
    store, _ = controller(fixture, proxy, events)
    connection = store._connection
    assert connection is not None
    await_armed = connection.watches.await_armed

    def break_after(arming: Arming) -> None:
        await_armed(arming)
        monkeypatch.undo()
        proxy.cut()
        wait_until(lambda: connection.watches.reconnects == 2)

    monkeypatch.setattr(connection.watches, "await_armed", break_after)
    proxy.cut()
    wait_until(lambda: connection.watches.reconnects == 2)
    fixture.settle()
    events.clear()
    fixture.operator.create(paths.topic_path("new"), b"")
    fixture.settle()
    assert events == [TopicsChanged()]
