"""The embedded transports pass the contract tests of transports, as far as each applies."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pytest

from kframe.embedded import Api, CountingTransport, EmbeddedBrokers, RecordingTransport, Request, VirtualClock
from kframe.model.cluster import ClusterState
from kframe.testing.transport_contract import CountingContract, RecordingContract, RespondingContract
from kframe.testing.transport_fixture import CountingFixture, Counts, RecordingFixture, RespondingFixture, counts_of


class CountedFixture:
    def __init__(self, _cluster: ClusterState) -> None:
        self.transport = CountingTransport()

    def settle(self) -> None:
        pass

    def counts(self) -> Counts:
        counts: Counts = {}
        for api in Api:
            sent = self.transport.sent(api)
            for broker_id, requests, partitions in zip(sent.broker_ids, sent.requests, sent.partitions, strict=True):
                if requests:
                    counts.setdefault(int(broker_id), {})[api.value] = int(requests), int(partitions)
        self.transport.reset()
        return counts


class RecordedFixture:
    def __init__(self, transport: RecordingTransport | EmbeddedBrokers) -> None:
        self.transport = transport

    def settle(self) -> None:
        pass

    def counts(self) -> Counts:
        return counts_of(self.received())

    def received(self) -> Sequence[Request]:
        return self.transport.take()


class TestCountingTransport(CountingContract):
    @pytest.fixture
    def make_fixture(self) -> Callable[[ClusterState], CountingFixture]:
        return CountedFixture


class TestRecordingTransport(RecordingContract):
    @pytest.fixture
    def make_fixture(self) -> Callable[[ClusterState], RecordingFixture]:
        return lambda _cluster: RecordedFixture(RecordingTransport())


class TestEmbeddedBrokers(RespondingContract):
    @pytest.fixture
    def make_fixture(self) -> Callable[[ClusterState], RespondingFixture]:
        return lambda _cluster: RecordedFixture(EmbeddedBrokers(VirtualClock()))
