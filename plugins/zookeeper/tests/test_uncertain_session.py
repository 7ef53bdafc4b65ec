"""A controller that may be deposed sends brokers nothing (``docs/reference/invariants.md`` I3), on a real ZooKeeper."""

from __future__ import annotations

import threading

import pytest
from kframe_zookeeper.sandbox.fixture import ZooKeeperFixture
from kframe_zookeeper.store.store import ZooKeeperStore

from kframe.embedded import RecordingTransport
from kframe.model.events import BrokersChanged, Event, Reelect
from kframe.plugin.store import Reply, StoreRequest, WriteStates
from kframe.testing.clusters import cluster_of, healthy
from kframe.testing.store_fixture import FIRST_ID, SECOND_ID
from kframe.testing.waiting import PATIENCE_S, wait_until
from verification.support.controllers import controller_loop
from verification.zookeeper.proxy import MULTI, Break, BreakPoint, Link, Proxy
from verification.zookeeper.sessions import FixtureFactory
from verification.zookeeper.trees import changes, read_tree
from verification.zookeeper.victims import Victim, build, requests_received, settle


@pytest.fixture
def fixture(make_fixture: FixtureFactory) -> ZooKeeperFixture:
    topics = {f"topic-{number}": [healthy(1, 2, 3), healthy(2, 3, 1)] for number in range(10)}
    return make_fixture(cluster_of(topics, registered=[1, 2, 3]), session_timeout_ms=20_000)


class PausingStore(ZooKeeperStore):
    """Advances the clock by ``pause_s`` seconds after it has written states."""

    fixture: ZooKeeperFixture
    pause_s = 0.0
    expires = False
    """Whether the server expires the session meanwhile."""

    def perform(self, request: StoreRequest[Reply]) -> Reply:
        reply = super().perform(request)
        if isinstance(request, WriteStates):
            self._pause()
        return reply

    def _pause(self) -> None:
        assert self._connection is not None
        session, pause_s = self._connection.session, self.pause_s
        if self.expires:
            ending, self.expires = session.client.client_id, False
            self.fixture.end_session(ending)
        real_now_s = session.fence.now_s
        session.fence.now_s = lambda: real_now_s() + pause_s


@pytest.mark.parametrize(
    ("pause_s", "expires", "silent"),
    [(5.0, False, False), (25.0, False, False), (25.0, True, True)],
    ids=["short", "long, within the session", "long, session expired"],
)
def test_stored_states_are_sent_only_while_the_session_is_certain(
    fixture: ZooKeeperFixture, pause_s: float, expires: bool, silent: bool
) -> None:
    """The session timeout is 20 seconds. No event reports the pause: the fence detects it and queries the server."""
    store = PausingStore(fixture.settings())
    store.fixture = fixture
    fixture.stores.append(store)
    transport = RecordingTransport()
    loop = controller_loop(FIRST_ID, store, transport)
    loop.open()
    loop.run_until_idle()
    assert loop.controller.active
    before = read_tree(fixture.operator)
    transport.take()
    store.pause_s, store.expires = pause_s, expires
    fixture.unregister_brokers([1])
    fixture.settle()
    event = loop.queue.take()
    assert event == BrokersChanged()
    loop.process(event)
    assert changes(before, read_tree(fixture.operator)) != []
    assert (transport.take() == [], loop.controller.active) == (silent, not silent)
    loop.stop()


def test_lost_role_takes_effect_before_queued_events(fixture: ZooKeeperFixture) -> None:
    """Without a new election, the controller epoch alone would not fence the writes."""
    events: list[Event] = []
    store, transport = fixture.connect(), RecordingTransport()
    loop = controller_loop(FIRST_ID, store, transport)
    loop.open()
    loop.run_until_idle()
    transport.take()
    before = read_tree(fixture.operator)
    fixture.drop_controller()
    fixture.settle()
    while (event := loop.queue.take()) is not None:
        events.append(event)
    assert events == [Reelect()]
    fixture.unregister_brokers([1])
    fixture.settle()
    loop.process(BrokersChanged())
    assert (transport.take(), loop.controller.active) == ([], False)
    assert [change for change in changes(before, read_tree(fixture.operator)) if "/state" in change] == []
    loop.stop()


def test_controller_frozen_during_a_write_sends_nothing_when_it_wakes(fixture: ZooKeeperFixture, proxy: Proxy) -> None:
    """On waking, it reads the response to its write before any event about its deposition."""
    frozen, wakes = threading.Event(), threading.Event()

    def freeze(_: Link) -> None:
        victim.pause()
        frozen.set()
        wakes.wait(PATIENCE_S)

    victim = Victim(FIRST_ID, fixture.settings(proxy.address, session_timeout_ms=5000))
    following, loop = build(SECOND_ID, fixture.connect())
    try:
        victim.start()
        wait_until(victim.settle)
        before = victim.ask(requests_received)
        assert before > 0
        pause = Break(BreakPoint.BEFORE_RESPONSE, 1, MULTI, freeze)
        proxy.script(pause)
        fixture.unregister_brokers([1])
        assert frozen.wait(PATIENCE_S)
        following.open()
        loop.start()
        wait_until(lambda: following.status().active)
        assert settle(following)
        settled = read_tree(fixture.operator)
        wakes.set()
        assert pause.happened.wait(PATIENCE_S)
        victim.resume()
        wait_until(lambda: not victim.settle())
        assert victim.ask(requests_received) == before
        assert changes(settled, read_tree(fixture.operator)) == []
        assert following.status().active
    finally:
        wakes.set()
        following.stop()
        victim.kill()
