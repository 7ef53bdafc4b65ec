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
    ClusterFixture,
    eventually,
    kframe,
    rises,
    running_fixture,
)
from kframe_zookeeper.testing.process import until
from kframe_zookeeper.testing.servers import ServerHandle


@pytest.fixture(scope="module")
def running(zookeeper: ServerHandle, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ClusterFixture]:
    """Three brokers, Kafka's own controller among them."""
    folder = tmp_path_factory.mktemp("handover")
    # A broker that is frozen stays registered while kframe starts; one that is killed is missed a little later.
    settings = {"zookeeper.session.timeout.ms": "20000"}
    with running_fixture(f"{zookeeper.address}/handover", folder, settings) as fixture:
        yield fixture


@pytest.fixture
def fixture(running: ClusterFixture) -> Iterator[ClusterFixture]:
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
    new = [complaint for complaint in running.cluster.complaints() if complaint not in before]
    assert [complaint for complaint in new if not USUAL.match(complaint.message)] == []


def by_kframe(fixture: ClusterFixture) -> Callable[[], int]:
    """kframe takes the role; called later, it resigns and a broker takes over."""
    contender = fixture.take_over()
    _, controller_epoch = fixture.controller()
    report = kframe("controller", "status", "--zookeeper", fixture.cluster.zookeeper)
    assert (report["controller_id"], report["controller_epoch"], report["brokers"], report["quarantined"]) == (
        OURS, controller_epoch, ALL, [],
    )  # fmt: skip

    def give_back() -> int:
        assert contender.stop(PATIENCE_S) == 0, contender.log
        assert "Resigned: asked to resign" in contender.log
        return fixture.await_kafka(controller_epoch + 1)

    return give_back


def by_kafka(fixture: ClusterFixture) -> Callable[[], int]:
    """The control: brokers take the role from each other."""

    def depose() -> int:
        controller_id, controller_epoch = fixture.controller()
        kframe("controller", "resign", "--zookeeper", fixture.cluster.zookeeper, "--id", controller_id)
        return fixture.await_kafka(controller_epoch + 1)

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
    deleting: str
    """One partition, on 1 and 2, to be deleted."""
    left: str
    """Two partitions, written to ZooKeeper without an id, as tools of Kafka 2.7 did; then three."""


def prepare(fixture: ClusterFixture, topics: Topics) -> dict[str, list[str]]:
    """Have Kafka make the topics, and fill them; returns what is in ``orders``, by partition."""
    replicas = [[1, 2, 3], [2, 3, 1], [3, 1, 2], [1, 3, 2], [2, 1, 3], [3, 2, 1]]
    fixture.create(topics.orders, replicas)
    fixture.create(topics.lone, [[3]])
    fixture.create(topics.moving, [[1, 3]])
    fixture.create(topics.risky, [[3]])
    fixture.create(topics.turned, [[1, 2]])
    fixture.create(topics.deleting, [[1, 2]])
    values = {str(partition): [f"{partition}.{number}" for number in range(20)] for partition in range(len(replicas))}
    for partition, ours in values.items():
        fixture.produce(topics.orders, int(partition), *ours)
    fixture.produce(topics.lone, 0, "only on 3")
    fixture.produce(topics.moving, 0, "before the move")
    return values


def change(fixture: ClusterFixture, topics: Topics) -> None:
    """Request every operation that needs no broker's answer, then kill a broker."""
    fixture.tool.ask("configure", topic=topics.orders, key="min.insync.replicas", value="2")
    fixture.put(f"/brokers/topics/{topics.left}", {"version": 1, "partitions": {"0": [1, 2, 3], "1": [2, 3, 1]}})
    eventually((2, [2, 3, 1]), fixture.leader_and_isr, topics.left, 1)
    fixture.grow(topics.left, [3, 1, 2])
    eventually((3, [3, 1, 2]), fixture.leader_and_isr, topics.left, 2)
    fixture.move({topics.turned: [2, 1], topics.moving: [1, 2], topics.risky: [3, 1]})
    eventually([2, 1], fixture.replicas, topics.turned)
    assert fixture.leader_and_isr(topics.turned) == (1, [1, 2])
    fixture.elect_preferred(topics.turned)
    eventually((2, [1, 2]), fixture.leader_and_isr, topics.turned)
    fixture.put(f"/admin/delete_topics/{topics.deleting}", None)
    fixture.cluster.lose(3, fixture.client)
    without_3 = [(1, [1, 2]), (2, [2, 1]), (1, [1, 2]), (1, [1, 2]), (2, [2, 1]), (2, [2, 1])]
    eventually(without_3, lambda: [fixture.leader_and_isr(topics.orders, partition) for partition in range(6)])
    eventually((-1, [3]), fixture.leader_and_isr, topics.lone)
    fixture.tool.ask("configure", topic=topics.risky, key="unclean.leader.election.enable", value="true")
    eventually((1, [1]), fixture.leader_and_isr, topics.risky)


