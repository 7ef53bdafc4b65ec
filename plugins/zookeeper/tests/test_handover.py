"""Clusters of real Kafka 3.9.1 brokers whose controller is now Kafka's own, now kframe, on one ZooKeeper.

kframe records here what it would send, so brokers hear nothing from it. What it has written to ZooKeeper they learn
from Kafka's controller, which reads all of that when it takes the role back.
"""

from __future__ import annotations

import itertools
import json
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, NamedTuple

import pytest
from kazoo.client import KazooClient
from kazoo.exceptions import NoNodeError
from kframe_zookeeper import paths
from kframe_zookeeper.testing.kafka import Cluster, KafkaError, Tool
from kframe_zookeeper.testing.process import Process, until
from kframe_zookeeper.testing.servers import ServerHandle

PATIENCE_S: Final = 60.0
OURS: Final = 1001
ALL: Final = [1, 2, 3]
#: What brokers complain of as well where Kafka's own controllers follow each other: in ``by_kafka``, and of ``doomed``
#: where the first of them is deposed before its StopReplica requests are answered.
USUAL: Final = re.compile(
    "|".join(
        [
            # A broker that has just started, is dead or sleeps.
            r"\[.+\] Connection to node -?\d (\(.+\) )?could not be established",
            r"\[RequestSendThread controllerId=\d\] Controller \d's connection to broker .+ was unsuccessful",
            r"\[RequestSendThread controllerId=\d\] Controller \d epoch \d+ fails to send request",
            r"\[ReplicaFetcher .+\] Error in response for fetch request",
            # One broker has heard of a change, another has not yet.
            r"\[ReplicaFetcher .+\] Received UNKNOWN_TOPIC_ID from the leader",
            r"\[ReplicaFetcher .+\] Partition .+ marked as failed",
            # Nobody who is alive has the partition, or its topic is half deleted.
            r"\[Broker .+\] Received LeaderAndIsrRequest .+ partition (lone|risky|doomed)-.+ leader -1 is unavailable",
            r"\[Controller .+\] .+ change state for partition (lone|risky)-.+ from OfflinePartition to OnlinePartition",
            # A controller that takes up a move that another began says so of each replica that is added.
            r"\[Controller .+\] .+ partition (moving|risky)-.+ from OnlineReplica to NewReplica failed",
        ]
    )
)

State = dict[str, Any]
_numbers = itertools.count()


class Contender(Process):
    """One ``kframe controller run``."""

    def __init__(self, place: str, folder: Path, *arguments: str) -> None:
        super().__init__()
        self._path = folder / "log.txt"
        folder.mkdir()
        (folder / "server.properties").write_text(f"zookeeper.session.timeout.ms=4000\nbroker.id={OURS}\n")
        self._launch(
            [sys.executable, "-m", "kframe", "controller", "run", "--zookeeper", place, "--config",
             str(folder / "server.properties"), *arguments],
            folder,
        )  # fmt: skip

    @property
    def log(self) -> str:
        return self._path.read_text()


