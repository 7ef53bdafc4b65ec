"""Servers that die under a bulk write, and controllers that are frozen by turns: all is written, and written once."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest
from kazoo.exceptions import KazooException
from kframe_zookeeper import paths
from kframe_zookeeper.settings import settings_of_url
from kframe_zookeeper.testing.proxy import MULTI, Break, Link, Moment, Proxy
from kframe_zookeeper.testing.servers import Ensemble, ServerHandle
from kframe_zookeeper.testing.store_world import ZooKeeperWorld
from kframe_zookeeper.testing.trees import Tree, changes, faults, read_tree
from kframe_zookeeper.testing.victims import Victim, build, settle
from kframe_zookeeper.znodes import decode_state

from kframe.api.controller import Controller
from kframe.model.cluster import ClusterState
from kframe.testing.clusters import cluster_of, healthy, registration
from kframe.testing.store_world import ONE, TWO

PATIENCE_S = 240.0
EVERYTHING = os.environ.get("KFRAME_FAULTS") == "all"
#: Each takes some seconds; by default two of the four run.
MOMENTS = pytest.mark.parametrize(
    "moment",
    list(Moment) if EVERYTHING else [Moment.BEFORE_REQUEST, Moment.BEFORE_ANSWER],
    ids=lambda moment: moment.name.lower(),
)
#: States that are written when broker 1 goes: three requests.
TOPICS, PARTITIONS = 12, 100


def until(holds: Callable[[], bool], missing: str = "it does not happen") -> None:
    """To look at thousands of nodes is work for the servers too: who waits leaves them as much time between."""
    end = time.monotonic() + PATIENCE_S
    while True:
        looked_s = time.monotonic()
        if holds():
            return
        assert time.monotonic() < end, missing
        time.sleep(max(time.monotonic() - looked_s, 0.02))


def bulk() -> ClusterState:
    """Broker 1 leads everything."""
    topics = {f"topic-{number:02}": [healthy(1, 2)] * PARTITIONS for number in range(TOPICS)}
    return cluster_of(topics, registered=[1, 2, 3])


@contextmanager
def at_work(world: ZooKeeperWorld, proxy: Proxy) -> Iterator[Controller]:
    """A controller behind a proxy, in office and idle."""
    controller, loop = build(ONE, world.connect(proxy.address))
    controller.open()
    loop.start()
    try:
        until(lambda: controller.status().active)
        settle(controller)
        yield controller
    finally:
        controller.stop()


def leaders(tree: Tree) -> dict[tuple[int, int, int], int]:
    """How many states there are of each (leader, leader epoch, version)."""
    found: dict[tuple[int, int, int], int] = {}
    for path, node in tree.items():
        if paths.topic_partition_of(path) is not None:
            state, _ = decode_state(node.data, path)
            key = state.leader, state.leader_epoch, node.stat.version
            found[key] = found.get(key, 0) + 1
    return found


def looked_at(world: ZooKeeperWorld) -> Tree:
    """The tree; the operator's connection may be gone as well, for a while."""
    found: list[Tree] = []

    def look() -> bool:
        try:
            found.append(read_tree(world.operator))
        except KazooException:
            return False
        return True

    until(look, "ZooKeeper does not answer")
    return found[-1]


def writes_each_once(world: ZooKeeperWorld, proxy: Proxy, broken: Break) -> None:
    """Broker 1 goes, and ``broken`` happens meanwhile; whoever is controller then has moved every leader, once."""
    before = looked_at(world)
    with at_work(world, proxy) as controller:
        proxy.script(broken)
        world.unregister_brokers([1])
        assert broken.happened.wait(PATIENCE_S)
        wanted = {(2, 1, 1): TOPICS * PARTITIONS}
        until(lambda: leaders(looked_at(world)) == wanted)
        until(lambda: controller.status().active)
        assert faults(before, looked_at(world)) == []
        world.register_brokers([registration(1)])
        until(lambda: not [key for key in leaders(looked_at(world)) if key != (2, 1, 2)], "broker 1 does not catch up")


# -- servers


@MOMENTS
@pytest.mark.parametrize(
    "how",
    [ServerHandle.stop, ServerHandle.kill] if EVERYTHING else [ServerHandle.kill],
    ids=lambda how: str(how.__name__),
)
def test_a_server_that_restarts(
    own_zookeeper: ServerHandle, moment: Moment, how: Callable[[ServerHandle], None]
) -> None:
    """Nobody is let in while it starts: a 3.8.4 server that a client comes upon too early may hang for good."""

    def restart(_: Link) -> None:
        proxy.refuse()
        door.refuse()
        how(own_zookeeper)
        own_zookeeper.start()
        door.refuse(False)
        proxy.refuse(False)

    with Proxy(own_zookeeper.address) as proxy, Proxy(own_zookeeper.address) as door:
        world = ZooKeeperWorld(settings_of_url(f"zookeeper://{door.address}?session.timeout.ms=20000"), bulk())
        try:
            writes_each_once(world, proxy, Break(moment, 2, MULTI, restart))
        finally:
            world.close()


@MOMENTS
@pytest.mark.parametrize("on_leader", [True, False] if EVERYTHING else [False], ids=lambda on: "own" if on else "other")
def test_the_leader_of_an_ensemble_is_killed(ensemble: Ensemble, moment: Moment, on_leader: bool) -> None:
    ensemble.start()
    leader, follower = ensemble.leader(), ensemble.followers()[0]

    def end(_: Link) -> None:
        proxy.lead_to(follower.address)
        leader.kill()

    settings = settings_of_url(f"zookeeper://{ensemble.address}?session.timeout.ms=20000")
    world = ZooKeeperWorld(settings, bulk())
    try:
        with Proxy((leader if on_leader else follower).address) as proxy:
            writes_each_once(world, proxy, Break(moment, 2, MULTI, end))
    finally:
        world.close()
        ensemble.start()


# -- controllers


def test_controllers_that_are_frozen_by_turns(zookeeper: ServerHandle) -> None:
    settings = settings_of_url(f"zookeeper://{zookeeper.address}?session.timeout.ms=20000")
    topics = {f"topic-{number}": [healthy(1, 2, 3), healthy(2, 3, 1)] for number in range(10)}
    world = ZooKeeperWorld(settings, cluster_of(topics, registered=[1, 2, 3]))
    rivals = [Victim(number, world.settings(session_timeout_ms=5000)) for number in (ONE, TWO)]
    try:
        for rival in rivals:
            rival.stand()
            until(lambda rival=rival: rival.settle() is (rival is rivals[0]))  # type: ignore[misc]
        for turn in range(4):
            active, other = rivals[turn % 2], rivals[1 - turn % 2]
            before = read_tree(world.operator)
            active.freeze()
            world.unregister_brokers([1])  # it finds the watch of that when it wakes, and would move leaders
            until(other.settle)
            until(lambda before=before: not faults(before, read_tree(world.operator)))  # type: ignore[misc]
            assert other.settle()
            settled = read_tree(world.operator)
            active.wake()
            until(lambda active=active: not active.settle())  # type: ignore[misc]
            assert other.settle()
            assert changes(settled, read_tree(world.operator)) == []
            assert int(settled[paths.CONTROLLER_EPOCH].data) == turn + 2
            world.register_brokers([registration(1)])
            until(lambda settled=settled: not faults(settled, read_tree(world.operator)))  # type: ignore[misc]
    finally:
        for rival in rivals:
            rival.close()
        world.close()
