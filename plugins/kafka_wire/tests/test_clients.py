"""Clients of three makes do their ordinary work on real brokers, with ``kframe controller run`` as their controller."""

from __future__ import annotations

import json
import re
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sized
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any, Final

import pytest
from kazoo.client import KazooClient
from kazoo.exceptions import NoNodeError
from kframe_kafka_wire.testing.client import Client
from kframe_kafka_wire.testing.clients import AnyClient, JavaClient, KafkaPython, Librdkafka
from kframe_kafka_wire.testing.instances import PATIENCE_S, Instance
from kframe_zookeeper.testing.handover import SESSION_S
from kframe_zookeeper.testing.java import missing
from kframe_zookeeper.testing.kafka import Cluster
from kframe_zookeeper.testing.process import until
from kframe_zookeeper.testing.servers import ServerHandle

pytestmark = pytest.mark.skipif(missing() is not None, reason=str(missing()))

US: Final = 1000
INTERNAL: Final = 6
#: What whoever creates a topic by itself gives it: a broker, or kframe where it is asked for metadata.
SIZES: Final = {"auto.create.topics.enable": "true", "num.partitions": "4", "default.replication.factor": "3"}
#: Only brokers know how large internal topics are, so that they have to create them.
SETTINGS: Final = {
    **SIZES, "offsets.topic.num.partitions": str(INTERNAL), "transaction.state.log.num.partitions": str(INTERNAL),
    "group.initial.rebalance.delay.ms": "0",
}  # fmt: skip
#: Makes of clients, and the module that each needs.
MAKES: Final[Mapping[str, tuple[Callable[[Path, str], AnyClient], str]]] = {
    "java": (JavaClient, "kazoo"), "librdkafka": (Librdkafka, "confluent_kafka"), "kafka-python": (KafkaPython, "kafka")
}  # fmt: skip


class World:
    """Brokers, kframe, and what stands in ZooKeeper."""

    def __init__(self, folder: Path, zookeeper: str, version: str, protocol: str) -> None:
        self.folder = folder
        spoken = {"inter.broker.protocol.version": protocol}
        self.cluster = Cluster(folder, zookeeper, settings={**SETTINGS, **spoken}, version=version)
        self.kframe = Instance(zookeeper, folder / "kframe", US, settings={**SIZES, **spoken})
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
        while not self._over.is_set():
            for address in self._world.nodes:
                with suppress(OSError):  # a broker is down for a moment
                    told = partitions(address)
                    self.answered[address] += 1
                    if offline := [name for name, leader, _ in told if leader < 0]:
                        self.offline.append((address, offline))


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


#: Release of the brokers, and the inter-broker protocol.
NEWEST: Final = ("3.9.1", "3.9")
OTHERS: Final = [("3.9.1", "2.8"), ("3.9.1", "2.4"), ("2.8.2", "2.8")]


def spelled(which: tuple[str, str]) -> str:
    return "-speaking-".join(which)


