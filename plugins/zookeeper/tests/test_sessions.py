"""Sessions that end, or may have ended. A request of one session is never performed in the next."""

from __future__ import annotations

import threading

import pytest
from kframe_zookeeper.store.store import ZooKeeperStore
from kframe_zookeeper.znodes import paths

from kframe.errors import ControllerFenced, KframeError, StoreError
from kframe.model.cluster import ClusterState
from kframe.model.events import Event, Reelect, SessionExpired
from kframe.plugin.store import Claim, Load, WriteStates
from kframe.testing.clusters import StateSpec, change_of, described
from kframe.testing.store_fixture import SECOND_ID, codes, small_cluster
from kframe.testing.waiting import PATIENCE_S, wait_until
from verification.zookeeper.proxy import MULTI, Break, BreakPoint, Direction, Link, Proxy
from verification.zookeeper.sessions import FixtureFactory
from verification.zookeeper.stores import BREAK_POINTS, big_cluster, controller, every_row


@pytest.mark.smoke
@BREAK_POINTS
def test_session_expiry_during_a_write_stops_the_write(
    make_fixture: FixtureFactory, proxy: Proxy, break_point: BreakPoint
) -> None:
    fixture, events = make_fixture(big_cluster()), list[Event]()
    store, cluster = controller(fixture, proxy, events)
    before = store._connection
    assert before is not None
    credentials = before.session.client.client_id
    fixture.settle()
    events.clear()

    def end(link: Link) -> None:
        fixture.end_session(credentials)
        link.cut()

    proxy.script(Break(break_point, 2, MULTI, end))
    with pytest.raises((ControllerFenced, StoreError)):
        store.perform(WriteStates(cluster, every_row(cluster, 2, 5)))
    wait_until(lambda: events[-1:] == [Reelect()])
    assert events[0] == SessionExpired()
    stored = described(store.perform(Load()))
    assert store._connection is not before
    with pytest.raises(ControllerFenced):
        store.perform(WriteStates(cluster, every_row(cluster, 2, 5)))
    assert store.perform(Claim(SECOND_ID)) == 2
    assert described(store.perform(Load())) == stored, "nothing of the old session arrives in the new one"


def write_state(store: ZooKeeperStore, cluster: ClusterState, failures: list[KframeError]) -> None:
    """Write the state of orders-0. Runs in a thread of its own, so it collects the error."""
    try:
        store.perform(WriteStates(cluster, change_of(cluster, {"orders-0": StateSpec(2, (2,), 5, 7)}, 1)))
    except (ControllerFenced, StoreError) as error:
        failures.append(error)


def test_silent_session_waits_for_the_server(make_fixture: FixtureFactory, proxy: Proxy) -> None:
    """The session may have ended by the local clock, so the controller does not act. Only the server ends the
    session."""
    fixture, events = make_fixture(small_cluster(), session_timeout_ms=3000), list[Event]()
    store, cluster = controller(fixture, proxy, events)
    before = store._connection
    assert before is not None
    events.clear()
    failures: list[KframeError] = []
    proxy.drop(*Direction)
    thread = threading.Thread(target=write_state, args=(store, cluster, failures))
    thread.start()
    wait_until(lambda: fixture.operator.exists(paths.CONTROLLER) is None)
    assert not before.session.fence.is_open()
    assert (store.may_act(), events, failures) == (False, [], [])
    proxy.drop()
    proxy.cut()
    thread.join(PATIENCE_S)
    assert len(failures) == 1
    wait_until(lambda: events[-1:] == [Reelect()])
    assert events[0] == SessionExpired()
    assert described(store.perform(Load())) == described(cluster)


def test_requests_are_never_sent_in_another_session(make_fixture: FixtureFactory, proxy: Proxy) -> None:
    fixture, events = make_fixture(small_cluster(), session_timeout_ms=4000), list[Event]()
    store, cluster = controller(fixture, proxy, events)
    before = store._connection
    assert before is not None
    credentials = before.session.client.client_id
    failures: list[KframeError] = []
    proxy.refuse()
    proxy.cut()
    threads = [threading.Thread(target=write_state, args=(store, cluster, failures)) for _ in range(3)]
    for thread in threads:
        thread.start()
    fixture.end_session(credentials)
    proxy.refuse(False)
    wait_until(lambda: events[-1:] == [Reelect()])
    for thread in threads:
        thread.join(PATIENCE_S)
    assert len(failures) == 3
    assert described(store.perform(Load())) == described(cluster)


def test_server_frozen_within_the_timeout_keeps_the_role(make_fixture: FixtureFactory, proxy: Proxy) -> None:
    fixture, events = make_fixture(small_cluster(), session_timeout_ms=20_000), list[Event]()
    store, cluster = controller(fixture, proxy, events)
    events.clear()
    proxy.freeze()
    threading.Timer(0.5, proxy.thaw).start()
    result = store.perform(WriteStates(cluster, change_of(cluster, {"orders-0": StateSpec(2, (2,), 5, 7)}, 1)))
    assert codes(result) == ["OK"]
    assert events == []
