"""Fake brokers, transports to them, and servers for real brokers."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from kframe_kafka_wire.requests.transport import WireTransport
from kframe_kafka_wire.sandbox.fake_broker import FakeBroker, settings

from verification.kafka_wire.client import Client
from verification.kafka_wire.fake_cluster import FakeCluster
from verification.kafka_wire.served import Served, sample_cluster
from verification.kafka_wire.tools import jars
from verification.support.properties import load_profile
from verification.zookeeper.handover import ClusterFixture, running_fixture
from verification.zookeeper.servers import ServerHandle, ServerOptions, missing, running
from verification.zookeeper.tools import ToolProcess

load_profile()


@pytest.fixture
def fakes() -> Iterator[Callable[..., FakeBroker]]:
    """Create brokers that are closed after the test."""
    brokers: list[FakeBroker] = []

    def make(*arguments: Any, **options: Any) -> FakeBroker:
        brokers.append(FakeBroker(*arguments, **options))
        return brokers[-1]

    yield make
    for broker in brokers:
        broker.close()


@pytest.fixture
def transports() -> Iterator[Callable[..., WireTransport]]:
    """Create transports that are closed after the test. Check that their threads end."""
    opened: list[WireTransport] = []

    def make(config: dict[str, str] | None = None, **options: Any) -> WireTransport:
        opened.append(WireTransport(settings() if config is None else config, **options))
        return opened[-1]

    yield make
    for transport in opened:
        channels = list(transport.channels.values())
        transport.close()
        assert all(channel.join(10.0) for channel in channels)


@pytest.fixture
def make_cluster(
    fakes: Callable[..., FakeBroker], transports: Callable[..., WireTransport]
) -> Callable[..., FakeCluster]:
    """Create fake clusters that are closed after the test, by default with broker 1 connected."""

    def make(
        config: dict[str, str] | None = None, brokers: tuple[int, ...] = (1,), connected: bool = True
    ) -> FakeCluster:
        cluster = FakeCluster(transports(config), {broker_id: fakes() for broker_id in brokers})
        if connected:
            cluster.connect()
        return cluster

    return make


@pytest.fixture
def served() -> Iterator[Served]:
    """The server of a small cluster in memory."""
    with sample_cluster() as served:
        yield served


@pytest.fixture
def client(served: Served) -> Iterator[Client]:
    """A client of ``served``."""
    with served.client() as client:
        yield client


@pytest.fixture(scope="session")
def kafka(zookeeper: ServerHandle, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ClusterFixture]:
    """Three brokers with Kafka's own controller. Each test uses its own topics and leaves the brokers running.

    A frozen broker stays registered, even if commands start slowly on a busy machine.
    """
    settings = {
        "zookeeper.session.timeout.ms": "110000",
        "auto.create.topics.enable": "true",
        "num.partitions": "6",
        "default.replication.factor": "2",
    }
    with running_fixture(f"{zookeeper.address}/kafka", tmp_path_factory.mktemp("kafka"), settings) as fixture:
        yield fixture


@pytest.fixture(scope="session")
def needs_java() -> None:
    """Skip tests of Java programs on machines without a JDK."""
    if lacking := missing():
        pytest.skip(lacking)


@pytest.fixture(scope="session")
def tool_process(needs_java: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ToolProcess]:
    """Kafka's command-line tools."""
    process = ToolProcess(tmp_path_factory.mktemp("tools"), jars())
    yield process
    process.kill()


@pytest.fixture(scope="session")
def zookeeper(needs_java: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerHandle]:
    """A server for real brokers. Each cluster uses its own chroot."""
    with running(ServerHandle(tmp_path_factory.mktemp("zookeeper") / "open", ServerOptions())) as server:
        yield server
