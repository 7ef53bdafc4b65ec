"""Clusters of real Kafka 3.9.1 brokers whose controller is now Kafka's own, now kframe, on one ZooKeeper.

kframe records here what it would send, so brokers hear nothing from it. What it has written to ZooKeeper they learn
from Kafka's controller, which reads all of that when it takes the role back.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

import pytest
from kframe_zookeeper import paths
from kframe_zookeeper.testing.commands import ControllerRun
from kframe_zookeeper.testing.handover import (
    ALL,
    OURS,
    PATIENCE_S,
    USUAL,
    World,
    eventually,
    kframe,
    rises,
    running_world,
)
from kframe_zookeeper.testing.process import until
from kframe_zookeeper.testing.servers import ServerHandle


@pytest.fixture(scope="module")
def running(zookeeper: ServerHandle, tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    """Three brokers, Kafka's own controller among them."""
    folder = tmp_path_factory.mktemp("handover")
    # A broker that is frozen stays registered while kframe starts; one that is killed is missed a little later.
    settings = {"zookeeper.session.timeout.ms": "20000"}
    with running_world(f"{zookeeper.address}/handover", folder, settings) as world:
        yield world


@pytest.fixture
def world(running: World) -> Iterator[World]:
    """The cluster with all brokers up and one of them controller. They must complain of nothing but the usual."""
    running.cluster.start()
    assert until(lambda: running.controller()[0] in ALL, PATIENCE_S)
    before = set(running.cluster.complaints())
    yield running
    for contender in running.contenders:
        contender.kill()
    for broker in running.cluster.brokers.values():
        if broker.pid is not None:
            broker.resume()
    new = [one for one in running.cluster.complaints() if one not in before]
    assert [one for one in new if not USUAL.match(one.message)] == []


def by_kframe(world: World) -> Callable[[], int]:
    """kframe takes the role; called later, it resigns and a broker takes over."""
    contender = world.take_over()
    _, controller_epoch = world.controller()
    found = kframe("controller", "status", "--zookeeper", world.cluster.zookeeper)
    assert (found["controller_id"], found["controller_epoch"], found["brokers"], found["quarantined"]) == (
        OURS, controller_epoch, ALL, [],
    )  # fmt: skip

    def give_back() -> int:
        assert contender.stop(PATIENCE_S) == 0, contender.log
        assert "Resigned: asked to resign" in contender.log
        return world.await_kafka(controller_epoch + 1)

    return give_back


def by_kafka(world: World) -> Callable[[], int]:
    """The control: brokers take the role from each other."""

    def depose() -> int:
        controller_id, controller_epoch = world.controller()
        kframe("controller", "resign", "--zookeeper", world.cluster.zookeeper, "--id", controller_id)
        return world.await_kafka(controller_epoch + 1)

    depose()
    return depose


class Topics(NamedTuple):
    """What one story is about, with a suffix that tells stories apart."""

    orders: str
    """Six partitions, each on all brokers in another order."""
    lone: str
    """One partition, on broker 3 only."""
    moving: str
    """One partition, from 1 and 3 to 1 and 2."""
    risky: str
    """One partition, from 3 to 3 and 1, that may have a leader that is behind."""
    turned: str
    """One partition, on 1 and 2, then preferably led by 2."""
    doomed: str
    """One partition, on 1 and 2, to be deleted."""
    left: str
    """Two partitions, written to ZooKeeper without an id, as tools of Kafka 2.7 did; then three."""


def prepare(world: World, topics: Topics) -> dict[str, list[str]]:
    """Have Kafka make the topics, and fill them; returns what is in ``orders``, by partition."""
    replicas = [[1, 2, 3], [2, 3, 1], [3, 1, 2], [1, 3, 2], [2, 1, 3], [3, 2, 1]]
    world.create(topics.orders, replicas)
    world.create(topics.lone, [[3]])
    world.create(topics.moving, [[1, 3]])
    world.create(topics.risky, [[3]])
    world.create(topics.turned, [[1, 2]])
    world.create(topics.doomed, [[1, 2]])
    values = {str(partition): [f"{partition}.{number}" for number in range(20)] for partition in range(len(replicas))}
    for partition, ours in values.items():
        world.produce(topics.orders, int(partition), *ours)
    world.produce(topics.lone, 0, "only on 3")
    world.produce(topics.moving, 0, "before the move")
    return values


def change(world: World, topics: Topics) -> None:
    """Ask the controller for all that it can do without an answer of a broker, then kill one."""
    world.tool.ask("configure", topic=topics.orders, key="min.insync.replicas", value="2")
    world.put(f"/brokers/topics/{topics.left}", {"version": 1, "partitions": {"0": [1, 2, 3], "1": [2, 3, 1]}})
    eventually((2, [2, 3, 1]), world.leader_and_isr, topics.left, 1)
    world.grow(topics.left, [3, 1, 2])
    eventually((3, [3, 1, 2]), world.leader_and_isr, topics.left, 2)
    world.move({topics.turned: [2, 1], topics.moving: [1, 2], topics.risky: [3, 1]})
    eventually([2, 1], world.replicas, topics.turned)
    assert world.leader_and_isr(topics.turned) == (1, [1, 2])
    world.elect_preferred(topics.turned)
    eventually((2, [1, 2]), world.leader_and_isr, topics.turned)
    world.put(f"/admin/delete_topics/{topics.doomed}", None)
    world.cluster.lose(3, world.client)
    without_3 = [(1, [1, 2]), (2, [2, 1]), (1, [1, 2]), (1, [1, 2]), (2, [2, 1]), (2, [2, 1])]
    eventually(without_3, lambda: [world.leader_and_isr(topics.orders, partition) for partition in range(6)])
    eventually((-1, [3]), world.leader_and_isr, topics.lone)
    world.tool.ask("configure", topic=topics.risky, key="unclean.leader.election.enable", value="true")
    eventually((1, [1]), world.leader_and_isr, topics.risky)


