"""Controllers on a real ZooKeeper: failover and session expiry."""

from __future__ import annotations

from collections import Counter

import pytest
from kframe_zookeeper import plugin
from kframe_zookeeper.sandbox.fixture import ZooKeeperFixture
from kframe_zookeeper.store.store import ZooKeeperStore
from kframe_zookeeper.znodes import paths
from kframe_zookeeper.znodes.topics import decode_state

from kframe.embedded import RecordingTransport
from kframe.registry.registry import build_registry
from kframe.testing.clusters import cluster_of, healthy
from kframe.testing.store_fixture import FIRST_ID, SECOND_ID
from kframe.testing.waiting import wait_until
from verification.support.controllers import ControllerLoop, controller_loop
from verification.zookeeper.sessions import FixtureFactory


@pytest.fixture
def fixture(make_fixture: FixtureFactory) -> ZooKeeperFixture:
    """Twenty partitions with three replicas each."""
    topics = {f"topic-{number}": [healthy(1, 2, 3), healthy(2, 3, 1)] for number in range(10)}
    return make_fixture(cluster_of(topics, registered=[1, 2, 3]), session_timeout_ms=6000)


def loop_on(store: ZooKeeperStore, controller_id: int) -> ControllerLoop:
    loop = controller_loop(controller_id, store, RecordingTransport())
    loop.open()
    loop.start()
    return loop


def leaders(fixture: ZooKeeperFixture) -> Counter[tuple[int, int]]:
    """The number of partitions by (leader, controller epoch) in ZooKeeper."""
    state_paths = [paths.state_path(f"topic-{number}", partition) for number in range(10) for partition in range(2)]
    states = (decode_state(fixture.operator.get(path)[0], path) for path in state_paths)
    return Counter((state.leader, state.controller_epoch) for state in states)


def test_plugin_offers_the_url_scheme() -> None:
    registry = build_registry(extra=[plugin], allowed=())
    assert isinstance(registry.open_store("zookeeper://h:1/x"), ZooKeeperStore)


@pytest.mark.smoke
def test_broker_failure_elects_leaders_and_the_next_controller_continues(fixture: ZooKeeperFixture) -> None:
    first = loop_on(fixture.connect(), FIRST_ID)
    wait_until(lambda: first.status().active)
    fixture.unregister_brokers([1])
    wait_until(lambda: leaders(fixture) == {(2, 1): 20})
    second = loop_on(fixture.connect(), SECOND_ID)
    first.stop()
    wait_until(lambda: second.status().active)
    fixture.unregister_brokers([2])
    wait_until(lambda: leaders(fixture) == {(3, 2): 20})
    second.stop()
    assert fixture.operator.get(paths.CONTROLLER_EPOCH)[0] == b"2"


def test_controller_contends_again_after_session_expiry(fixture: ZooKeeperFixture) -> None:
    store = fixture.connect()
    loop = loop_on(store, FIRST_ID)
    wait_until(lambda: loop.status().active)
    fixture.expire(store)
    wait_until(lambda: loop.status().controller_epoch == 2)
    fixture.unregister_brokers([1])
    wait_until(lambda: leaders(fixture) == {(2, 2): 20})
    loop.stop()
