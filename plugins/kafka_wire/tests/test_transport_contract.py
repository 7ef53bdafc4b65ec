"""The transport to real brokers keeps the contract of transports: over sockets, with brokers that decode by kio."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import pytest
from kframe_kafka_wire.testing.fake_broker import US, FakeBroker
from kframe_kafka_wire.transport import WireTransport
from kframe_zookeeper.testing.process import until

from kframe.embedded.describe import Request
from kframe.model.cluster import ClusterState
from kframe.testing.transport_contract import AnsweringContract, AnsweringWorld, Counts, counts_of


class WireWorld:
    """The far end of a WireTransport: a broker for each one that is registered."""

    def __init__(self, transport: WireTransport, brokers: dict[int, FakeBroker]) -> None:
        self.transport = transport
        self.brokers = brokers

    def settle(self) -> None:
        assert until(lambda: all(channel.idle for channel in self.transport.channels.values()))

    def counts(self) -> Counts:
        return counts_of(self.received())

    def received(self) -> Sequence[Request]:
        self.settle()
        found = []
        for broker_id, broker in self.brokers.items():
            came, broker.requests = broker.requests, []
            found += [{"broker": broker_id, **one.trace} for one in came]
        for one in found:
            if "live_brokers" in one:
                assert US in one["live_brokers"]
                one["live_brokers"].remove(US)
        return found


class TestWireTransport(AnsweringContract):
    @pytest.fixture
    def make_world(
        self, fakes: Callable[..., FakeBroker], transports: Callable[..., WireTransport]
    ) -> Callable[[ClusterState], AnsweringWorld]:
        def make(cluster: ClusterState) -> Any:
            brokers = {}
            for index, known in enumerate(cluster.brokers.registrations):
                if known is not None:
                    brokers[known.broker_id] = fake = fakes()
                    (endpoint,) = known.endpoints
                    there = replace(known, endpoints=(replace(endpoint, port=fake.port),))
                    cluster.brokers.registrations[index] = there
            return WireWorld(transports(), brokers)

        return make
