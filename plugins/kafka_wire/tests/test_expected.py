"""Brokers that are expected: connected before there is anything to send, and told only what ``connect`` is about."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest
from kframe_kafka_wire.testing import fake_broker
from kframe_kafka_wire.testing.fake_broker import FakeBroker
from kframe_kafka_wire.transport import WireTransport
from kframe_zookeeper.testing.process import until

from kframe.model.brokers import Registration
from kframe.testing.clusters import cluster_of, healthy, registration, requests_of


class World:
    """Brokers 1 and 2."""

    def __init__(self) -> None:
        self.fakes = {1: FakeBroker(), 2: FakeBroker()}
        self.cluster = cluster_of({"t": [healthy(1)]}, registered=(1, 2))
        self.transport = WireTransport(fake_broker.settings())
        self.transport.open(lambda event: None, lambda: True)

    def registration(self, broker_id: int, broker_epoch: int = 5) -> Registration:
        known = registration(broker_id, broker_epoch=broker_epoch)
        return replace(known, endpoints=(replace(known.endpoints[0], port=self.fakes[broker_id].port),))

    def connect(self, *registrations: Registration) -> None:
        self.transport.connect(self.cluster, tuple(self.cluster.brokers.register(registrations).tolist()))

    def tell(self, *brokers: int) -> None:
        self.transport.send(self.cluster, requests_of(self.cluster, metadata=(list(brokers), ["t-0"])))

    def connected(self, broker_id: int, times: int = 1) -> bool:
        """Whether somebody has connected to it so often, sooner or later."""
        return until(lambda: self.fakes[broker_id].connections == times)


@pytest.fixture
def world() -> Iterator[World]:
    world = World()
    yield world
    world.transport.close()
    for fake in world.fakes.values():
        fake.close()


def test_who_is_expected_is_connected_and_told_over_that_connection(world: World) -> None:
    both = world.registration(1), world.registration(2)
    world.transport.expect(both)
    assert world.connected(1)
    assert world.connected(2)
    assert not world.transport.channels
    world.connect(*both)
    assert {one.heard_topics for one in world.transport.channels.values()} == {1}
    world.tell(1, 2)
    for fake in world.fakes.values():
        assert fake.await_requests(1)
        assert fake.connections == 1


def test_another_registration_than_was_expected_has_a_channel_of_its_own(world: World) -> None:
    world.transport.expect([world.registration(1), world.registration(2)])
    assert world.connected(1)
    world.connect(world.registration(1, broker_epoch=6))
    assert not world.transport._expected, "who was expected and did not come is let go"
    world.tell(1, 2)
    assert world.connected(1, times=2)
    assert world.fakes[1].await_requests(1)
    assert [one.body.broker_epoch for one in world.fakes[1].requests] == [6]
    assert not world.fakes[2].requests


def test_who_is_expected_anew_and_who_closes_let_the_others_go(world: World) -> None:
    world.transport.expect([world.registration(1)])
    first = world.transport._expected[1][1]
    world.transport.expect([world.registration(2)])
    second = world.transport._expected[2][1]
    assert first.join(10.0)
    world.transport.close()
    assert second.join(10.0)
    assert not world.transport._expected


def test_a_broker_that_cannot_be_reached_yet_is_tried_again(world: World) -> None:
    port = world.fakes[1].port
    one = world.registration(1)
    world.fakes[1].close()
    world.transport.expect([one])
    channel = world.transport._expected[1][1]
    assert until(lambda: channel._connection is None)
    world.fakes[1] = FakeBroker(port=port)
    world.connect(one)
    world.tell(1)
    assert world.fakes[1].await_requests(1)


def test_nobody_is_expected_by_who_is_not_open_and_nobody_without_our_listener() -> None:
    transport = WireTransport(fake_broker.settings())
    transport.expect([registration(1)])
    assert not transport._expected
    transport.open(lambda event: None, lambda: True)
    elsewhere = replace(registration(1).endpoints[0], listener="ELSEWHERE")
    transport.expect([replace(registration(1), endpoints=(elsewhere,))])
    assert not transport._expected
    transport.close()
