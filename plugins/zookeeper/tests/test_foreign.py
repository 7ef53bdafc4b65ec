"""Foreign controllers and registrations are logged once, and the controller continues."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from kframe_zookeeper.sandbox.fixture import ZooKeeperFixture
from kframe_zookeeper.znodes import paths
from kframe_zookeeper.znodes.brokers import encode_broker

from kframe.model.brokers import Endpoint
from kframe.plugin.store import Claim, Load, ReadBrokers, ReadController
from kframe.testing.clusters import registration
from kframe.testing.store_fixture import FIRST_ID, small_cluster
from verification.zookeeper.sessions import FixtureFactory
from verification.zookeeper.stores import opened

ADDRESS = Endpoint("PLAINTEXT", "127.0.0.9", 9092, "PLAINTEXT")


def lines(caplog: pytest.LogCaptureFixture, word: str) -> list[str]:
    return [entry.message for entry in caplog.records if word in entry.message and entry.levelname == "WARNING"]


def register(fixture: ZooKeeperFixture, broker_id: int, *, ephemeral: bool = True, host: str = "127.0.0.9") -> None:
    endpoint = replace(ADDRESS, host=host)
    data = encode_broker(replace(registration(broker_id), endpoints=(endpoint,)), 0)
    fixture.operator.create(paths.broker_path(broker_id), data, ephemeral=ephemeral)


def test_registration_with_the_address_of_another_broker_is_logged(
    make_fixture: FixtureFactory, caplog: pytest.LogCaptureFixture
) -> None:
    fixture = make_fixture(small_cluster())
    register(fixture, 70)
    register(fixture, 71)
    store = opened(fixture)
    for _ in range(2):
        assert {70, 71} <= {broker.broker_id for broker in store.perform(ReadBrokers())}
    assert lines(caplog, "broker 71") == [
        (
            "broker 71: /brokers/ids/71 field endpoints: found PLAINTEXT://127.0.0.9:9092, "
            "the address of broker 70 too, "
            "expected one of its own"
        )
    ]
    assert lines(caplog, "broker 70:") == []
    fixture.operator.delete(paths.broker_path(71))
    register(fixture, 71, host="127.0.0.10")
    store.perform(ReadBrokers())
    assert len(lines(caplog, "broker 71")) == 1


def test_persistent_registration_is_logged(make_fixture: FixtureFactory, caplog: pytest.LogCaptureFixture) -> None:
    fixture = make_fixture(small_cluster())
    register(fixture, 70, ephemeral=False)
    store = opened(fixture)
    assert 70 in {broker.broker_id for broker in store.perform(Load()).brokers.registrations if broker is not None}
    assert lines(caplog, "broker 70") == [
        "broker 70: /brokers/ids/70: found a persistent node, expected an ephemeral one"
    ]


@pytest.mark.parametrize("epoch", [-1, 0, None])
def test_zookeeper_mode_controller_is_not_logged(
    make_fixture: FixtureFactory, epoch: int | None, caplog: pytest.LogCaptureFixture
) -> None:
    fixture = make_fixture(small_cluster())
    record = {"version": 2, "brokerid": 3, "timestamp": "0", "kraftControllerEpoch": epoch}
    if epoch is None:
        del record["kraftControllerEpoch"]
    fixture.operator.create(paths.CONTROLLER, json.dumps(record).encode(), ephemeral=True)
    store = opened(fixture)
    assert store.perform(ReadController()).controller_id == 3
    assert lines(caplog, "KRaft") == []
    assert store.perform(Claim(FIRST_ID, takeover=True)) == 1


def test_kraft_controller_is_logged_and_keeps_the_role(
    make_fixture: FixtureFactory, caplog: pytest.LogCaptureFixture
) -> None:
    """It writes a persistent node and migrates the cluster. A takeover would break the migration."""
    fixture = make_fixture(small_cluster())
    fixture.operator.create(paths.CONTROLLER, b'{"version":2,"brokerid":3000,"timestamp":"0","kraftControllerEpoch":4}')
    store = opened(fixture)
    for _ in range(2):
        assert store.perform(ReadController()).controller_id == 3000
    assert lines(caplog, "KRaft") == [
        (
            "KRaft controller 3000 holds the role: /controller field kraftControllerEpoch: found 4, expected -1; the "
            "cluster is being migrated to KRaft, and its role is never taken"
        )
    ]
    assert store.perform(Claim(FIRST_ID, takeover=True)) is None
    assert store.perform(ReadController()).controller_id == 3000
