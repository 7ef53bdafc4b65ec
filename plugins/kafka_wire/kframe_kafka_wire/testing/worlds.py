"""Real brokers of any release with ``kframe controller run`` as their controller, and who looks at all of them."""

from __future__ import annotations

import json
import threading
import time
from collections import Counter
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

from kazoo.client import KazooClient
from kazoo.exceptions import NoNodeError
from kframe_zookeeper.testing.handover import SESSION_S
from kframe_zookeeper.testing.kafka import Cluster
from kframe_zookeeper.testing.process import until

from kframe_kafka_wire.testing.client import Client
from kframe_kafka_wire.testing.instances import PATIENCE_S, Instance

US: Final = 1000
INTERNAL: Final = 6
#: What whoever creates a topic by itself gives it: a broker, or kframe where it is asked for metadata.
SIZES: Final = {"auto.create.topics.enable": "true", "num.partitions": "4", "default.replication.factor": "3"}
#: Only brokers know how large internal topics are, so that they have to create them.
SETTINGS: Final = {
    **SIZES, "offsets.topic.num.partitions": str(INTERNAL), "transaction.state.log.num.partitions": str(INTERNAL),
    "group.initial.rebalance.delay.ms": "0", "zookeeper.session.timeout.ms": "8000",
    # A replica that is held back stays so for an hour; the files of one that is deleted go at once.
    "replication.quota.window.num": "3600", "log.segment.delete.delay.ms": "100",
}  # fmt: skip
#: How long whoever asks nodes again and again lets them work in between, and how much longer than their answers take.
_PAUSE_S: Final = 0.05
_REST: Final = 2.0
#: Release of the brokers, and the inter-broker protocol.
Setup = tuple[str, str]
NEWEST: Final[Setup] = ("3.9.1", "3.9")
#: What kframe is asked for where brokers are of this release: before 3.4.1 they ignore what stops a replica under the
#: leader epoch that they know, which is all that they hear, from Kafka's controller too, when a move is given up.
OWN: Final[Mapping[str, Mapping[str, str]]] = {"2.8.2": {"kframe.reassignment.strict": "true"}}
SETUPS: Final[list[Setup]] = [NEWEST, ("3.9.1", "2.8"), ("3.9.1", "2.4"), ("2.8.2", "2.8")]


def spelled(setup: Setup) -> str:
    """A name for tests and folders."""
    return "-speaking-".join(setup)


class World:
    """Brokers, kframe, and what stands in ZooKeeper."""

    def __init__(self, folder: Path, zookeeper: str, version: str, protocol: str) -> None:
        """A release of Kafka, and the inter-broker protocol; entering starts all of it."""
        self.folder = folder
        spoken = {"inter.broker.protocol.version": protocol}
        self.settings = {**SETTINGS, **spoken}
        self.cluster = Cluster(folder, zookeeper, settings=self.settings, version=version)
        self.kframe = Instance(
            zookeeper, folder / "kframe", US, "--create-chroot",
            settings={**SIZES, **spoken, **OWN.get(version, {})},
        )  # fmt: skip
        self.client = KazooClient(zookeeper, timeout=SESSION_S)

    def __enter__(self) -> World:
        try:
            self.kframe.await_ready(active=True)
            self.cluster.start()
            self.client.start()
            # Brokers listen before they are told of each other, and librdkafka does not ask such a one again.
            await_told(self, lambda told: len(told["brokers"]) == len(self.nodes))
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.cluster.kill()
        self.kframe.kill()
        self.client.stop()
        self.client.close()

    @property
    def addresses(self) -> list[str]:
        """Where the brokers are."""
        return [broker.address for broker in self.cluster.brokers.values()]

    @property
    def nodes(self) -> list[str]:
        """Where kframe and the brokers are."""
        return [self.kframe.address, *self.addresses]

    @property
    def address(self) -> str:
        """Where clients connect: to kframe as well as to any broker."""
        return ",".join(self.nodes)

    def assignment(self, topic: str) -> dict[int, list[int]]:
        """Replicas by partition, as stored; nothing for no such topic."""
        with suppress(NoNodeError):
            stored = json.loads(self.client.get(f"/brokers/topics/{topic}")[0])
            return {int(number): replicas for number, replicas in stored["partitions"].items()}
        return {}

    def state(self, topic: str, partition: int) -> dict[str, Any]:
        """The state of a partition, as stored."""
        stored = self.client.get(f"/brokers/topics/{topic}/partitions/{partition}/state")[0]
        return dict(json.loads(stored))


class Sampler:
    """Asks all nodes for all partitions, again and again, while the block runs."""

    def __init__(self, world: World) -> None:
        self.answered: Counter[str] = Counter()
        self.offline: list[tuple[str, list[str]]] = []
        self._world = world
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run)

    def __enter__(self) -> Sampler:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()

    def _run(self) -> None:
        # With a pause: the brokers have to share two cores with it.
        took_s = 0.0
        while not self._over.wait(max(_PAUSE_S, _REST * took_s)):
            begun_s = time.monotonic()
            for address in self._world.nodes:
                with suppress(OSError):  # a broker is down for a moment
                    told = partitions(address)
                    self.answered[address] += 1
                    if offline := [name for name, leader, _ in told if leader < 0]:
                        self.offline.append((address, offline))
            took_s = time.monotonic() - begun_s


def metadata(address: str) -> Mapping[str, Any]:
    """A node's answer to Metadata for all topics."""
    with Client(address) as client:
        return client.ask(3, 9, topics=None, allow_auto_topic_creation=False)


def partitions(address: str) -> list[tuple[str, int, bool]]:
    """All partitions as a node tells of them: name, leader (-1 for none), and whether all replicas are in sync."""
    told = metadata(address)
    return [
        (
            f"{topic['name']}-{one['partition_index']}",
            -1 if one["error_code"] else one["leader_id"],
            len(one["isr_nodes"]) == len(one["replica_nodes"]),
        )
        for topic in told["topics"]
        for one in topic["partitions"]
    ]


def await_told(world: World, enough: Callable[[Mapping[str, Any]], bool]) -> None:
    """Wait until what each node answers to Metadata is enough."""
    assert until(lambda: all(enough(metadata(node)) for node in world.nodes), PATIENCE_S)
