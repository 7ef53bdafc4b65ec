"""``expect`` prepares connections before brokers are connected; only the same registrations use them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest
from kframe_kafka_wire.requests.transport import WireTransport
from kframe_kafka_wire.sandbox.fake_broker import FakeBroker

from kframe.testing.clusters import registration
from kframe.testing.waiting import until
from verification.kafka_wire.fake_cluster import FakeCluster


@pytest.fixture
def cluster(make_cluster: Callable[..., FakeCluster]) -> FakeCluster:
    return make_cluster(brokers=(1, 2), connected=False)


def await_connections(cluster: FakeCluster, broker_id: int, count: int = 1) -> bool:
    return until(lambda: cluster.brokers[broker_id].connections == count)


def test_expected_broker_receives_requests_over_prepared_connection(cluster: FakeCluster) -> None:
    registrations = cluster.registration(1), cluster.registration(2)
    cluster.transport.expect(registrations)
    assert await_connections(cluster, 1)
    assert await_connections(cluster, 2)
    assert not cluster.transport.channels
    cluster.connect(*registrations)
    assert {channel.known_topics for channel in cluster.transport.channels.values()} == {2}
    cluster.send_metadata((1, 2))
    for broker in cluster.brokers.values():
        assert broker.await_requests(1)
        assert broker.connections == 1


def test_unexpected_registration_gets_a_new_channel(cluster: FakeCluster) -> None:
    cluster.transport.expect([cluster.registration(1), cluster.registration(2)])
    assert await_connections(cluster, 1)
    cluster.connect(cluster.registration(1, broker_epoch=8))
    assert not cluster.transport._expected, "expected brokers that were not connected are closed"
    cluster.send_metadata((1, 2))
    assert await_connections(cluster, 1, 2)
    assert cluster.broker.await_requests(1)
    assert [request.body["broker_epoch"] for request in cluster.broker.requests] == [8]
    assert not cluster.brokers[2].requests


def test_prepared_connections_are_closed_by_the_next_expect_and_by_close(cluster: FakeCluster) -> None:
    cluster.transport.expect([cluster.registration(1)])
    first = cluster.transport._expected[1][1]
    cluster.transport.expect([cluster.registration(2)])
    second = cluster.transport._expected[2][1]
    assert first.join(10.0)
    cluster.transport.close()
    assert second.join(10.0)
    assert not cluster.transport._expected


def test_connection_to_expected_broker_is_retried_until_it_listens(
    cluster: FakeCluster, fakes: Callable[..., FakeBroker]
) -> None:
    expected = cluster.registration(1)
    cluster.broker.close()
    cluster.transport.expect([expected])
    channel = cluster.transport._expected[1][1]
    assert until(lambda: channel._connection is None)
    cluster.brokers[1] = fakes(port=cluster.broker.port)
    cluster.connect(expected)
    cluster.send_metadata()
    assert cluster.broker.await_requests(1)


def test_expect_needs_an_open_transport_and_a_broker_with_our_listener(
    transports: Callable[..., WireTransport],
) -> None:
    transport = transports()
    transport.expect([registration(1)])
    assert not transport._expected
    transport.open(lambda event: None, lambda: True)
    elsewhere = replace(registration(1).endpoints[0], listener="ELSEWHERE")
    transport.expect([replace(registration(1), endpoints=(elsewhere,))])
    assert not transport._expected