@pytest.mark.parametrize("take", [by_kframe, by_kafka])
def test_kafka_ends_what_was_begun(world: World, take: Callable[[World], Callable[[], int]]) -> None:
    topics = Topics(*(f"{topic}-{take.__name__}" for topic in Topics._fields))
    values = prepare(world, topics)
    before = world.states()

    give_back = take(world)
    values["0"].append("while the role was away")
    world.produce(topics.orders, 0, values["0"][-1])
    change(world, topics)
    between = world.states()
    rises(before, between)
    assert world.unlike_kafkas() == {}

    give_back()
    world.await_agreement()
    eventually(None, world.client.exists, f"/brokers/topics/{topics.doomed}")
    eventually([1, 2], world.replicas, topics.moving)
    values["2"].append("without broker 3")
    world.produce(topics.orders, 2, values["2"][-1])

    world.cluster.brokers[3].start()
    eventually([ALL] * 6, lambda: [sorted(one["isr"]) for one in world.states()[topics.orders].values()])
    eventually((3, [3]), world.leader_and_isr, topics.lone)
    eventually([], world.tool.ask, "reassignments")
    assert (world.replicas(topics.moving), world.replicas(topics.risky)) == ([1, 2], [3, 1])
    world.await_agreement()
    rises(between, world.states())
    eventually(values, world.consume, topics.orders)
    eventually({"0": ["only on 3"]}, world.consume, topics.lone)
    eventually({"0": ["before the move"]}, world.consume, topics.moving)
    world.produce(topics.left, 1, "as good as any")
    eventually({"0": [], "1": ["as good as any"], "2": []}, world.consume, topics.left)
    assert world.tool.ask("configs", topic=topics.orders) == {"min.insync.replicas": "2"}
    assert world.unlike_kafkas() == {}


def test_back_and_forth(world: World) -> None:
    """Three times to kframe and back: it is asked to end, killed, and killed with work undone."""
    values: dict[str, list[str]] = {}
    ends: tuple[Callable[[ControllerRun], object], ...] = ControllerRun.stop, ControllerRun.kill, ControllerRun.kill
    for reign, end in enumerate(ends):
        contender = world.take_over()
        before, (_, controller_epoch) = world.states(), world.controller()
        assert world.unlike_kafkas() == {}
        for topic in values:
            *others, first = world.replicas(topic)
            world.move({topic: [first, *others]})
            eventually([first, *others], world.replicas, topic)
            world.elect_preferred(topic)
            eventually((first, ALL), world.leader_and_isr, topic)
            for path in (paths.REASSIGN_PARTITIONS, paths.PREFERRED_ELECTION):
                eventually(None, world.client.exists, path)
        ours = f"ours-{reign}"
        world.put(f"/brokers/topics/{ours}", {"version": 1, "partitions": {"0": [1, 2, 3]}})
        if reign < 2:
            eventually((1, [1, 2, 3]), world.leader_and_isr, ours)
        end(contender)
        world.await_kafka(controller_epoch + 1)
        theirs = f"theirs-{reign}"
        world.create(theirs, [[1, 2, 3]])
        world.await_agreement(ours, theirs, *values)
        values |= {ours: [], theirs: []}
        for topic, sent in values.items():
            sent.append(f"in reign {reign}")
            world.produce(topic, 0, sent[-1])
            eventually({"0": sent}, world.consume, topic)
        rises(before, world.states())
    assert world.unlike_kafkas() == {}


def test_kframe_wakes_up_deposed(world: World) -> None:
    contender = world.take_over()
    _, controller_epoch = world.controller()
    contender.pause()
    world.await_kafka(controller_epoch + 1)
    world.create("while-it-slept", [[1, 2, 3]])
    before = world.tree()
    contender.resume()
    assert until(lambda: "Resigned" in contender.log, PATIENCE_S), contender.log
    world.produce("while-it-slept", 0, "still there")
    contender.stop()
    assert world.tree() == before


def test_kafka_wakes_up_deposed(world: World) -> None:
    controller_id, controller_epoch = world.controller()
    broker = world.cluster.brokers[controller_id]
    resigned = broker.log("controller").count("Resigned")
    broker.pause()
    contender = world.take_over()
    world.put("/brokers/topics/news", {"version": 1, "partitions": {"0": [1, 2, 3]}})
    eventually((1, ALL), world.leader_and_isr, "news")
    broker.resume()
    assert until(lambda: broker.log("controller").count("Resigned") > resigned, PATIENCE_S)
    assert world.controller() == (OURS, controller_epoch + 1)
    assert kframe("controller", "status", "--zookeeper", world.cluster.zookeeper)["quarantined"] == []
    contender.stop()
    world.await_kafka(controller_epoch + 2)
    world.await_agreement()
    assert world.leader_and_isr("news") == (1, ALL)
    world.produce("news", 0, "told")
    eventually({"0": ["told"]}, world.consume, "news")
