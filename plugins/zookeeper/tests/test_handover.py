"""Clusters of real Kafka 3.9.1 brokers whose controller is now Kafka's own, now kframe, on one ZooKeeper.

kframe records here what it would send, so brokers hear nothing from it: what it has written to ZooKeeper they learn from
Kafka's controller, which reads all of that when it takes the role back.
"""

from __future__ import annotations

import itertools
import json
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

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
#: What brokers complain of as well when one Kafka controller follows another in the same story.
USUAL: Final = ("nothing yet",)

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
        assert self.await_kframe(contender) == before + 1
        return contender

    # -- what is stored

    def get(self, path: str) -> Any:
        return json.loads(self.client.get(path)[0])

    def put(self, path: str, value: Any) -> None:
        self.client.create(path, b"" if value is None else json.dumps(value).encode(), makepath=True)

    def states(self) -> dict[str, dict[int, State]]:
        """Of all topics, by name and partition."""
        return {
            topic: {
                int(number): self.get(f"/brokers/topics/{topic}/partitions/{number}/state")
                for number in self.client.get_children(f"/brokers/topics/{topic}/partitions")
            }
            for topic in self.client.get_children(paths.TOPICS)
            if self.client.exists(f"/brokers/topics/{topic}/partitions")
        }  # fmt: skip

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

    def disagreement(self, *topics: str) -> list[str]:
        """Where what Kafka's admin client describes is not what is stored."""
        described, stored = self.tool.ask("describe"), self.states()
        return [
            f"{topic}-{number}: {one} stored, {described.get(topic, {}).get(str(number))} described"
            for topic in topics or {*described, *stored}
            for number, one in stored.get(topic, {}).items()
            if not _same(one, described.get(topic, {}).get(str(number)), stored.get(topic, {}))
        ] + [topic for topic in topics if topic not in described or topic not in stored]

    def await_agreement(self, *topics: str) -> None:
        assert until(lambda: not self.disagreement(*topics), PATIENCE_S), self.disagreement(*topics)

    def produce(self, topic: str, partition: int, *values: str) -> None:
        """Acknowledged by all in-sync replicas."""
        assert self.tool.ask("produce", topic=topic, partition=partition, values=values) == len(values)

    def consume(self, topic: str) -> dict[str, list[str]]:
        found: dict[str, list[str]] = self.tool.ask("consume", topic=topic)
        return found


def _same(stored: State, described: Any, _: Any) -> bool:
    return described is not None and (stored["leader"], sorted(stored["isr"])) == (
        described["leader"],
        sorted(described["isr"]),
    )


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
    """The cluster with all brokers up and one of them controller; what they complain of meanwhile is looked at."""
    before = len(running.cluster.complaints())
    yield running
    new = running.cluster.complaints()[before:]
    print("\n".join(map(str, new)))


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


def eventually(look: Callable[[], Any], expected: Any) -> None:
    until(lambda: look() == expected, PATIENCE_S)
    assert look() == expected


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


@pytest.mark.parametrize("take", [by_kframe, by_kafka])
def test_what_changed_in_between(world: World, take: Callable[[World], Callable[[], int]]) -> None:
    name = take.__name__
    orders, lone, moving, turned, doomed, left = (
        f"{topic}-{name}" for topic in ("orders", "lone", "moving", "turned", "doomed", "left")
    )
    world.create(orders, [[1, 2, 3], [2, 3, 1], [3, 1, 2], [1, 3, 2], [2, 1, 3], [3, 2, 1]])
    world.create(lone, [[3]])
    world.create(moving, [[1, 3]])
    world.create(turned, [[1, 2]])
    world.create(doomed, [[1, 2]])
    for partition in range(6):
        world.produce(orders, partition, *(f"{partition}.{number}" for number in range(20)))
    world.produce(lone, 0, "only on 3")
    world.produce(moving, 0, "before the move")
    before = world.states()

    give_back = take(world)
    world.produce(orders, 0, "while nobody told the brokers")
    world.tool.ask("configure", topic=orders, key="min.insync.replicas", value="2")
    world.put(f"/brokers/topics/{left}", {"version": 1, "partitions": {"0": [1, 2, 3], "1": [2, 3, 1]}})
    eventually(lambda: world.leader_and_isr(left, 1), (2, [2, 3, 1]))
    moves = {turned: [2, 1], moving: [1, 2]}
    parts = [{"topic": topic, "partition": 0, "replicas": brokers} for topic, brokers in moves.items()]
    world.put(paths.REASSIGN_PARTITIONS, {"version": 1, "partitions": parts})
    eventually(lambda: world.get(f"/brokers/topics/{turned}")["partitions"], {"0": [2, 1]})
    assert world.leader_and_isr(turned) == (1, [1, 2])
    world.put(paths.PREFERRED_ELECTION, {"version": 1, "partitions": [{"topic": turned, "partition": 0}]})
    eventually(lambda: world.leader_and_isr(turned), (2, [1, 2]))
    world.put(f"/admin/delete_topics/{doomed}", None)
    world.cluster.brokers[3].kill()
    eventually(lambda: [world.leader_and_isr(orders, number) for number in range(6)], [
        (1, [1, 2]), (2, [2, 1]), (1, [1, 2]), (1, [1, 2]), (2, [2, 1]), (2, [2, 1]),
    ])  # fmt: skip
    eventually(lambda: world.leader_and_isr(lone), (-1, [3]))
    middle = world.states()
    rises(before, middle)
    assert world.unlike_kafkas() == {}

    give_back()
    world.await_agreement()
    eventually(lambda: world.client.exists(f"/brokers/topics/{doomed}"), None)
    eventually(lambda: world.tool.ask("reassignments"), [])
    assert world.get(f"/brokers/topics/{moving}")["partitions"] == {"0": [1, 2]}
    world.produce(orders, 2, "without broker 3")
    world.cluster.brokers[3].start()
    eventually(lambda: {tuple(sorted(one["isr"])) for one in world.states()[orders].values()}, {(1, 2, 3)})
    eventually(lambda: world.leader_and_isr(lone), (3, [3]))
    world.await_agreement()
    rises(middle, world.states())
    for partition in range(6):
        world.produce(orders, partition, "at last")
    expected = {str(partition): [f"{partition}.{number}" for number in range(20)] for partition in range(6)}
    expected["0"].append("while nobody told the brokers")
    expected["2"].append("without broker 3")
    assert world.consume(orders) == {partition: [*values, "at last"] for partition, values in expected.items()}
    assert world.consume(lone) == {"0": ["only on 3"]}
    assert world.consume(moving) == {"0": ["before the move"]}
    world.produce(left, 1, "as good as any")
    assert world.consume(left) == {"0": [], "1": ["as good as any"]}
    assert world.tool.ask("configs", topic=orders) == {"min.insync.replicas": "2"}
    assert world.unlike_kafkas() == {}
