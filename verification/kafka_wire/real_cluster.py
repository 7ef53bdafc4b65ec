"""Real brokers of any release with ``kframe controller run`` as their controller."""

from __future__ import annotations

import json
import threading
import time
from collections import Counter
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, Final, Self

from kazoo.client import KazooClient
from kazoo.exceptions import NoNodeError

from kframe.testing.waiting import until
from verification.kafka_wire.broker_metadata import metadata_of
from verification.kafka_wire.instances import InstanceProcess
from verification.zookeeper.kafka import Cluster
from verification.zookeeper.sessions import SESSION_S

CONTROLLER_ID: Final = 1000
INTERNAL: Final = 6
#: Defaults of automatically created topics, of brokers and of kframe.
SIZES: Final = {"auto.create.topics.enable": "true", "num.partitions": "4", "default.replication.factor": "3"}
#: The sizes of internal topics are set on brokers only.
SETTINGS: Final = {
    **SIZES,
    "offsets.topic.num.partitions": str(INTERNAL),
    "transaction.state.log.num.partitions": str(INTERNAL),
    "group.initial.rebalance.delay.ms": "0",
    "zookeeper.session.timeout.ms": "8000",
    # A throttled replica stays out of sync for an hour. Deleted logs are removed at once.
    "replication.quota.window.num": "3600",
    "log.segment.delete.delay.ms": "100",
}
#: The shortest pause between two samples of all nodes, and the pause in relation to a sample's duration.
_PAUSE_S: Final = 0.2
_REST: Final = 2.0
#: Release of the brokers, and the inter-broker protocol.
Setup = tuple[str, str]
NEWEST: Final[Setup] = ("3.9.1", "3.9")
#: kframe's settings by release of the brokers.
#:
#: Before 3.4.1 brokers ignore a StopReplica with the current leader epoch. Kafka's controller sends such a request,
#: too, when a reassignment is cancelled.
OWN: Final[Mapping[str, Mapping[str, str]]] = {"2.8.2": {"kframe.reassignment.strict": "true"}}
OLDEST: Final[Setup] = ("2.8.2", "2.8")
SETUPS: Final[list[Setup]] = [NEWEST, ("3.9.1", "2.8"), ("3.9.1", "2.4"), OLDEST]


def setup_id(setup: Setup) -> str:
    """The name of a setup in test ids and folders."""
    return "-speaking-".join(setup)


class KframeCluster:
    """Brokers and kframe, which run in the context, and a client of ZooKeeper. kframe becomes active first."""

    def __init__(self, folder: Path, kafka: Cluster, kframe: InstanceProcess) -> None:
        self.folder = folder
        self.kafka = kafka
        self.kframe = kframe
        self.client = KazooClient(kafka.zookeeper, timeout=SESSION_S)

    def __enter__(self) -> Self:
        try:
            self.kframe.await_ready(active=True)
            self.kafka.start()
            self.client.start()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.kafka.kill()
        self.kframe.kill()
        self.client.stop()
        self.client.close()

    def assignment(self, topic: str) -> dict[int, list[int]]:
        """Stored replicas by partition. Empty for a missing topic."""
        with suppress(NoNodeError):
            stored = json.loads(self.client.get(f"/brokers/topics/{topic}")[0])
            return {int(number): replicas for number, replicas in stored["partitions"].items()}
        return {}

    def state(self, topic: str, partition: int) -> dict[str, Any]:
        """The stored state of a partition."""
        stored = self.client.get(f"/brokers/topics/{topic}/partitions/{partition}/state")[0]
        return dict(json.loads(stored))

    def leader(self, topic: str, partition: int) -> int:
        """The stored leader of a partition."""
        return int(self.state(topic, partition)["leader"])


class RealCluster(KframeCluster):
    """Brokers of any release without security."""

    def __init__(self, folder: Path, zookeeper: str, version: str, protocol: str) -> None:
        """``version`` is the release, ``protocol`` the inter-broker protocol."""
        self.setup: Setup = (version, protocol)
        spoken = {"inter.broker.protocol.version": protocol}
        self.settings = {**SETTINGS, **spoken}
        kafka = Cluster(folder, zookeeper, settings=self.settings, version=version)
        kframe = InstanceProcess(
            zookeeper,
            folder / "kframe",
            CONTROLLER_ID,
            "--create-chroot",
            settings={**SIZES, **spoken, **OWN.get(version, {})},
        )
        super().__init__(folder, kafka, kframe)

    @property
    def addresses(self) -> list[str]:
        """Addresses of the brokers."""
        return [broker.address for broker in self.kafka.brokers.values()]

    @property
    def nodes(self) -> list[str]:
        """Addresses of kframe and the brokers."""
        return [self.kframe.address, *self.addresses]

    @property
    def address(self) -> str:
        """Bootstrap servers: kframe and all brokers."""
        return ",".join(self.nodes)

    def await_nodes(self) -> None:
        """Wait until each node knows all nodes."""
        assert until(lambda: all(len(metadata_of(node)[1]) == len(self.nodes) for node in self.nodes))


class Sampler:
    """Samples all nodes' metadata while the block runs."""

    def __init__(self, cluster: RealCluster) -> None:
        self.respond: Counter[str] = Counter()
        self.offline: list[tuple[str, list[str]]] = []
        self._cluster = cluster
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run)

    def __enter__(self) -> Sampler:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()

    def _run(self) -> None:
        # The pause leaves CPU to the brokers on the same cores.
        took_s = 0.0
        while not self._over.wait(max(_PAUSE_S, _REST * took_s)):
            start_s = time.monotonic()
            for address in self._cluster.nodes:
                with suppress(OSError):  # A broker may be down.
                    states = partitions(address)
                    self.respond[address] += 1
                    if offline := [name for name, leader, _ in states if leader < 0]:
                        self.offline.append((address, offline))
            took_s = time.monotonic() - start_s


def partitions(address: str) -> list[tuple[str, int, bool]]:
    """All partitions in a node's metadata: name, and leader (-1 for none). Also whether all replicas are in sync."""
    _, _, known = metadata_of(address)
    return [(name, leader, len(isr) == len(replicas)) for name, (leader, isr, replicas) in known.items()]
