"""Sessions that end, or may have ended: what was begun in one is not done in the next."""

from __future__ import annotations

import threading
from collections.abc import Callable

import pytest
from kframe_zookeeper import paths
from kframe_zookeeper.testing.proxy import MULTI, Break, Direction, Link, Moment, Proxy
from kframe_zookeeper.testing.store_world import ZooKeeperWorld
from kframe_zookeeper.testing.stores import MOMENTS, PATIENCE_S, big_cluster, controller, every_row, until

from kframe.errors import ControllerFenced, StoreError
from kframe.model.events import Elect, Event, SessionExpired
from kframe.testing.clusters import StateSpec, change_of, described
from kframe.testing.store_world import TWO, codes, small_cluster


@MOMENTS
def test_a_session_that_ends_in_the_middle_of_a_write_writes_nothing_more(
    worlds: Callable[..., ZooKeeperWorld], proxy: Proxy, moment: Moment
) -> None:
    world, heard = worlds(big_cluster()), list[Event]()
    store, cluster = controller(world, proxy, heard)
    before = store._connection
    assert before is not None
    credentials = before.session.client.client_id
    world.settle()
    heard.clear()

    def end(link: Link) -> None:
        world.end_session(credentials)
        link.cut()

    proxy.script(Break(moment, 2, MULTI, end))
    with pytest.raises((ControllerFenced, StoreError)):
        store.write_states(cluster, every_row(cluster, 2, 5))
    until(lambda: heard[-1:] == [Elect()])
    assert heard[0] == SessionExpired()
    left = described(store.load())
    assert store._connection is not before
    with pytest.raises(ControllerFenced):
        store.write_states(cluster, every_row(cluster, 2, 5))
    assert store.claim(TWO) == 2
    assert described(store.load()) == left, "nothing of the old session arrives in the new one"


def test_a_session_that_hears_nothing_waits_for_the_word_of_the_server(
    worlds: Callable[..., ZooKeeperWorld], proxy: Proxy
) -> None:
    """The session may have ended by our own clock, so the controller does not act; only the server ends the session."""
    world, heard = worlds(small_cluster(), session_timeout_ms=3000), list[Event]()
    store, cluster = controller(world, proxy, heard)
    before = store._connection
    assert before is not None
    heard.clear()
    failures: list[BaseException] = []

    def write() -> None:
        try:
            store.write_states(cluster, change_of(cluster, {"orders-0": StateSpec(2, (2,), 5, 7)}, 1))
        except (ControllerFenced, StoreError) as error:
            failures.append(error)

    proxy.drop(*Direction)
    thread = threading.Thread(target=write)
    thread.start()
    until(lambda: world.operator.exists(paths.CONTROLLER) is None)
    assert not before.session.fence.is_open()
    assert (store.may_act(), heard, failures) == (False, [], [])
    proxy.drop()
    proxy.cut()
    thread.join(PATIENCE_S)
    assert len(failures) == 1
    until(lambda: heard[-1:] == [Elect()])
    assert heard[0] == SessionExpired()
    assert described(store.load()) == described(cluster)


def test_nothing_asked_for_without_a_connection_is_done_in_another_session(
    worlds: Callable[..., ZooKeeperWorld], proxy: Proxy
) -> None:
    world, heard = worlds(small_cluster(), session_timeout_ms=4000), list[Event]()
    store, cluster = controller(world, proxy, heard)
    before = store._connection
    assert before is not None
    credentials = before.session.client.client_id
    failures: list[BaseException] = []

    def write() -> None:
        try:
            store.write_states(cluster, change_of(cluster, {"orders-0": StateSpec(2, (2,), 5, 7)}, 1))
        except StoreError as error:
            failures.append(error)
        except ControllerFenced as error:
            failures.append(error)

    proxy.refuse()
    proxy.cut()
    threads = [threading.Thread(target=write) for _ in range(3)]
    for thread in threads:
        thread.start()
    world.end_session(credentials)
    proxy.refuse(False)
    until(lambda: heard[-1:] == [Elect()])
    for thread in threads:
        thread.join(PATIENCE_S)
    assert len(failures) == 3
    assert described(store.load()) == described(cluster)


def test_a_frozen_server_that_comes_back_in_time_costs_nothing(
    worlds: Callable[..., ZooKeeperWorld], proxy: Proxy
) -> None:
    world, heard = worlds(small_cluster(), session_timeout_ms=20_000), list[Event]()
    store, cluster = controller(world, proxy, heard)
    heard.clear()
    proxy.freeze()
    threading.Timer(0.5, proxy.thaw).start()
    result = store.write_states(cluster, change_of(cluster, {"orders-0": StateSpec(2, (2,), 5, 7)}, 1))
    assert codes(result) == ["OK"]
    assert heard == []