@pytest.fixture(scope="class")
def world(
    request: pytest.FixtureRequest, zookeeper: ServerHandle, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[World]:
    place = f"{zookeeper.address}/clients-{spelled(request.param)}"
    with World(tmp_path_factory.mktemp("world"), place, *request.param) as world:
        yield world


@pytest.fixture
def java(world: World, tmp_path: Path) -> Iterator[JavaClient]:
    client = JavaClient(tmp_path / "java", world.address)
    yield client
    client.close()


@pytest.mark.parametrize("world", [NEWEST], indirect=True, ids=spelled, scope="class")
class TestOnTheNewestBrokers:
    @pytest.mark.parametrize("make", MAKES)
    def test_a_client_does_its_ordinary_work(self, world: World, java: JavaClient, make: str, tmp_path: Path) -> None:
        if make == "java":
            ordinary_work(world, java, java, make)
            return
        kind, needs = MAKES[make]
        pytest.importorskip(needs)
        client = kind(tmp_path / "client", world.address)
        try:
            ordinary_work(world, client, java, make)
        finally:
            client.close()

    def test_what_brokers_create_themselves_has_no_place_for_us(self, world: World, java: JavaClient) -> None:
        nothing_is_ours(world, java)

    def test_brokers_are_restarted_one_by_one_under_a_producer(
        self, world: World, java: JavaClient, tmp_path: Path
    ) -> None:
        pytest.importorskip("confluent_kafka")
        client = Librdkafka(tmp_path, world.address)
        client.create("steady", 6, 3)
        client.configure("steady", "min.insync.replicas", "2")
        await_settled(client, "steady", 6, 3)
        with Sampler(world) as sampler, client.producing("steady") as sent:
            for broker in world.cluster.brokers.values():
                await_more(sent, 1_000)
                broker.stop()
                assert broker.log("server").count("Controlled shutdown request returned successfully") == 1
                broker.start()
                broker.await_started()
                assert until(lambda: all(whole for *_, whole in partitions(world.kframe.address)), PATIENCE_S)
        assert sampler.offline == []
        assert set(sampler.answered) == set(world.nodes)
        assert {error for _, error in sent} == {None}
        assert len(sent) > 3_000
        found = Counter(value for values in java.all_values("steady").values() for value in values)
        acknowledged = Counter(value for value, _ in sent)
        assert {"lost": acknowledged - found, "found twice": found - acknowledged} == {"lost": {}, "found twice": {}}


@pytest.mark.parametrize("world", OTHERS, indirect=True, ids=spelled, scope="class")
class TestOnOtherBrokers:
    def test_a_client_does_its_ordinary_work(self, world: World, java: JavaClient) -> None:
        ordinary_work(world, java, java, "java")

    def test_what_brokers_create_themselves_has_no_place_for_us(self, world: World, java: JavaClient) -> None:
        nothing_is_ours(world, java)


def ordinary_work(world: World, client: AnyClient, java: JavaClient, name: str) -> None:
    """``java`` moves what ``client`` cannot move."""
    topic, auto = f"ordered-{name}", f"auto-{name}"

    client.create(topic, 3, 2)
    await_settled(client, topic, 3, 2)
    client.produce(topic, numbered("a", 20))
    assert sorted(client.consume("readers", topic, 20)) == numbered("a", 20)
    client.transact(f"txn-{name}", topic, numbered("b", 10), numbered("never", 10))
    assert sorted(client.consume("readers", topic, 10)) == numbered("b", 10)
    client.produce(auto, numbered("c", 10))
    assert sorted(client.consume("others", auto, 10)) == numbered("c", 10)
    await_settled(client, auto, 4, 3)

    client.grow(topic, 5)
    await_settled(client, topic, 5, 2)
    leader, replicas, _ = client.describe()[topic][0]
    (third,) = {1, 2, 3} - set(replicas)
    mover = client if client.reassigns else java
    mover.reassign(topic, 0, [third, leader])
    assert until(lambda: not mover.reassignments(), PATIENCE_S)
    assert world.assignment(topic)[0] == [third, leader]
    assert until(lambda: sorted(client.describe()[topic][0][2]) == sorted([third, leader]), PATIENCE_S)
    assert world.state(topic, 0)["leader"] == leader
    client.elect(topic, 0)
    assert world.state(topic, 0)["leader"] == third
    client.configure(topic, "max.message.bytes", "54321")
    assert until(lambda: "54321" in str(client.configs(topic)), PATIENCE_S)
    client.produce(topic, numbered("d", 20))
    assert sorted(client.consume("readers", topic, 20)) == numbered("d", 20)

    client.delete(topic)
    assert until(lambda: topic not in client.describe(), PATIENCE_S)
    assert until(lambda: not world.assignment(topic), PATIENCE_S)


def nothing_is_ours(world: World, java: JavaClient) -> None:
    """Brokers count us among themselves; a topic of three replicas on four nodes would have most partitions on us."""
    java.produce("made-by-a-broker", numbered("a", 4))
    java.transact("maker", "made-by-a-broker", numbered("b", 4), numbered("never", 4))
    assert sorted(java.consume("makers", "made-by-a-broker", 8)) == [*numbered("a", 4), *numbered("b", 4)]
    own = {"made-by-a-broker": 4, "__consumer_offsets": INTERNAL, "__transaction_state": INTERNAL}
    names = {f"{topic}-{number}" for topic, count in own.items() for number in range(count)}

    def whole(address: str) -> bool:
        return names <= {name for name, leader, in_sync in partitions(address) if leader >= 0 and in_sync}

    for address in (world.kframe.address, *world.addresses):
        assert until(partial(whole, address), PATIENCE_S), partitions(address)
    for topic, count in own.items():
        stored = world.assignment(topic)
        assert len(stored) == count
        assert all(set(one) == {1, 2, 3} for one in stored.values()), stored
        assert all(set(world.state(topic, number)["isr"]) == {1, 2, 3} for number in stored)
    for topic in ("__consumer_offsets", "__transaction_state"):
        assert re.search(rf"assigned to what is no broker, and are given to brokers: {topic}-", world.kframe.changes)
    assert "were assigned to what is no broker; 0 get fewer replicas" in world.kframe.log


def numbered(letter: str, count: int) -> list[str]:
    return [f"{letter}{number:02}" for number in range(count)]


def await_told(world: World, enough: Callable[[Mapping[str, Any]], bool]) -> None:
    """Wait until what each node answers to Metadata is enough."""
    assert until(lambda: all(enough(metadata(node)) for node in world.nodes), PATIENCE_S)


def await_more(sent: Sized, count: int) -> None:
    """Wait until so many more are there."""
    enough = len(sent) + count
    assert until(lambda: len(sent) >= enough, PATIENCE_S)


def await_settled(client: AnyClient, topic: str, count: int, factor: int) -> None:
    """Wait until all replicas of all partitions are there, in sync, on brokers, and one of each leads."""

    def settled() -> bool:
        found = client.describe().get(topic, {})
        return len(found) == count and all(
            leader in isr and sorted(isr) == sorted(replicas) and len(replicas) == factor and set(replicas) <= {1, 2, 3}
            for leader, replicas, isr in found.values()
        )

    assert until(settled, PATIENCE_S), client.describe().get(topic)
