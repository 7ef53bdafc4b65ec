"""Real clusters whose brokers are killed: Kafka 3.9.1 on ZooKeeper with kframe as controller, and Kafka 4.4.0."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager
from datetime import datetime
from pathlib import Path
from typing import Final, Protocol

from kframe import build_registry
from kframe.plugin.kraft import records
from kframe.plugin.live import CommittedLog, LoggedCluster
from kframe.testing.waiting import wait_until
from verification.kafka_wire.broker_metadata import metadata_of
from verification.kafka_wire.instances import InstanceProcess
from verification.kafka_wire.replication import REPLICAS
from verification.kraft.kafka_nodes import KraftCluster, KraftOptions
from verification.kraft.kafka_tools import KafkaTools
from verification.zookeeper.commands import RunningCommand
from verification.zookeeper.handover import ClusterFixture, running_fixture
from verification.zookeeper.servers import HOST, ServerHandle, ServerOptions, free_ports, running

_TOPIC: Final = "watched"
#: Sessions of brokers of Kafka 4 are short, so that their end is soon known.
_SETTINGS: Final = {"broker.session.timeout.ms": "6000", "broker.heartbeat.interval.ms": "500"}
#: The log line of a controller in ZooKeeper mode that knows the end of brokers.
_DELETED: Final = re.compile(r"^\[([-0-9 :,]+)\] .*deleted brokers: ([0-9,]+),", re.MULTILINE)


class WatchedCluster(Protocol):
    """A cluster of the brokers 1, 2 and 3 with a topic of six partitions and three replicas each."""

    @property
    def sources(self) -> Mapping[str, tuple[str, ...]]:
        """What a console shows the cluster by: the name of the source to the arguments of ``kframe console``."""

    @property
    def has_metrics(self) -> bool:
        """Whether the arguments name pages of the controller."""

    def kill(self, broker_id: int) -> Callable[[], float]:
        """Kill a broker. Returns a function that waits until the controller knows it, and returns that time.

        The time is the controller's, in seconds since 1970.
        """

    def restart(self, broker_id: int) -> None:
        """Start a broker that was killed. Returns when all replicas are in sync."""


class ZookeeperBrokers:
    """Brokers of Kafka 3.9.1 whose controller is kframe."""

    has_metrics: Final = True

    def __init__(self, fixture: ClusterFixture, controller: InstanceProcess) -> None:
        self._fixture = fixture
        self._controller = controller

    @property
    def sources(self) -> Mapping[str, tuple[str, ...]]:
        """See WatchedCluster."""
        metrics = ("--metrics", f"http://{self._controller.pages_address}")
        cluster = self._fixture.cluster
        return {
            "zookeeper://": (f"zookeeper://{cluster.zookeeper}", *metrics),
            "kafka://": (f"kafka://{cluster.address}", *metrics),
        }

    def kill(self, broker_id: int) -> Callable[[], float]:
        """See WatchedCluster. The session of the broker ends at once."""
        before = len(self._deletions(broker_id))
        self._fixture.cluster.lose(broker_id, self._fixture.client)

        def known_s() -> float:
            wait_until(lambda: len(self._deletions(broker_id)) > before, lambda: self._controller.log[-4000:])
            return datetime.strptime(self._deletions(broker_id)[-1], "%Y-%m-%d %H:%M:%S,%f").timestamp()

        return known_s

    def restart(self, broker_id: int) -> None:
        """See WatchedCluster."""
        broker = self._fixture.cluster.brokers[broker_id]
        broker.start()
        broker.await_started()
        _await_in_sync(broker.address)

    def _deletions(self, broker_id: int) -> list[str]:
        """The times of the log lines that name the broker as deleted."""
        deletions = _DELETED.findall(self._controller.log)
        return [time for time, brokers in deletions if str(broker_id) in brokers.split(",")]


class KraftBrokers:
    """Brokers of Kafka 4.4.0. ``metrics`` is the address of their controller's pages, if it has some."""

    def __init__(self, cluster: KraftCluster, metrics: str | None) -> None:
        self._cluster = cluster
        self._metrics = metrics
        (controller,) = cluster.controllers.values()
        self._url = f"kraft://{controller.controller_address}"

    @property
    def has_metrics(self) -> bool:
        """See WatchedCluster."""
        return self._metrics is not None

    @property
    def sources(self) -> Mapping[str, tuple[str, ...]]:
        """See WatchedCluster."""
        return {"kraft://": (self._url, *(() if self._metrics is None else ("--metrics", self._metrics)))}

    def kill(self, broker_id: int) -> Callable[[], float]:
        """See WatchedCluster. Its session ends after a while."""
        cluster = build_registry().open_cluster(self._url)
        assert isinstance(cluster, LoggedCluster)
        log = cluster.committed_log()
        log.open()
        self._cluster.brokers[broker_id].kill()

        def known_s() -> float:
            with closing(log):
                return _fenced_ms(log, broker_id) / 1000

        return known_s

    def restart(self, broker_id: int) -> None:
        """See WatchedCluster."""
        broker = self._cluster.brokers[broker_id]
        broker.start()
        broker.await_started()
        _await_in_sync(broker.address)


