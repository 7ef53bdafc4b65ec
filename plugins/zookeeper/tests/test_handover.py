"""Clusters of real Kafka 3.9.1 brokers on one ZooKeeper, with Kafka's own controller and kframe in turn.

kframe uses the recording transport, so brokers receive nothing from it. They learn of its changes when Kafka's
controller takes the role back and reads ZooKeeper.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

import pytest
from kframe_zookeeper.znodes import paths

from kframe.testing.waiting import PATIENCE_S, until
from verification.zookeeper.commands import ControllerRun, kframe_json
from verification.zookeeper.handover import (
    ALL,
    EXPECTED_WARNINGS,
    OURS,
    ClusterFixture,
    eventually,
    rises,
    running_fixture,
)
from verification.zookeeper.servers import ServerHandle


@pytest.fixture(scope="module")
def running(zookeeper: ServerHandle, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ClusterFixture]:
    """Three brokers with Kafka's own controller."""
    folder = tmp_path_factory.mktemp("handover")
    # A frozen broker stays registered while kframe starts. The end of a killed broker is noticed a little later.
    settings = {"zookeeper.session.timeout.ms": "20000"}
    with running_fixture(f"{zookeeper.address}/handover", folder, settings) as fixture:
        yield fixture


@pytest.fixture
def fixture(running: ClusterFixture) -> Iterator[ClusterFixture]:
    """The cluster with all brokers running and one of them controller. Afterwards the logs must have
    EXPECTED_WARNINGS only."""
    running.cluster.start()
    assert until(lambda: running.controller()[0] in ALL)
    before = set(running.cluster.complaints())
    yield running
    for contender in running.contenders:
        contender.kill()
    for broker in running.cluster.brokers.values():
        if broker.pid is not None:
            broker.resume()
    new = [complaint for complaint in running.cluster.complaints() if complaint not in before]
    assert [complaint for complaint in new if not EXPECTED_WARNINGS.match(complaint.message)] == []


def by_kframe(fixture: ClusterFixture) -> Callable[[], int]:
    """Let kframe take the role. The returned function lets kframe resign, so that a broker is elected."""
    contender = fixture.take_over()
    _, controller_epoch = fixture.controller()
    report = kframe_json("controller", "status", "--zookeeper", fixture.cluster.zookeeper)
    assert (report["controller_id"], report["controller_epoch"], report["brokers"], report["quarantined"]) == (
        OURS,
        controller_epoch,
        ALL,
        [],
    )

    def give_back() -> int:
        assert contender.stop(PATIENCE_S) == 0, contender.log
        assert "Resigned: asked to resign" in contender.log
        return fixture.await_kafka(controller_epoch + 1)

    return give_back


def by_kafka(fixture: ClusterFixture) -> Callable[[], int]:
    """The control group: brokers take the role from each other."""

    def depose() -> int:
        controller_id, controller_epoch = fixture.controller()
        kframe_json("controller", "resign", "--zookeeper", fixture.cluster.zookeeper, "--id", controller_id)
        return fixture.await_kafka(controller_epoch + 1)

    depose()
    return depose


class Topics(NamedTuple):
    """The topics of one test, with a unique suffix."""

    orders: str
    """Six partitions with a replica on each broker, in different orders."""
    lone: str
    """One partition, on broker 3 only."""
    moving: str
    """One partition, reassigned from 1 and 3 to 1 and 2."""
    risky: str
    """One partition, reassigned from 3 to 3 and 1, with unclean leader election enabled."""
    turned: str
    """One partition on 1 and 2, for which broker 2 becomes the preferred leader."""
    deleting: str
    """One partition on 1 and 2, which is deleted."""
    untouched: str
    """Two partitions, later three. Written to ZooKeeper without an id, as tools of Kafka 2.7 do."""


