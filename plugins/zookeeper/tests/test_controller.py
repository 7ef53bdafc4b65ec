"""Controllers on a real ZooKeeper: failover, session expiry, and a deposed controller that wakes."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator

import pytest
from kframe_zookeeper import paths, plugin
from kframe_zookeeper.settings import settings_of_url
from kframe_zookeeper.store import ZooKeeperStore
from kframe_zookeeper.testing.process import wait_until
from kframe_zookeeper.testing.servers import ServerHandle
from kframe_zookeeper.testing.zookeeper_fixture import ZooKeeperFixture
from kframe_zookeeper.znodes import decode_state

from kframe.core.controller import ControllerCore
from kframe.core.selectors.leader_selection import Selection
from kframe.embedded import RecordingTransport
from kframe.model.config import ControllerConfig
from kframe.registry.registry import build_registry
from kframe.runtime.clock import SystemClock
from kframe.runtime.loop import ControllerLoop
from kframe.testing.clusters import cluster_of, healthy
from kframe.testing.store_fixture import FIRST_ID, SECOND_ID

#: A controller in a process of its own. The arguments are its id and the URL of its store. It prints a line after its
#: election.
SLEEPER = """
import sys, time
from kframe.core.controller import ControllerCore
from kframe.core.selectors.leader_selection import Selection
from kframe.embedded import RecordingTransport
from kframe.model.config import ControllerConfig
from kframe.runtime.clock import SystemClock
from kframe.runtime.loop import ControllerLoop
from kframe_zookeeper.store import open_store

loop = ControllerLoop(
    ControllerCore(int(sys.argv[1]), ControllerConfig(), Selection({})), open_store(sys.argv[2]), RecordingTransport(),
    SystemClock())
loop.open()
loop.start()
printed = None
while True:
    active = loop.status().active
    if active != printed:
        print("active" if active else "idle", flush=True)
        printed = active
    time.sleep(0.01)
"""


@pytest.fixture
def fixture(zookeeper: ServerHandle) -> Iterator[ZooKeeperFixture]:
    """Twenty partitions with three replicas each."""
    topics = {f"topic-{number}": [healthy(1, 2, 3), healthy(2, 3, 1)] for number in range(10)}
    settings = settings_of_url(f"zookeeper://{zookeeper.address}?session.timeout.ms=6000")
    zookeeper_fixture = ZooKeeperFixture(settings, cluster_of(topics, registered=[1, 2, 3]))
    yield zookeeper_fixture
    zookeeper_fixture.close()


def loop_on(store: ZooKeeperStore, controller_id: int) -> ControllerLoop:
    loop = ControllerLoop(
        ControllerCore(controller_id, ControllerConfig(), Selection({})), store, RecordingTransport(), SystemClock()
    )
    loop.open()
    loop.start()
    return loop


def leaders(fixture: ZooKeeperFixture) -> dict[tuple[int, int], int]:
    """The number of partitions by (leader, controller epoch) in ZooKeeper."""
    leaders_by_epoch: dict[tuple[int, int], int] = {}
    for topic in fixture.operator.get_children(paths.TOPICS):
        for number in range(2):
            path = paths.state_path(topic, number)
            state = decode_state(fixture.operator.get(path)[0], path)
            key = state.leader, state.controller_epoch
            leaders_by_epoch[key] = leaders_by_epoch.get(key, 0) + 1
    return leaders_by_epoch


def test_plugin_offers_the_url_scheme() -> None:
    registry = build_registry(extra=[plugin], allowed=())
    assert isinstance(registry.open_store("zookeeper://h:1/x"), ZooKeeperStore)


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


def test_deposed_controller_changes_nothing_when_it_wakes(fixture: ZooKeeperFixture) -> None:
    settings = fixture.connect()._settings
    url = f"zookeeper://{settings.connect_string}?session.timeout.ms={settings.session_timeout_ms}"
    command = [sys.executable, "-c", SLEEPER, str(FIRST_ID), url]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, text=True, env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    ) as sleeper:
        try:
            assert sleeper.stdout is not None
            while sleeper.stdout.readline() != "active\n":
                assert sleeper.poll() is None
            sleeper.send_signal(signal.SIGSTOP)
            fixture.unregister_brokers([1])  # The controller receives this watch event when it wakes.
            other = loop_on(fixture.connect(), SECOND_ID)
            wait_until(lambda: other.status().active)
            wait_until(lambda: leaders(fixture) == {(2, 2): 10, (2, 0): 10} or leaders(fixture) == {(2, 2): 20})
            before = leaders(fixture)
            versions = {topic: fixture.operator.get(paths.state_path(topic, 0))[1].mzxid
                        for topic in fixture.operator.get_children(paths.TOPICS)}  # fmt: skip
            sleeper.send_signal(signal.SIGCONT)
            assert sleeper.stdout.readline() == "idle\n"
            assert (other.status().active, leaders(fixture)) == (True, before)
            assert versions == {topic: fixture.operator.get(paths.state_path(topic, 0))[1].mzxid for topic in versions}
            assert fixture.operator.get(paths.CONTROLLER_EPOCH)[0] == b"2"
            other.stop()
        finally:
            sleeper.kill()
