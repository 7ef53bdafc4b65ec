"""The registration of the active controller in ``/brokers/ids`` for brokers before 3.0."""

from __future__ import annotations

import json

import pytest
from kframe_zookeeper.live.cluster import ZooKeeperCluster
from kframe_zookeeper.sandbox.fixture import ZooKeeperFixture
from kframe_zookeeper.store.store import ZooKeeperStore
from kframe_zookeeper.znodes import paths

from kframe.plugin.store import Claim, ReadBrokers, ReleaseRole
from kframe.testing.clusters import registration
from kframe.testing.store_fixture import FIRST_ID, SECOND_ID, small_cluster
from kframe.testing.waiting import wait_until
from verification.zookeeper.sessions import FixtureFactory
from verification.zookeeper.stores import opened

OURS = paths.broker_path(FIRST_ID)


def announcing(fixture: ZooKeeperFixture) -> ZooKeeperStore:
    """A store that registers its controller but does not have the role yet."""
    store = opened(fixture)
    store.announce(registration(FIRST_ID))
    return store


def ids(store: ZooKeeperStore) -> list[int]:
    return [broker.broker_id for broker in store.perform(ReadBrokers())]


def test_controller_is_registered_while_it_has_the_role(make_fixture: FixtureFactory) -> None:
    fixture = make_fixture(small_cluster())
    store = announcing(fixture)
    assert fixture.operator.exists(OURS) is None
    store.perform(Claim(FIRST_ID))
    data, stat = fixture.operator.get(OURS)
    record = json.loads(data)
    assert record["kframe_controller"] is True
    assert record["endpoints"] == [
        f"PLAINTEXT://{endpoint.host}:{endpoint.port}" for endpoint in registration(FIRST_ID).endpoints
    ]
    assert stat.owner_session_id == fixture.operator.get(paths.CONTROLLER)[1].owner_session_id
    store.perform(ReleaseRole())
    assert fixture.operator.exists(OURS) is None
    assert fixture.operator.exists(paths.CONTROLLER) is None


def test_active_controller_registers_when_it_is_announced(make_fixture: FixtureFactory) -> None:
    fixture = make_fixture(small_cluster())
    store = opened(fixture)
    store.perform(Claim(FIRST_ID))
    store.announce(registration(FIRST_ID))
    wait_until(lambda: fixture.operator.exists(OURS) is not None)


def test_registered_controller_does_not_count_as_a_broker(make_fixture: FixtureFactory) -> None:
    fixture = make_fixture(small_cluster())
    store, other = announcing(fixture), opened(fixture)
    before = ids(other)
    store.perform(Claim(FIRST_ID))
    assert fixture.operator.exists(OURS) is not None
    assert (ids(store), ids(other)) == (before, before)
    cluster = ZooKeeperCluster(fixture.settings())
    assert list(cluster.broker_addresses()) == before
    snapshot = cluster.capture()
    assert snapshot.controllers == (FIRST_ID,)
    assert FIRST_ID not in snapshot.to_cluster().brokers.ids.tolist()


def test_deposed_controller_is_unregistered(make_fixture: FixtureFactory) -> None:
    fixture = make_fixture(small_cluster())
    store, other = announcing(fixture), opened(fixture)
    store.perform(Claim(FIRST_ID))
    assert other.perform(Claim(SECOND_ID, takeover=True)) == 2
    wait_until(lambda: fixture.operator.exists(OURS) is None)


def test_registration_of_a_broker_with_the_same_id_is_not_replaced(
    make_fixture: FixtureFactory, caplog: pytest.LogCaptureFixture
) -> None:
    fixture = make_fixture(small_cluster())
    store = announcing(fixture)
    fixture.operator.create(OURS, b"a broker's", ephemeral=True)
    assert store.perform(Claim(FIRST_ID)) == 1
    assert "belongs to another session" in caplog.text
    store.perform(ReleaseRole())
    assert fixture.operator.get(OURS)[0] == b"a broker's"
