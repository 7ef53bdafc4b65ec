"""Servers die during a bulk write, and controllers are frozen in turn: everything is written exactly once."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress

import pytest
from kazoo.exceptions import ConnectionLoss, KazooException
from kframe_zookeeper.sandbox.fixture import ZooKeeperFixture
from kframe_zookeeper.session.settings import settings_of_url
from kframe_zookeeper.znodes import paths
from kframe_zookeeper.znodes.topics import decode_state

from kframe.model.cluster import ClusterState
from kframe.runtime.controller import Controller
from kframe.testing.clusters import cluster_of, healthy, registration
from kframe.testing.store_fixture import FIRST_ID, SECOND_ID
from kframe.testing.waiting import PATIENCE_S, wait_until
from verification.zookeeper.proxy import MULTI, Break, BreakPoint, Link, Proxy
from verification.zookeeper.servers import Ensemble, ServerHandle
from verification.zookeeper.sessions import FixtureFactory
from verification.zookeeper.trees import STATE_PATH, Tree, changes, faults, read_tree
from verification.zookeeper.victims import Victim, build, settle

#: Each takes some seconds. The one with an unknown outcome is not extended: a request is executed, its response lost.
BREAK_POINTS = pytest.mark.parametrize(
    "break_point",
    [
        pytest.param(
            break_point,
            marks=() if break_point is BreakPoint.BEFORE_RESPONSE else pytest.mark.extended,
            id=break_point.name.lower(),
        )
        for break_point in BreakPoint
    ],
)
#: States that change when broker 1 fails, in three requests.
TOPICS, PARTITIONS = 12, 100


def bulk() -> ClusterState:
    """A cluster in which broker 1 leads all partitions."""
    topics = {f"topic-{number:02}": [healthy(1, 2)] * PARTITIONS for number in range(TOPICS)}
    return cluster_of(topics, registered=[1, 2, 3])


@contextmanager
def active_controller(fixture: ZooKeeperFixture, proxy: Proxy) -> Iterator[Controller]:
    """An active, idle controller behind a proxy."""
    controller, loop = build(FIRST_ID, fixture.connect(proxy.address))
    controller.open()
    loop.start()
    try:
        wait_until(lambda: controller.status().active)
        settle(controller)
        yield controller
    finally:
        controller.stop()


def leaders(tree: Tree) -> Counter[tuple[int, int, int]]:
    """The number of states by (leader, leader epoch, version)."""
    states = (
        (decode_state(node.data, path), node.stat.version) for path, node in tree.items() if STATE_PATH.fullmatch(path)
    )
    return Counter((state.leader, state.leader_epoch, version) for state, version in states)


def read_tree_with_retries(fixture: ZooKeeperFixture) -> Tree:
    """The tree. The operator's connection may be down for a while, too."""
    trees: list[Tree] = []

    def try_read() -> bool:
        try:
            trees.append(read_tree(fixture.operator))
        except KazooException:
            return False
        return True

    wait_until(try_read)
    return trees[-1]


def writes_each_once(fixture: ZooKeeperFixture, proxy: Proxy, broken: Break) -> None:
    """Fail broker 1 during ``broken``. Check that the controller moves every leader exactly once."""
    before = read_tree_with_retries(fixture)
    with active_controller(fixture, proxy) as controller:
        proxy.script(broken)
        with suppress(ConnectionLoss):  # The killed server may have been the operator's, too.
            fixture.unregister_brokers([1])
        assert broken.happened.wait(PATIENCE_S)
        expected = {(2, 1, 1): TOPICS * PARTITIONS}
        wait_until(lambda: leaders(read_tree_with_retries(fixture)) == expected)
        wait_until(lambda: controller.status().active)
        assert faults(before, read_tree_with_retries(fixture)) == []
        fixture.register_brokers([registration(1)])
        wait_until(lambda: leaders(read_tree_with_retries(fixture)).keys() <= {(2, 1, 2)})


# -- servers


@BREAK_POINTS
@pytest.mark.parametrize(
    "how",
    [pytest.param(ServerHandle.stop, marks=pytest.mark.extended), ServerHandle.kill],
    ids=lambda how: str(how.__name__),
)
def test_server_restart(
    own_zookeeper: ServerHandle, break_point: BreakPoint, how: Callable[[ServerHandle], None]
) -> None:
    """No client connects while it starts: a 3.8.4 server that receives a request too early may hang."""

    def restart(_: Link) -> None:
        proxy.refuse()
        operator_proxy.refuse()
        how(own_zookeeper)
        own_zookeeper.start()
        operator_proxy.refuse(False)
        proxy.refuse(False)

    with Proxy(own_zookeeper.address) as proxy, Proxy(own_zookeeper.address) as operator_proxy:
        settings = settings_of_url(f"zookeeper://{operator_proxy.address}?session.timeout.ms=20000")
        with closing(ZooKeeperFixture(settings, bulk())) as fixture:
            writes_each_once(fixture, proxy, Break(break_point, 2, MULTI, restart))


@pytest.mark.extended
@BREAK_POINTS
@pytest.mark.parametrize("on_leader", [True, False], ids=["own", "other"])
def test_killed_ensemble_leader(ensemble: Ensemble, break_point: BreakPoint, on_leader: bool) -> None:
    ensemble.start()
    leader, follower = ensemble.leader(), ensemble.followers()[0]

    def end(_: Link) -> None:
        proxy.forward_to(follower.address)
        leader.kill()

    settings = settings_of_url(f"zookeeper://{ensemble.address}?session.timeout.ms=20000")
    fixture = ZooKeeperFixture(settings, bulk())
    try:
        with Proxy((leader if on_leader else follower).address) as proxy:
            writes_each_once(fixture, proxy, Break(break_point, 2, MULTI, end))
    finally:
        fixture.close()
        ensemble.start()


# -- controllers


def test_controllers_frozen_in_alternation(make_fixture: FixtureFactory) -> None:
    topics = {f"topic-{number}": [healthy(1, 2, 3), healthy(2, 3, 1)] for number in range(10)}
    fixture = make_fixture(cluster_of(topics, registered=[1, 2, 3]), session_timeout_ms=20_000)
    rivals = [Victim(number, fixture.settings(session_timeout_ms=5000)) for number in (FIRST_ID, SECOND_ID)]
    try:
        for rival in rivals:
            rival.start()
            wait_until(lambda rival=rival: rival.settle() is (rival is rivals[0]))  # type: ignore[misc]
        for number in range(4):
            active, other = rivals[number % 2], rivals[1 - number % 2]
            before = read_tree(fixture.operator)
            active.pause()
            # The frozen controller receives this watch event when it wakes, and would move leaders.
            fixture.unregister_brokers([1])
            wait_until(other.settle)
            wait_until(lambda before=before: not faults(before, read_tree(fixture.operator)))  # type: ignore[misc]
            assert other.settle()
            settled = read_tree(fixture.operator)
            active.resume()
            wait_until(lambda active=active: not active.settle())  # type: ignore[misc]
            assert other.settle()
            assert changes(settled, read_tree(fixture.operator)) == []
            assert int(settled[paths.CONTROLLER_EPOCH].data) == number + 2
            fixture.register_brokers([registration(1)])
            wait_until(lambda settled=settled: not faults(settled, read_tree(fixture.operator)))  # type: ignore[misc]
    finally:
        for rival in rivals:
            rival.kill()