@contextmanager
def zookeeper_brokers(folder: Path) -> Iterator[ZookeeperBrokers]:
    """Brokers on ZooKeeper, whose role kframe has taken."""
    with (
        running(ServerHandle(folder / "zookeeper", ServerOptions())) as zookeeper,
        running_fixture(f"{zookeeper.address}/kafka", folder / "kafka") as fixture,
    ):
        fixture.create(_TOPIC, REPLICAS)
        controller = InstanceProcess(fixture.cluster.zookeeper, folder / "kframe", 1000, "--insist")
        try:
            controller.await_ready(active=True)
            yield ZookeeperBrokers(fixture, controller)
        finally:
            controller.kill()


@contextmanager
def kraft_brokers(folder: Path, *, by_kframe: bool) -> Iterator[KraftBrokers]:
    """Brokers of Kafka 4.4.0, led by ``kframe controller run`` or by Kafka's own controller."""
    options = KraftOptions(brokers=3, controllers=1, combined=False, settings=_SETTINGS)
    cluster = KraftCluster(folder / "nodes", options)
    (controller,) = cluster.controllers.values()
    (port,) = free_ports(1)
    pages = ("--metrics-listen", port)
    command = RunningCommand(folder / "kframe", "controller", "run", "--config", controller.config_path, *pages)
    command.pages_address = f"{HOST}:{port}"
    try:
        if by_kframe:
            command.start()
            wait_until(lambda: command.pid is None or command.page("/readyz")[0] == 200)
            assert command.pid is not None, command.log
        nodes = cluster.brokers if by_kframe else cluster.nodes
        for node in nodes.values():
            node.start()
        for node in nodes.values():
            node.await_started()
        with KafkaTools(folder / "tools") as tools:
            assignment = ",".join(":".join(map(str, replicas)) for replicas in REPLICAS)
            topic = ("--create", "--topic", _TOPIC, "--replica-assignment", assignment)
            cluster.admin(tools, "kafka-topics", *topic)
        yield KraftBrokers(cluster, f"http://{command.pages_address}" if by_kframe else None)
    finally:
        cluster.kill()
        command.kill()


def _fenced_ms(log: CommittedLog, broker_id: int) -> int:
    """The time of the next record that fences a broker."""
    while True:
        for batch in log.poll():
            for _, record, _ in batch.records:
                if (
                    isinstance(record, records.BrokerRegistrationChangeRecord)
                    and record.broker_id == broker_id
                    and record.fenced == records.FencingChange.FENCE.value
                ):
                    return batch.time_ms


def _await_in_sync(address: str) -> None:
    """Return when a broker knows all replicas as in sync."""

    def are_in_sync() -> bool:
        partitions = metadata_of(address)[2]
        states = [state for name, state in partitions.items() if name.startswith(f"{_TOPIC}-")]
        return len(states) == len(REPLICAS) and all(len(isr) == len(replicas) for _, isr, replicas in states)

    wait_until(are_in_sync, lambda: str(metadata_of(address)))
