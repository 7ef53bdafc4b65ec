"""A cluster of real Kafka brokers on one ZooKeeper whose controller changes between kframe and Kafka's own."""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from kazoo.client import KazooClient
from kazoo.exceptions import NoNodeError
from kframe_zookeeper.znodes import paths

from kframe.testing.waiting import until
from verification.zookeeper.commands import READY, ControllerRun
from verification.zookeeper.kafka import VERSION, Cluster, KafkaClients, KafkaError
from verification.zookeeper.sessions import session
from verification.zookeeper.trees import read_tree

OURS: Final = 1001
ALL: Final = [1, 2, 3]
#: Log lines that brokers also write when one of Kafka's own controllers follows another.
#:
#: Tests observe them in ``by_kafka``. The topic ``deleting`` causes some of them, when a controller is deposed before
#: the responses to its StopReplica requests arrive.
EXPECTED_WARNINGS: Final = re.compile(
    "|".join(
        [
            # A broker is starting, dead or frozen, or the machine is busy.
            r".+ \((org\.apache\.zookeeper|kafka\.zookeeper|org\.apache\.kafka\.clients)\..+\)$",
            r"\[.+\] Connection to node -?\d (\(.+\) )?could not be established",
            r"\[RequestSendThread controllerId=\d\] Controller \d's connection to broker .+ was unsuccessful",
            r"\[RequestSendThread controllerId=\d\] Controller \d (epoch \d+ )?fails to send (a )?request",
            r"\[ReplicaFetcher .+\] Error in response for fetch request",
            # A change has not reached all brokers yet.
            r"\[ReplicaFetcher .+\] Received UNKNOWN_TOPIC_(ID|OR_PARTITION) from the leader",
            r"\[ReplicaFetcher .+\] Partition .+ marked as failed",
            # No live broker has the partition, its topic is being deleted, or its leader died during the handover.
            r"\[Broker .+\] Received LeaderAndIsrRequest .+ leader -1 is unavailable",
            r"\[Controller .+\] .+ change state for partition (lone|risky)-.+ from OfflinePartition to OnlinePartition",
            # A controller that continues another's reassignment logs this for each added replica.
            r"\[Controller .+\] .+ partition (moving|risky)-.+ from OnlineReplica to NewReplica failed",
        ]
    )
)

#: Roots of the nodes that a controller may write.
_WRITTEN: Final = ("/controller/", "/controller_epoch/", "/brokers/topics/", "/admin/", "/config/topics/")
State = dict[str, Any]
_numbers = itertools.count()


