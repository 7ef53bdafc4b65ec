"""Captures of a tree that changes meanwhile, and resignations."""

from __future__ import annotations

import itertools
import time

import pytest
from kazoo.client import KazooClient
from kframe_zookeeper.live.capture import PASSES_MAX
from kframe_zookeeper.live.cluster import ZooKeeperCluster, open_cluster
from kframe_zookeeper.sandbox.fixture import ZooKeeperFixture
from kframe_zookeeper.znodes import paths

from kframe.errors import ConfigError, ControllerFenced
from kframe.plugin.store import Claim, OwnsRole
from kframe.testing.store_fixture import FIRST_ID, opened, small_cluster
from verification.zookeeper.sessions import FixtureFactory

STATE = paths.state_path("orders", 0)


@pytest.fixture
def fixture(make_fixture: FixtureFactory) -> ZooKeeperFixture:
    return make_fixture(small_cluster())


@pytest.fixture
def cluster(fixture: ZooKeeperFixture) -> ZooKeeperCluster:
    return ZooKeeperCluster(fixture.settings())


class ConcurrentWriter:
    """Write during captures: a progress callback that acts in the given passes."""

    def __init__(self, operator: KazooClient, passes: range, path: str = STATE) -> None:
        self._operator, self._passes, self._path = operator, passes, path
        self._count = itertools.count(1)

    def __call__(self, done: int, total: int) -> None:
        if done == 0 and next(self._count) in self._passes:
            self._operator.set(self._path, self._operator.get(self._path)[0])


@pytest.mark.parametrize(
    "passes, path, expected",
    [
        (range(0), STATE, (1, True, ())),
        (range(1, 2), STATE, (2, True, ())),
        (range(1, 3), STATE, (3, True, ())),
        (range(1, PASSES_MAX + 1), STATE, (PASSES_MAX, False, (STATE,))),
        (range(1, PASSES_MAX + 1), paths.topic_path("orders"), (PASSES_MAX, False, (paths.topic_path("orders"),))),
        (range(1, PASSES_MAX + 1), paths.BROKER_SEQUENCE, (2, True, ())),
    ],
    ids=["nothing", "at first", "twice", "always", "always a topic", "always an unread znode"],
)
def test_capture_reports_changes_between_readings(
    cluster: ZooKeeperCluster,
    fixture: ZooKeeperFixture,
    passes: range,
    path: str,
    expected: tuple[int, bool, tuple[str, ...]],
) -> None:
    facts = cluster.capture(ConcurrentWriter(fixture.operator, passes, path)).capture
    assert facts is not None
    assert (facts.passes, facts.consistent, facts.moved) == expected
    assert facts.moved_count == len(facts.moved)


@pytest.mark.parametrize(
    "url, config, expected",
    [
        ("zookeeper://a:1/x", {}, ("a:1/x", 18_000)),
        ("zookeeper://a:1/x?session.timeout.ms=7", {}, ("a:1/x", 7)),
        ("zookeeper://a:1/x", {"zookeeper.connect": "b:2", "zookeeper.session.timeout.ms": "8"}, ("a:1/x", 8)),
        ("zookeeper://a:1/x?session.timeout.ms=7", {"zookeeper.session.timeout.ms": "8"}, ("a:1/x", 7)),
    ],
    ids=["URL", "URL with a key", "config", "URL wins"],
)
def test_cluster_url_and_configuration(url: str, config: dict[str, str], expected: tuple[str, int]) -> None:
    settings = open_cluster(url, config)._settings
    assert (settings.connect_string, settings.session_timeout_ms) == expected


@pytest.mark.parametrize("config", [{}, {"zookeeper.session.timeout.ms": "8"}], ids=["alone", "with a config"])
@pytest.mark.parametrize(
    "url", ["zookeeper://a:1?ssl.keystore.password=x", "zookeeper://me:secret@a:1", "zookeeper://"]
)
def test_invalid_cluster_url(url: str, config: dict[str, str]) -> None:
    with pytest.raises(ConfigError, match=r"^ZooKeeper URL: found"):
        open_cluster(url, config)


def test_capture_writes_nothing(cluster: ZooKeeperCluster, fixture: ZooKeeperFixture) -> None:
    before = fixture.operator.exists("/").pzxid
    cluster.capture()
    cluster.status()
    assert fixture.operator.exists("/").pzxid == before
    assert fixture.operator.exists(paths.CONTROLLER) is None


@pytest.mark.parametrize("requested_id", [None, FIRST_ID])
def test_depose(cluster: ZooKeeperCluster, fixture: ZooKeeperFixture, requested_id: int | None) -> None:
    with pytest.raises(ControllerFenced, match="there is no controller"):
        cluster.depose(requested_id)
    store = opened(fixture)
    assert store.perform(Claim(FIRST_ID)) == 1
    elected = cluster.status().elected_ms
    assert elected is not None
    assert abs(elected - time.time() * 1000) < 600_000
    with pytest.raises(ControllerFenced, match=f"broker {FIRST_ID} is controller, not {FIRST_ID + 1}"):
        cluster.depose(FIRST_ID + 1)
    assert store.perform(OwnsRole())
    ended = cluster.depose(requested_id)
    assert (ended.controller_id, ended.controller_epoch) == (FIRST_ID, 1)
    assert not store.perform(OwnsRole())
    assert store.perform(Claim(FIRST_ID)) == 2
