"""Clients of three makes and Kafka's tools do their ordinary work on real brokers of each release and protocol, with
``kframe controller run`` as their controller; then the brokers are restarted one by one."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sized
from functools import partial
from pathlib import Path
from typing import Final

import pytest
from kframe_kafka_wire.testing.clients import AnyClient, JavaClient, KafkaPython, Librdkafka
from kframe_kafka_wire.testing.clusters import agree, create, knows
from kframe_kafka_wire.testing.instances import PATIENCE_S
from kframe_kafka_wire.testing.moves import a_half_dead_broker_is_moved_to, a_move_ends, a_move_is_given_up
from kframe_kafka_wire.testing.odd_frames import NEVER_WHOLE, WAYS, answers, odd_frames
from kframe_kafka_wire.testing.tool_work import ordinary_tool_work
from kframe_kafka_wire.testing.tools import ToolBox, Tools
from kframe_kafka_wire.testing.worlds import (
    INTERNAL,
    SETUPS,
    Sampler,
    World,
    metadata,
    partitions,
    spelled,
)
from kframe_zookeeper.testing.java import missing
from kframe_zookeeper.testing.process import until
from kframe_zookeeper.testing.servers import ServerHandle

pytestmark = pytest.mark.skipif(missing() is not None, reason=str(missing()))

#: Makes of clients, and the module that each needs.
MAKES: Final[Mapping[str, tuple[Callable[[Path, str], AnyClient], str]]] = {
    "java": (JavaClient, "kazoo"), "librdkafka": (Librdkafka, "confluent_kafka"), "kafka-python": (KafkaPython, "kafka")
}  # fmt: skip
#: What brokers log of a controlled shutdown, 2.8 and 3.9.
SHUT_DOWN: Final = re.compile("Controlled shutdown (?:succeeded|request returned successfully)")
#: How much a process may grow by frames that are none, in KiB.
GROWTH_KIB: Final = 64 * 1024


@pytest.fixture(scope="class")
def world(
    request: pytest.FixtureRequest, zookeeper: ServerHandle, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[World]:
    place = f"{zookeeper.address}/clients-{spelled(request.param)}"
    with World(tmp_path_factory.mktemp("world"), place, *request.param) as world:
        yield world


@pytest.fixture(scope="class")
def java(world: World, tmp_path_factory: pytest.TempPathFactory) -> Iterator[JavaClient]:
    client = JavaClient(tmp_path_factory.mktemp("java") / "tool", world.address)
    yield client
    client.close()


@pytest.mark.parametrize("world", SETUPS, indirect=True, ids=spelled, scope="class")
class TestOnBrokers:
    def test_they_follow(self, world: World) -> None:
        before = set(world.cluster.complaints())
        create(world.client, "t", [[1, 2, 3], [2, 3, 1], [3, 1, 2], [1, 3, 2]])
        create(world.client, "gone", [[3], [2, 1]])
        known = {
            "t-0": (1, [1, 2, 3], [1, 2, 3]), "t-1": (2, [2, 3, 1], [2, 3, 1]), "t-2": (3, [3, 1, 2], [3, 1, 2]),
            "t-3": (1, [1, 3, 2], [1, 3, 2]), "gone-0": (3, [3], [3]), "gone-1": (2, [2, 1], [2, 1]),
        }  # fmt: skip
        assert agree(world.cluster, known)

        world.cluster.lose(1, world.client)
        known |= {
            "t-0": (2, [2, 3], [1, 2, 3]), "t-1": (2, [2, 3], [2, 3, 1]), "t-2": (3, [3, 2], [3, 1, 2]),
            "t-3": (3, [3, 2], [1, 3, 2]), "gone-1": (2, [2], [2, 1]),
        }  # fmt: skip
        assert agree(world.cluster, known, (2, 3))

        world.cluster.start()
        world.client.create("/admin/delete_topics/gone")
        assert until(lambda: not world.assignment("gone"), PATIENCE_S)
        brokers = world.cluster.brokers.values()
        left = ["t-0", "t-1", "t-2", "t-3"]
        assert until(lambda: all(sorted(knows(one)[2]) == left for one in brokers), PATIENCE_S)
        assert until(lambda: not any(list((one.folder / "data").glob("gone-?")) for one in brokers), PATIENCE_S)
        new = set(world.cluster.complaints()) - before
        assert [one for one in new if one.log == "state-change"] == []
        world.client.create("/admin/delete_topics/t")
        assert until(lambda: not world.assignment("t"), PATIENCE_S)

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

    def test_kafkas_tools_do_theirs(self, world: World, toolbox: ToolBox, tmp_path: Path) -> None:
        ordinary_tool_work(Tools(toolbox, tmp_path, world.address), world)

    def test_what_brokers_create_themselves_has_no_place_for_us(self, world: World, java: JavaClient) -> None:
        nothing_is_ours(world, java)

    def test_a_move_ends_with_the_target_in_sync_and_nobody_else(self, world: World) -> None:
        a_move_ends(world)

    def test_a_broker_with_a_dead_directory_is_moved_to(self, world: World) -> None:
        a_half_dead_broker_is_moved_to(world)

    def test_a_move_that_is_given_up_leaves_no_files(self, world: World) -> None:
        a_move_is_given_up(world)

    def test_frames_that_are_none_disturb_nobody(self, world: World) -> None:
        before, largest = seen(world), world.kframe.memory_kib
        for way in WAYS:
            answered = {api_key for api_key, frame in odd_frames(way, 7) if answers(world.kframe.address, frame)}
            assert not answered or way not in NEVER_WHOLE
        assert seen(world) == before
        assert world.kframe.memory_kib - largest <= GROWTH_KIB

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
                assert len(SHUT_DOWN.findall(broker.log("server"))) == 1
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
        assert re.search(rf"were assigned to what is no broker; 0 get fewer replicas: .*{topic}-", world.kframe.log)


def seen(world: World) -> tuple[object, ...]:
    """Who is controller since when, whom each node takes for that, and which partitions are where."""
    topics = sorted(world.client.get_children("/brokers/topics"))
    assignments = [(topic, world.assignment(topic)) for topic in topics]
    told = [metadata(node)["controller_id"] for node in world.nodes]
    return world.client.get("/controller")[1].czxid, told, assignments


def numbered(letter: str, count: int) -> list[str]:
    return [f"{letter}{number:02}" for number in range(count)]


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