@dataclass
class ClusterFixture:
    """A cluster of three brokers, and the clients that observe it."""

    cluster: Cluster
    clients: KafkaClients
    client: KazooClient
    folder: Path
    contenders: list[ControllerRun] = field(default_factory=list)

    # -- the controller

    def controller(self) -> tuple[int, int]:
        """The controller's broker id, or -1. Also the controller epoch."""
        try:
            controller_id = int(self.get(paths.CONTROLLER)["brokerid"])
        except NoNodeError:
            controller_id = -1
        return controller_id, int(self.get(paths.CONTROLLER_EPOCH))

    def await_kframe(self, contender: ControllerRun) -> int:
        """Wait until kframe is the active controller. Return the controller epoch."""
        until(lambda: READY in contender.log or contender.pid is None)
        controller_id, controller_epoch = self.controller()
        assert controller_id == OURS, contender.log
        assert f"{READY} {controller_epoch}" in contender.log
        return controller_epoch

    def await_kafka(self, controller_epoch: int) -> int:
        """Wait until a broker has the role under this controller epoch. Return its id."""
        assert until(lambda: self.controller()[0] in ALL), self.controller()
        assert self.controller()[1] == controller_epoch
        return self.controller()[0]

    def take_over(self) -> ControllerRun:
        """Let kframe take the role from a broker."""
        _, before = self.controller()
        folder = self.folder / f"kframe-{next(_numbers)}"
        contender = ControllerRun(OURS, self.cluster.zookeeper, folder, "--takeover", timeout_ms=8000)
        contender.start()
        self.contenders.append(contender)
        assert self.await_kframe(contender) == before + 1
        return contender

    # -- what is stored

    def get(self, path: str) -> Any:
        """The JSON in a node."""
        return json.loads(self.client.retry(self.client.get, path)[0])

    def replicas(self, topic: str) -> Any:
        """The replicas of partition 0."""
        return self.get(f"/brokers/topics/{topic}")["partitions"]["0"]

    def put(self, path: str, value: Any) -> None:
        """Create a node and its parents."""
        self.client.create(path, b"" if value is None else json.dumps(value).encode(), makepath=True)

    def move(self, topics: dict[str, list[int]]) -> None:
        """Request a reassignment of partition 0, as Kafka's tools up to 2.8 do."""
        parts = [{"topic": topic, "partition": 0, "replicas": replicas} for topic, replicas in topics.items()]
        self.put(paths.REASSIGN_PARTITIONS, {"version": 1, "partitions": parts})

    def grow(self, topic: str, replicas: list[int]) -> None:
        """Add a partition, as Kafka's tools up to 2.8 do."""
        assignment = self.get(f"/brokers/topics/{topic}")
        assignment["partitions"][str(len(assignment["partitions"]))] = replicas
        self.client.set(f"/brokers/topics/{topic}", json.dumps(assignment, separators=(",", ":")).encode())

    def elect_preferred(self, topic: str) -> None:
        """Request the preferred leader of partition 0, as Kafka's tools up to 2.8 do."""
        part = {"topic": topic, "partition": 0}
        self.put(paths.PREFERRED_ELECTION, {"version": 1, "partitions": [part]})

    def tree(self) -> dict[str, tuple[bytes | None, int]]:
        """All nodes that a controller may write: data and mzxid."""
        tree = read_tree(self.client).items()
        return {path: (data, stat.mzxid) for path, (data, stat) in tree if f"{path}/".startswith(_WRITTEN)}

    def states(self) -> dict[str, dict[int, State]]:
        """The states of all topics, by name and partition. They are read again if a topic vanishes meanwhile."""
        while True:
            try:
                return {topic: self.states_of(topic) for topic in self.client.get_children(paths.TOPICS)}
            except NoNodeError:
                continue

    def states_of(self, topic: str) -> dict[int, State]:
        """The states of a topic. Empty until a controller has created them."""
        under = f"/brokers/topics/{topic}/partitions"
        numbers = self.client.get_children(under) if self.client.exists(under) else []
        return {int(number): self.get(f"{under}/{number}/state") for number in numbers}

    def state(self, topic: str, partition: int = 0) -> State | None:
        """The state of a partition. None until a controller has created it."""
        try:
            state: State = self.get(f"/brokers/topics/{topic}/partitions/{partition}/state")
        except NoNodeError:
            return None
        return state

    def leader_and_isr(self, topic: str, partition: int = 0) -> tuple[int, list[int]] | None:
        """Leader and ISR of a partition. None until it has a state."""
        state = self.state(topic, partition)
        return None if state is None else (state["leader"], state["isr"])

    def znodes_unlike_kafkas(self) -> dict[str, tuple[bytes, bytes]]:
        """Znodes whose bytes differ from those that Kafka writes for the same values: stored bytes and Kafka's.

        The record of a controller is skipped if its broker has another release than the clients.
        """
        differences: dict[str, tuple[bytes, bytes]] = {}

        def compare(kind: str, path: str) -> None:
            data = self.client.get(path)[0]
            expected = self.clients.encoded(kind, data)
            if data != expected:
                differences[path] = (data, expected)

        holder = self.cluster.brokers.get(self.controller()[0])
        if holder is None or holder.version == VERSION:
            compare("controller", paths.CONTROLLER)
        for topic, partitions in self.states().items():
            compare("topic", f"/brokers/topics/{topic}")
            for number in partitions:
                compare("state", f"/brokers/topics/{topic}/partitions/{number}/state")
        for topic in self.client.get_children("/config/topics"):
            compare("config", f"/config/topics/{topic}")
        return differences

    # -- what clients see

    def create(self, topic: str, replicas: list[list[int]]) -> None:
        """Create a topic by Kafka's admin client. Return when it is stored and all brokers know it."""
        self.clients.request("create", topic=topic, replicas=replicas)
        self.await_agreement(topic)

    def disagreement(self, *topics: str) -> list[Any]:
        """The partitions where Kafka's admin client and ZooKeeper disagree. By default those of all topics."""
        try:
            described, stored = _leadership(self.clients.request("describe")), _leadership(self.states())
        except KafkaError as error:
            return [f"a topic came or went: {error}"]
        both = {partition[0] for partition in described & stored}
        return [topic for topic in topics if topic not in both] + sorted(
            partition for partition in described ^ stored if not topics or partition[0] in topics
        )

    def await_agreement(self, *topics: str) -> None:
        """Return when Kafka's admin client describes the stored state."""
        assert until(lambda: not self.disagreement(*topics)), self.disagreement(*topics)

    def produce(self, topic: str, partition: int, *values: str) -> None:
        """Produce records with acks=all."""
        assert self.clients.request("produce", topic=topic, partition=partition, values=values) == len(values)

    def consume(self, topic: str) -> dict[str, list[str]]:
        """The records of a topic by partition. A new leader may not show all of them at once."""
        records: dict[str, list[str]] = self.clients.request("consume", topic=topic)
        return records


@contextmanager
def running_fixture(
    zookeeper: str, folder: Path, settings: Mapping[str, str] | None = None, version: str = VERSION
) -> Iterator[ClusterFixture]:
    """Three brokers with Kafka's own controller, and observing clients. ``zookeeper`` has a chroot."""
    cluster = Cluster(folder / "kafka", zookeeper, settings=settings or {}, version=version)
    try:
        cluster.start()
        clients = KafkaClients(folder / "clients", cluster.address)
        with session(cluster.zookeeper) as client:
            yield ClusterFixture(cluster, clients, client, folder)
        clients.close()
    finally:
        cluster.kill()


def _leadership(topics: dict[str, dict[Any, Any]]) -> set[tuple[str, int, int, tuple[int, ...]]]:
    """Topic, partition, leader and ISR of each partition."""
    return {
        (topic, int(partition), state["leader"], tuple(sorted(state["isr"])))
        for topic, partitions in topics.items()
        for partition, state in partitions.items()
    }


def rises(before: dict[str, dict[int, State]], after: dict[str, dict[int, State]]) -> None:
    """Check that no partition's epoch decreases, unless its topic is being deleted. Its state may then be missing."""
    for topic, partitions in before.items():
        for number, state in partitions.items():
            if number in after.get(topic, {}):
                for epoch in ("leader_epoch", "controller_epoch"):
                    assert after[topic][number][epoch] >= state[epoch], (topic, number, epoch)


def eventually(expected: Any, read: Callable[..., Any], *arguments: Any) -> None:
    """Wait until ``read`` returns this value."""
    until(lambda: read(*arguments) == expected)
    assert read(*arguments) == expected