def prepare(fixture: ClusterFixture, topics: Topics) -> dict[str, list[str]]:
    """Create the topics by Kafka and produce to them. Return the records of ``orders`` by partition."""
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
    """Request every operation that needs no response of a broker. Then kill a broker."""
    fixture.clients.request("configure", topic=topics.orders, key="min.insync.replicas", value="2")
    fixture.put(f"/brokers/topics/{topics.untouched}", {"version": 1, "partitions": {"0": [1, 2, 3], "1": [2, 3, 1]}})
    eventually((2, [2, 3, 1]), fixture.leader_and_isr, topics.untouched, 1)
    fixture.grow(topics.untouched, [3, 1, 2])
    eventually((3, [3, 1, 2]), fixture.leader_and_isr, topics.untouched, 2)
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
    fixture.clients.request("configure", topic=topics.risky, key="unclean.leader.election.enable", value="true")
    eventually((1, [1]), fixture.leader_and_isr, topics.risky)


@pytest.mark.parametrize("take", [by_kframe, pytest.param(by_kafka, marks=pytest.mark.extended)])
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
    assert fixture.znodes_unlike_kafkas() == {}

    give_back()
    fixture.await_agreement()
    eventually(None, fixture.client.exists, f"/brokers/topics/{topics.deleting}")
    eventually([1, 2], fixture.replicas, topics.moving)
    values["2"].append("without broker 3")
    fixture.produce(topics.orders, 2, values["2"][-1])

    fixture.cluster.brokers[3].start()
    eventually([ALL] * 6, lambda: [sorted(state["isr"]) for state in fixture.states()[topics.orders].values()])
    eventually((3, [3]), fixture.leader_and_isr, topics.lone)
    eventually([], fixture.clients.request, "reassignments")
    assert (fixture.replicas(topics.moving), fixture.replicas(topics.risky)) == ([1, 2], [3, 1])
    fixture.await_agreement()
    rises(between, fixture.states())
    eventually(values, fixture.consume, topics.orders)
    eventually({"0": ["only on 3"]}, fixture.consume, topics.lone)
    eventually({"0": ["before the move"]}, fixture.consume, topics.moving)
    fixture.produce(topics.untouched, 1, "as good as any")
    eventually({"0": [], "1": ["as good as any"], "2": []}, fixture.consume, topics.untouched)
    assert fixture.clients.request("configs", topic=topics.orders) == {"min.insync.replicas": "2"}
    assert fixture.znodes_unlike_kafkas() == {}


@pytest.mark.extended
def test_role_alternates_between_kframe_and_kafka(fixture: ClusterFixture) -> None:
    """Three handovers to kframe and back. They are after SIGTERM, after SIGKILL, and after SIGKILL with pending
    work."""
    values: dict[str, list[str]] = {}
    ends: tuple[Callable[[ControllerRun], object], ...] = ControllerRun.stop, ControllerRun.kill, ControllerRun.kill
    for reign, end in enumerate(ends):
        contender = fixture.take_over()
        before, (_, controller_epoch) = fixture.states(), fixture.controller()
        assert fixture.znodes_unlike_kafkas() == {}
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
    assert fixture.znodes_unlike_kafkas() == {}


def test_deposed_kframe_changes_nothing(fixture: ClusterFixture) -> None:
    contender = fixture.take_over()
    _, controller_epoch = fixture.controller()
    contender.pause()
    fixture.await_kafka(controller_epoch + 1)
    fixture.create("while-it-slept", [[1, 2, 3]])
    before = fixture.tree()
    contender.resume()
    assert until(lambda: "Resigned" in contender.log), contender.log
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
    assert until(lambda: broker.log("controller").count("Resigned") > resigned)
    assert fixture.controller() == (OURS, controller_epoch + 1)
    assert kframe_json("controller", "status", "--zookeeper", fixture.cluster.zookeeper)["quarantined"] == []
    contender.stop()
    fixture.await_kafka(controller_epoch + 2)
    fixture.await_agreement()
    assert fixture.leader_and_isr("news") == (1, ALL)
    fixture.produce("news", 0, "told")
    eventually({"0": ["told"]}, fixture.consume, "news")