@dataclass
class World:
    """A cluster of three brokers, and those who look at it."""

    cluster: Cluster
    tool: Tool
    client: KazooClient
    folder: Path
    contenders: list[Contender] = field(default_factory=list)

    # -- who is controller

    def controller(self) -> tuple[int, int]:
        """Its broker id, or -1, and the controller epoch."""
        try:
            found = int(json.loads(self.client.get(paths.CONTROLLER)[0])["brokerid"])
        except NoNodeError:
            found = -1
        return found, int(self.client.get(paths.CONTROLLER_EPOCH)[0])

    def await_kframe(self, contender: Contender) -> int:
        """Return the controller epoch when kframe has the role and has taken it up."""
        until(lambda: "takes over with epoch" in contender.log or contender.pid is None, PATIENCE_S)
        controller_id, controller_epoch = self.controller()
        assert controller_id == OURS, contender.log
        assert f"takes over with epoch {controller_epoch}" in contender.log
        return controller_epoch

    def await_kafka(self, controller_epoch: int) -> int:
        """Return which broker has the role under this very epoch."""
        assert until(lambda: self.controller()[0] in ALL, PATIENCE_S), self.controller()
        assert self.controller()[1] == controller_epoch
        return self.controller()[0]

    def take_over(self) -> Contender:
        """kframe takes the role from a broker."""
        _, before = self.controller()
        contender = Contender(self.cluster.zookeeper, self.folder / f"kframe-{next(_numbers)}", "--takeover")
        self.contenders.append(contender)
        assert self.await_kframe(contender) == before + 1
        return contender

    # -- what is stored

    def get(self, path: str) -> Any:
        return json.loads(self.client.get(path)[0])

    def replicas(self, topic: str) -> Any:
        """Of partition 0."""
        return self.get(f"/brokers/topics/{topic}")["partitions"]["0"]

    def put(self, path: str, value: Any) -> None:
        self.client.create(path, b"" if value is None else json.dumps(value).encode(), makepath=True)

    def move(self, topics: dict[str, list[int]]) -> None:
        """Ask for other replicas of partition 0, as Kafka's tools did up to 2.8."""
        parts = [{"topic": topic, "partition": 0, "replicas": replicas} for topic, replicas in topics.items()]
        self.put(paths.REASSIGN_PARTITIONS, {"version": 1, "partitions": parts})

    def grow(self, topic: str, replicas: list[int]) -> None:
        """Add a partition, as Kafka's tools did up to 2.8."""
        assignment = self.get(f"/brokers/topics/{topic}")
        assignment["partitions"][str(len(assignment["partitions"]))] = replicas
        self.client.set(f"/brokers/topics/{topic}", json.dumps(assignment, separators=(",", ":")).encode())

    def elect_preferred(self, topic: str) -> None:
        """Ask for the preferred leader of partition 0, as Kafka's tools did up to 2.8."""
        part = {"topic": topic, "partition": 0}
        self.put(paths.PREFERRED_ELECTION, {"version": 1, "partitions": [part]})

    def tree(self) -> dict[str, tuple[bytes | None, int]]:
        """All that a controller may write: data, and which change wrote it."""
        found: dict[str, tuple[bytes | None, int]] = {}
        for one in ("/controller", "/controller_epoch", "/brokers/topics", "/admin", "/config/topics"):
            waiting = [one]
            while waiting:
                here = waiting.pop()
                data, stat = self.client.get(here)
                found[here] = (data, stat.mzxid)
                waiting += [f"{here}/{child}" for child in self.client.get_children(here)]
        return found

    def states(self) -> dict[str, dict[int, State]]:
        """Of all topics, by name and partition; read again when a topic goes away meanwhile."""
        while True:
            try:
                return {topic: self.states_of(topic) for topic in self.client.get_children(paths.TOPICS)}
            except NoNodeError:
                continue

    def states_of(self, topic: str) -> dict[int, State]:
        """None for a topic that no controller has taken up yet."""
        under = f"/brokers/topics/{topic}/partitions"
        numbers = self.client.get_children(under) if self.client.exists(under) else []
        return {int(number): self.get(f"{under}/{number}/state") for number in numbers}

    def state(self, topic: str, partition: int = 0) -> State | None:
        try:
            found: State = self.get(f"/brokers/topics/{topic}/partitions/{partition}/state")
        except NoNodeError:
            return None
        return found

    def leader_and_isr(self, topic: str, partition: int = 0) -> tuple[int, list[int]] | None:
        found = self.state(topic, partition)
        return None if found is None else (found["leader"], found["isr"])

    def unlike_kafkas(self) -> dict[str, tuple[bytes, bytes]]:
        """Znodes whose bytes are not those that Kafka writes for the same values: found, and written by Kafka."""
        found: dict[str, tuple[bytes, bytes]] = {}

        def look(kind: str, path: str) -> None:
            data = self.client.get(path)[0]
            again = self.tool.encoded(kind, data)
            if data != again:
                found[path] = (data, again)

        look("controller", paths.CONTROLLER)
        for topic, partitions in self.states().items():
            look("topic", f"/brokers/topics/{topic}")
            for number in partitions:
                look("state", f"/brokers/topics/{topic}/partitions/{number}/state")
        for topic in self.client.get_children("/config/topics"):
            look("config", f"/config/topics/{topic}")
        return found

    # -- what clients see

    def create(self, topic: str, replicas: list[list[int]]) -> None:
        """By Kafka's own admin client; returns when it is stored and all brokers know it."""
        self.tool.ask("create", topic=topic, replicas=replicas)
        self.await_agreement(topic)

    def disagreement(self, *topics: str) -> list[Any]:
        """Where what Kafka's admin client describes of these topics, or of all, is not what is stored."""
        try:
            described, stored = _seen(self.tool.ask("describe")), _seen(self.states())
        except KafkaError as error:
            return [f"a topic came or went: {error}"]
        both = {one[0] for one in described & stored}
        return [topic for topic in topics if topic not in both] + sorted(
            one for one in described ^ stored if not topics or one[0] in topics
        )

    def await_agreement(self, *topics: str) -> None:
        assert until(lambda: not self.disagreement(*topics), PATIENCE_S), self.disagreement(*topics)

    def produce(self, topic: str, partition: int, *values: str) -> None:
        """Acknowledged by all in-sync replicas."""
        assert self.tool.ask("produce", topic=topic, partition=partition, values=values) == len(values)

    def consume(self, topic: str) -> dict[str, list[str]]:
        found: dict[str, list[str]] = self.tool.ask("consume", topic=topic)
        return found