@pytest.mark.parametrize("take", [by_kframe, by_kafka])
def test_kafka_completes_operations_that_kframe_began(
    fixture: ClusterFixture, take: Callable[[ClusterFixture], Callable[[], int]]
) -> None:
    topics = Topics(*(f"{topic}-{take.__name__}" for topic in Topics._fields))
    values = prepare(fixture, topics)
    before = fixture.states()

    give_back = take(fixture)
    values["0"].append("while the role was away")
    fixture.produce(topics.orders, 0, values["0"][-1])
    change(fixture, topics)
    between = fixture.states()
    rises(before, between)
    assert fixture.unlike_kafkas() == {}

    give_back()
    fixture.await_agreement()
    eventually(None, fixture.client.exists, f"/brokers/topics/{topics.deleting}")
    eventually([1, 2], fixture.replicas, topics.moving)
    values["2"].append("without broker 3")
    fixture.produce(topics.orders, 2, values["2"][-1])

    fixture.cluster.brokers[3].start()
    eventually([ALL] * 6, lambda: [sorted(state["isr"]) for state in fixture.states()[topics.orders].values()])
    eventually((3, [3]), fixture.leader_and_isr, topics.lone)
    eventually([], fixture.tool.ask, "reassignments")
    assert (fixture.replicas(topics.moving), fixture.replicas(topics.risky)) == ([1, 2], [3, 1])
    fixture.await_agreement()
    rises(between, fixture.states())
    eventually(values, fixture.consume, topics.orders)
    eventually({"0": ["only on 3"]}, fixture.consume, topics.lone)
    eventually({"0": ["before the move"]}, fixture.consume, topics.moving)
    fixture.produce(topics.left, 1, "as good as any")
    eventually({"0": [], "1": ["as good as any"], "2": []}, fixture.consume, topics.left)
    assert fixture.tool.ask("configs", topic=topics.orders) == {"min.insync.replicas": "2"}
    assert fixture.unlike_kafkas() == {}


def test_back_and_forth(fixture: ClusterFixture) -> None:
    """Three times to kframe and back: it is asked to end, killed, and killed with work undone."""
    values: dict[str, list[str]] = {}
    ends: tuple[Callable[[ControllerRun], object], ...] = ControllerRun.stop, ControllerRun.kill, ControllerRun.kill
    for reign, end in enumerate(ends):
        contender = fixture.take_over()
        before, (_, controller_epoch) = fixture.states(), fixture.controller()
        assert fixture.unlike_kafkas() == {}
        for topic in values:
            *others, first = fixture.replicas(topic)
            fixture.move({topic: [first, *others]})
            eventually([first, *others], fixture.replicas, topic)
            fixture.elect_preferred(topic)
            eventually((first, ALL), fixture.leader_and_isr, topic)
            for path in (paths.REASSIGN_PARTITIONS, paths.PREFERRED_ELECTION):
                eventually(None, fixture.client.exists, path)
        ours = f"ours-{reign}"
        fixture.put(f"/brokers/topics/{ours}", {"version": 1, "partitions": {"0": [1, 2, 3]}})
        if reign < 2:
            eventually((1, [1, 2, 3]), fixture.leader_and_isr, ours)
        end(contender)
        fixture.await_kafka(controller_epoch + 1)
        theirs = f"theirs-{reign}"
        fixture.create(theirs, [[1, 2, 3]])
        fixture.await_agreement(ours, theirs, *values)
        values |= {ours: [], theirs: []}
        for topic, sent in values.items():
            sent.append(f"in reign {reign}")
            fixture.produce(topic, 0, sent[-1])
            eventually({"0": sent}, fixture.consume, topic)
        rises(before, fixture.states())
    assert fixture.unlike_kafkas() == {}


def test_deposed_kframe_changes_nothing(fixture: ClusterFixture) -> None:
    contender = fixture.take_over()
    _, controller_epoch = fixture.controller()
    contender.pause()
    fixture.await_kafka(controller_epoch + 1)
    fixture.create("while-it-slept", [[1, 2, 3]])
    before = fixture.tree()
    contender.resume()
    assert until(lambda: "Resigned" in contender.log, PATIENCE_S), contender.log
    fixture.produce("while-it-slept", 0, "still there")
    contender.stop()
    assert fixture.tree() == before


def test_deposed_kafka_controller_changes_nothing(fixture: ClusterFixture) -> None:
    controller_id, controller_epoch = fixture.controller()
    broker = fixture.cluster.brokers[controller_id]
    resigned = broker.log("controller").count("Resigned")
    broker.pause()
    contender = fixture.take_over()
    fixture.put("/brokers/topics/news", {"version": 1, "partitions": {"0": [1, 2, 3]}})
    eventually((1, ALL), fixture.leader_and_isr, "news")
    broker.resume()
    assert until(lambda: broker.log("controller").count("Resigned") > resigned, PATIENCE_S)
    assert fixture.controller() == (OURS, controller_epoch + 1)
    assert kframe("controller", "status", "--zookeeper", fixture.cluster.zookeeper)["quarantined"] == []
    contender.stop()
    fixture.await_kafka(controller_epoch + 2)
    fixture.await_agreement()
    assert fixture.leader_and_isr("news") == (1, ALL)
    fixture.produce("news", 0, "told")
    eventually({"0": ["told"]}, fixture.consume, "news")
