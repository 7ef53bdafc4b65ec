"""``kframe controller shadow`` beside the controller of real Kafka 3.9.1 brokers.

It agrees with Kafka, reports manual changes, and writes nothing.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any, Final

import pytest
from kazoo.client import KazooClient
from kframe_zookeeper.znodes import paths

from kframe.testing.waiting import until
from verification.zookeeper.commands import RunningCommand
from verification.zookeeper.kafka import Cluster, KafkaClients
from verification.zookeeper.servers import ServerHandle
from verification.zookeeper.sessions import session
from verification.zookeeper.trees import read_tree

STATE: Final = "/brokers/topics/t/partitions/0/state"


class Shadowing(RunningCommand):
    """A ``kframe controller shadow`` process, with its output and counters."""

    def __init__(self, connect_string: str, folder: Path) -> None:
        super().__init__(
            folder,
            "controller",
            "shadow",
            "--zookeeper",
            connect_string,
            "--settle",
            "2",
            "--metrics-listen",
            "0",
            "-o",
            "jsonl",
        )
        self.start()
        assert self.logs("nothing is written"), self.log

    @property
    def differences(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.log.splitlines() if line.startswith("{")]

    def count(self, kind: str) -> int:
        return int(self.metric(f"kframe_shadow_{kind}_total"))

    def await_round(self, before: int) -> None:
        assert until(lambda: self.count("rounds") > before), self.log


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory, zookeeper: ServerHandle) -> Iterator[Cluster]:
    folder = tmp_path_factory.mktemp("shadowed")
    cluster = Cluster(folder, f"{zookeeper.address}/shadowed-{folder.name}")
    try:
        cluster.start()
        yield cluster
    finally:
        cluster.kill()


@pytest.fixture(scope="module")
def clients(tmp_path_factory: pytest.TempPathFactory, cluster: Cluster) -> Iterator[KafkaClients]:
    clients = KafkaClients(tmp_path_factory.mktemp("clients") / "java", cluster.address)
    yield clients
    clients.close()


@pytest.fixture(scope="module")
def client(cluster: Cluster) -> Iterator[KazooClient]:
    with session(cluster.zookeeper) as client:
        yield client


@pytest.fixture
def shadow(cluster: Cluster, tmp_path: Path) -> Iterator[Shadowing]:
    shadowing = Shadowing(cluster.zookeeper, tmp_path / "shadow")
    yield shadowing
    shadowing.kill()


def written(client: KazooClient) -> dict[str, tuple[int, int, int]]:
    """The transactions that created and changed each node, and its list of children."""
    return {path: (stat.czxid, stat.mzxid, stat.pzxid) for path, (_, stat) in read_tree(client).items()}


def in_sync(client: KazooClient, topic: str, count: int) -> bool:
    """Whether each partition has three replicas in sync."""
    states = (client.get(f"/brokers/topics/{topic}/partitions/{number}/state")[0] for number in range(count))
    return all(len(json.loads(state)["isr"]) == 3 for state in states)


def test_shadow_agrees_with_kafka_and_reports_missing_actions(
    cluster: Cluster, clients: KafkaClients, client: KazooClient, shadow: Shadowing
) -> None:
    """Each step is one round, which ends after two seconds without a change."""
    replicas = [[1, 2, 3], [2, 3, 1], [3, 1, 2]] * 4
    controller = int(json.loads(client.get(paths.CONTROLLER)[0])["brokerid"])
    other, third = sorted({1, 2, 3} - {controller})

    rounds = shadow.count("rounds")
    clients.request("create", topic="t", replicas=replicas)
    shadow.await_round(rounds)

    ends: tuple[Callable[[], object], ...] = (
        cluster.brokers[other].stop,
        partial(cluster.lose, third, client),
        partial(cluster.lose, controller, client),
    )
    for end in ends:
        rounds = shadow.count("rounds")
        end()
        shadow.await_round(rounds)
        rounds = shadow.count("rounds")
        cluster.start()
        shadow.await_round(rounds)
        assert until(partial(in_sync, client, "t", len(replicas)))

    rounds = shadow.count("rounds")
    part = [{"topic": "t", "partition": number} for number in range(len(replicas))]
    client.create(paths.PREFERRED_ELECTION, json.dumps({"version": 1, "partitions": part}).encode())
    shadow.await_round(rounds)

    assert shadow.differences == []
    assert shadow.count("compared") >= 8 * len(replicas)

    state = json.loads(client.get(STATE)[0])
    other_leader = next(replica for replica in state["isr"] if replica != state["leader"])
    client.set(STATE, json.dumps({**state, "leader": other_leader}).encode())
    assert until(lambda: shadow.count("disagreements") > 0)
    (difference,) = shadow.differences
    assert (difference["topic"], difference["partition"]) == ("t", 0)
    assert (difference["expected"]["leader"], difference["actual"]["leader"]) == (state["leader"], other_leader)
    client.set(STATE, json.dumps(state).encode())
    shadow.stop()


def test_shadow_writes_nothing(cluster: Cluster, client: KazooClient, tmp_path: Path) -> None:
    """The zxids of all nodes are the same before its start and after its end."""
    before = written(client)
    shadowing = Shadowing(cluster.zookeeper, tmp_path / "shadow")
    shadowing.stop()
    assert shadowing.pid is None
    assert written(client) == before
    assert paths.CONTROLLER in before