def _seen(topics: dict[str, dict[Any, Any]]) -> set[tuple[str, int, int, tuple[int, ...]]]:
    """Topic, partition, leader and ISR of each partition."""
    return {
        (topic, int(partition), one["leader"], tuple(sorted(one["isr"])))
        for topic, partitions in topics.items()
        for partition, one in partitions.items()
    }


@pytest.fixture(scope="module")
def running(zookeeper: ServerHandle, tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    """Three brokers, Kafka's own controller among them."""
    folder = tmp_path_factory.mktemp("handover")
    cluster = Cluster(folder / "kafka", f"{zookeeper.address}/handover")
    try:
        cluster.start()
        tool = Tool(folder / "tool", cluster.address)
        client = KazooClient(cluster.zookeeper)
        client.start()
        yield World(cluster, tool, client, folder)
        client.stop()
        client.close()
        tool.close()
    finally:
        cluster.kill()


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


def kframe(*arguments: object) -> Any:
    """What a command of kframe says, as JSON."""
    command = [sys.executable, "-m", "kframe", *map(str, arguments), "-o", "json"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=PATIENCE_S)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def rises(before: dict[str, dict[int, State]], after: dict[str, dict[int, State]]) -> None:
    """No epoch of a partition ever falls."""
    for topic, partitions in before.items():
        for number, one in partitions.items():
            if topic in after:
                for epoch in ("leader_epoch", "controller_epoch"):
                    assert after[topic][number][epoch] >= one[epoch], (topic, number, epoch)


def eventually(expected: Any, look: Callable[..., Any], *arguments: Any) -> None:
    """Wait until this is what a look finds."""
    until(lambda: look(*arguments) == expected, PATIENCE_S)
    assert look(*arguments) == expected


def by_kframe(world: World) -> Callable[[], int]:
    """kframe takes the role; called later, it resigns and a broker takes over."""
    contender = world.take_over()
    _, controller_epoch = world.controller()
    found = kframe("controller", "status", "--zookeeper", world.cluster.zookeeper)
    assert (found["controller_id"], found["controller_epoch"], found["brokers"], found["quarantined"]) == (
        OURS, controller_epoch, ALL, [],
    )  # fmt: skip

    def give_back() -> int:
        contender.stop()
        assert f"controller {OURS} resigns: asked to resign" in contender.log
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
    world.cluster.brokers[3].kill()
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
    assert world.consume(topics.orders) == values
    assert world.consume(topics.lone) == {"0": ["only on 3"]}
    assert world.consume(topics.moving) == {"0": ["before the move"]}
    world.produce(topics.left, 1, "as good as any")
    assert world.consume(topics.left) == {"0": [], "1": ["as good as any"], "2": []}
    assert world.tool.ask("configs", topic=topics.orders) == {"min.insync.replicas": "2"}
    assert world.unlike_kafkas() == {}


def test_back_and_forth(world: World) -> None:
    """Three times to kframe and back: it is asked to end, killed, and killed with work undone."""
    values: dict[str, list[str]] = {}
    for reign, end in enumerate((Contender.stop, Contender.kill, Contender.kill)):
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
            assert world.consume(topic) == {"0": sent}
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
    assert until(lambda: f"controller {OURS} resigns" in contender.log, PATIENCE_S), contender.log
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
    assert world.consume("news") == {"0": ["told"]}
