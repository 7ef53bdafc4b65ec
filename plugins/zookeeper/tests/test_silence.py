"""A controller that may be deposed tells brokers nothing (``reliability.md`` I3), on a real ZooKeeper."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator

import pytest
from kframe_zookeeper.settings import settings_of_url
from kframe_zookeeper.store import ZooKeeperStore
from kframe_zookeeper.testing.proxy import MULTI, Break, Link, Moment, Proxy
from kframe_zookeeper.testing.servers import ServerHandle
from kframe_zookeeper.testing.store_world import ZooKeeperWorld
from kframe_zookeeper.testing.trees import changes, read_tree
from kframe_zookeeper.testing.victims import Victim, build, settle, told

from kframe.core.controller import Controller as Core
from kframe.core.selectors.leader_selection import Selection
from kframe.embedded import RecordingTransport
from kframe.model.changes import StateChange, WriteResult
from kframe.model.cluster import ClusterState
from kframe.model.config import ControllerConfig
from kframe.model.events import BrokersChanged, Elect, Event
from kframe.runtime.clock import SystemClock
from kframe.runtime.loop import ControllerLoop
from kframe.testing.clusters import cluster_of, healthy
from kframe.testing.store_world import ONE, TWO

PATIENCE_S = 120.0


@pytest.fixture
def world(zookeeper: ServerHandle) -> Iterator[ZooKeeperWorld]:
    settings = settings_of_url(f"zookeeper://{zookeeper.address}?session.timeout.ms=20000")
    topics = {f"topic-{number}": [healthy(1, 2, 3), healthy(2, 3, 1)] for number in range(10)}
    made = ZooKeeperWorld(settings, cluster_of(topics, registered=[1, 2, 3]))
    yield made
    made.close()


def until(holds: Callable[[], bool]) -> None:
    end = time.monotonic() + PATIENCE_S
    while not holds():
        assert time.monotonic() < end, "it does not happen"
        time.sleep(0.02)


class Sleepy(ZooKeeperStore):
    """Falls asleep for ``nap_s`` seconds once it has written states, and so does its clock's owner."""

    world: ZooKeeperWorld
    nap_s = 0.0
    ends = False
    """Whether the server ends the session meanwhile."""

    def write_states(self, cluster: ClusterState, change: StateChange) -> WriteResult:
        result = super().write_states(cluster, change)
        self._sleep()
        return result

    def write_ahead(self, cluster: ClusterState, change: StateChange, following: StateChange) -> WriteResult:
        result = super().write_ahead(cluster, change, following)
        self._sleep()
        return result

    def _sleep(self) -> None:
        assert self._connection is not None
        session, nap_s = self._connection.session, self.nap_s
        if self.ends:
            ending, self.ends = session.client.client_id, False
            self.world.end_session(ending)
        awake_s = session.fence.now_s
        session.fence.now_s = lambda: awake_s() + nap_s


@pytest.mark.parametrize(
    ("nap_s", "ends", "silent"),
    [(5.0, False, False), (25.0, False, False), (25.0, True, True)],
    ids=["short", "long, and the session lives", "long, and the session has ended"],
)
def test_what_was_stored_is_told_only_while_the_session_is_certain_to_live(
    world: ZooKeeperWorld, nap_s: float, ends: bool, silent: bool
) -> None:
    """The timeout is 20 seconds. No event tells of the nap: the fence alone knows, and then the server is asked."""
    store = Sleepy(world.settings())
    store.world = world
    world.stores.append(store)
    transport = RecordingTransport()
    loop = ControllerLoop(Core(ONE, ControllerConfig(), Selection({})), store, transport, SystemClock())
    loop.open()
    loop.run_until_idle()
    assert loop.controller.active
    before = read_tree(world.operator)
    transport.take()
    store.nap_s, store.ends = nap_s, ends
    world.unregister_brokers([1])
    world.settle()
    event = loop.queue.take()
    assert event == BrokersChanged()
    loop.process(event)
    assert changes(before, read_tree(world.operator)) != []
    assert (transport.take() == [], loop.controller.active) == (silent, not silent)
    loop.stop()


def test_a_role_that_is_heard_to_be_lost_is_lost_before_what_waits_is_handled(world: ZooKeeperWorld) -> None:
    """Nobody else has claimed it: without that, the fence of writes would let everything through."""
    heard: list[Event] = []
    store, transport = world.connect(), RecordingTransport()
    loop = ControllerLoop(Core(ONE, ControllerConfig(), Selection({})), store, transport, SystemClock())
    loop.open()
    loop.run_until_idle()
    transport.take()
    before = read_tree(world.operator)
    world.drop_controller()
    world.settle()
    while (event := loop.queue.take()) is not None:
        heard.append(event)
    assert heard == [Elect()]
    world.unregister_brokers([1])
    world.settle()
    loop.process(BrokersChanged())
    assert (transport.take(), loop.controller.active) == ([], False)
    assert [one for one in changes(before, read_tree(world.operator)) if "/state" in one] == []
    loop.stop()


def test_a_controller_that_is_frozen_while_it_writes_tells_nobody_when_it_wakes(
    world: ZooKeeperWorld, zookeeper: ServerHandle
) -> None:
    """The answer to its write is the first thing that it reads then, before anything that tells of its end."""
    frozen, wakes = threading.Event(), threading.Event()

    def freeze(_: Link) -> None:
        victim.freeze()
        frozen.set()
        wakes.wait(PATIENCE_S)

    with Proxy(zookeeper.address) as proxy:
        victim = Victim(ONE, world.settings(proxy.address, session_timeout_ms=5000))
        following, loop = build(TWO, world.connect())
        try:
            victim.stand()
            until(victim.settle)
            before = victim.ask(told)
            assert before > 0
            answered = Break(Moment.BEFORE_ANSWER, 1, MULTI, freeze)
            proxy.script(answered)
            world.unregister_brokers([1])
            assert frozen.wait(PATIENCE_S)
            following.open()
            loop.start()
            until(lambda: following.status().active)
            assert settle(following)
            settled = read_tree(world.operator)
            wakes.set()
            assert answered.happened.wait(PATIENCE_S)
            victim.wake()
            until(lambda: not victim.settle())
            assert victim.ask(told) == before
            assert changes(settled, read_tree(world.operator)) == []
            assert following.status().active
        finally:
            wakes.set()
            following.stop()
            victim.close()
