"""The contract of transports on fake brokers over sockets, which decode requests by kio.

In seeded histories the transport and the embedded one give the same requests.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
from kframe_kafka_wire.requests.transport import WireTransport
from kframe_kafka_wire.sandbox.fake_cluster import FakeBrokers, open_fake_brokers

from kframe.model.cluster import ClusterState
from kframe.testing.transport_contract import RespondingContract
from kframe.testing.transport_fixture import Counts, RespondingFixture, counts_of
from kframe_simulator.differential import play_batches


class CountedBrokers(FakeBrokers):
    """Fake brokers that count received requests."""

    def counts(self) -> Counts:
        self.settle()
        return counts_of(self.received())


class TestWireTransport(RespondingContract):
    @pytest.fixture
    def make_fixture(
        self, transports: Callable[..., WireTransport]
    ) -> Iterator[Callable[[ClusterState], RespondingFixture]]:
        fixtures: list[CountedBrokers] = []

        def make(cluster: ClusterState) -> RespondingFixture:
            fixtures.append(CountedBrokers(transports(), cluster))
            return fixtures[-1]

        yield make
        for fixture in fixtures:
            fixture.close()


@pytest.mark.parametrize("seed", range(1, 4))
def test_transport_histories(seed: int) -> None:
    assert play_batches(seed, lambda cluster: open_fake_brokers("kafka:", cluster)) is None
