"""Writes with lost responses that land after their verification or after later writes."""

from __future__ import annotations

import threading

import pytest
from kframe_zookeeper.sandbox.fixture import ZooKeeperFixture
from kframe_zookeeper.session.settings import ConnectSettings, settings_of_url
from kframe_zookeeper.znodes import paths
from kframe_zookeeper.znodes.configs import decode_config
from kframe_zookeeper.znodes.topics import encode_state

from kframe.core.state.stored_states import apply
from kframe.model.ids import NO_STATE
from kframe.plugin.store import Load, ReadConfigs, WriteConfigs, WriteStates
from kframe.testing.clusters import StateSpec, change_of, described
from kframe.testing.store_fixture import codes, small_cluster
from kframe.testing.waiting import PATIENCE_S, wait_until
from verification.zookeeper.proxy import MULTI, Break, BreakPoint, Link, Proxy
from verification.zookeeper.servers import Ensemble, ServerHandle
from verification.zookeeper.sessions import FixtureFactory, started
from verification.zookeeper.stores import BREAK_POINTS, controller, opened
from verification.zookeeper.trees import Tree, changes, read_tree


@pytest.fixture
def fixture(make_fixture: FixtureFactory) -> ZooKeeperFixture:
    return make_fixture(small_cluster(), session_timeout_ms=20_000)


@pytest.mark.parametrize("applied", [0, 1, 2, 3])
def test_write_that_lands_after_verification_is_recognised(
    fixture: ZooKeeperFixture, proxy: Proxy, applied: int
) -> None:
    """A lagging server shows the old states. The write is sent again, refused, and verified again.

    The lost request has stored the first ``applied`` of the three states.
    """

    def apply_lost_writes(_: Link) -> None:
        if applied > 0:
            fixture.operator.set(paths.state_path("orders", 0), encode_state(2, 5, [2, 1], 1), version=7)
        if applied > 1:
            fixture.operator.set(paths.state_path("orders", 1), encode_state(3, 1, [2, 3], 1), version=0)
        if applied > 2:
            path = paths.state_path("empty.topic", 1)
            fixture.operator.create(path, encode_state(1, 0, [1], 1), makepath=True)

    store, cluster = controller(fixture, proxy)
    states = {
        "orders-0": StateSpec(2, (2, 1), 5, 7),
        "orders-1": StateSpec(3, (2, 3), 1, 0),
        "empty.topic-1": StateSpec(1, (1,), 0, NO_STATE),
    }
    change = change_of(cluster, states, 1)
    # The first of these creates the parent of the partitions.
    lost = Break(BreakPoint.BEFORE_REQUEST, 2, MULTI)
    resent = Break(BreakPoint.BEFORE_REQUEST, 3, MULTI, apply_lost_writes)
    proxy.script(lost, resent)
    result = store.perform(WriteStates(cluster, change))
    assert (lost.happened.is_set(), resent.happened.is_set()) == (True, True)
    assert (codes(result), result.partition_epoch.tolist()) == (["OK"] * 3, (change.expected + 1).tolist())
    apply(cluster, change, result.partition_epoch)
    assert described(store.perform(Load())) == described(cluster)


@pytest.mark.parametrize("nth", [1, 2])
@BREAK_POINTS
def test_two_pipelined_writes_are_both_verified(
    fixture: ZooKeeperFixture, proxy: Proxy, break_point: BreakPoint, nth: int
) -> None:
    """The connection breaks at the first write or at the second. Each row is stored once and reported as stored."""
    store, cluster = controller(fixture, proxy)
    first = change_of(cluster, {"orders-0": StateSpec(2, (2, 1), 5, 7)}, 1)
    following = change_of(cluster, {"orders-1": StateSpec(3, (2, 3), 1, 0), "orders-2": StateSpec(1, (1,), 10, 0)}, 1)
    lost = Break(break_point, nth, MULTI)
    proxy.script(lost)
    results = [
        store.perform(WriteStates(cluster, first, following)),
        store.perform(WriteStates(cluster, following)),
    ]
    wait_until(lost.happened.is_set)
    for change, result in zip((first, following), results, strict=True):
        assert codes(result) == ["OK"] * len(change)
        assert result.partition_epoch.tolist() == (change.expected + 1).tolist()
        apply(cluster, change, result.partition_epoch)
    assert described(store.perform(Load())) == described(cluster)


@pytest.mark.parametrize("nth", [1, 2, 3])
@BREAK_POINTS
def test_lost_responses_store_configs_once(
    fixture: ZooKeeperFixture, proxy: Proxy, break_point: BreakPoint, nth: int
) -> None:
    """The topics have no settings yet. The write creates the node and a notification."""
    store = opened(fixture, proxy)
    broken = Break(break_point, nth, MULTI)
    proxy.script(broken)
    store.perform(WriteConfigs(None, {"x": "1"}))
    assert broken.happened.wait(PATIENCE_S)
    assert store.perform(ReadConfigs(None)) == {"x": "1"}


def check_late_write_is_dropped(fixture: ZooKeeperFixture, first: ServerHandle, following: ServerHandle) -> None:
    """A request in flight to the server ``first`` is not performed after its client has moved to ``following``.

    The client has repeated the request there and performed another one. The request has no version check that could
    fail.
    """
    deliver = threading.Event()
    links: list[Link] = []

    def switch_server(link: Link) -> None:
        proxy.forward_to(following.address)
        links.append(link)
        link.leave()
        deliver.wait(PATIENCE_S)

    with Proxy(first.address) as proxy:
        store = opened(fixture, proxy)
        store.perform(WriteConfigs("orders", {"x": "0"}))
        connection = store._connection
        proxy.script(Break(BreakPoint.BEFORE_REQUEST, 1, MULTI, switch_server))
        store.perform(WriteConfigs("orders", {"x": "1"}))
        store.perform(WriteConfigs("orders", {"x": "2"}))
        settled = read_tree(fixture.operator)
        deliver.set()
        wait_until(lambda: links[0].closed)  # The server has read all bytes, or has closed the connection before.
        assert changes(settled, caught_up(fixture.settings(first.address))) == []
        data, _ = fixture.operator.get(paths.config_path("topics", "orders"))
        assert decode_config(data, "orders") == {"x": "2"}
        assert store._connection is connection, "all in one session"


def caught_up(settings: ConnectSettings) -> Tree:
    """The tree after all earlier requests of a server."""
    with started(settings) as client:
        client.sync("/")
        return read_tree(client)


def test_server_drops_requests_of_a_replaced_connection(fixture: ZooKeeperFixture, zookeeper: ServerHandle) -> None:
    check_late_write_is_dropped(fixture, zookeeper, zookeeper)


@pytest.mark.parametrize("direction", ["follower to leader", "leader to follower", "follower to follower"])
def test_ensemble_drops_requests_of_a_replaced_connection(
    make_fixture: FixtureFactory, ensemble: Ensemble, direction: str
) -> None:
    ensemble.start()
    leader, (follower, other) = ensemble.leader(), ensemble.followers()
    servers = {
        "follower to leader": (follower, leader),
        "leader to follower": (leader, follower),
        "follower to follower": (follower, other),
    }
    hosts = settings_of_url(f"zookeeper://{ensemble.address}").hosts
    fixture = make_fixture(small_cluster(), hosts=hosts, session_timeout_ms=20_000)
    check_late_write_is_dropped(fixture, *servers[direction])
