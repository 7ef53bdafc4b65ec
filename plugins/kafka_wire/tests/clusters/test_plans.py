"""``kframe plan execute``, ``reassign`` and ``elect`` on real Kafka 3.9.1 brokers with Kafka's own controller."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from kframe_kafka_wire.admin.client import open_admin

from kframe.errors import ErrorCode
from kframe.model.events import ElectionType
from kframe.model.tables import Targets
from kframe.snapshot.metadata import PartitionReassignment
from kframe.testing.waiting import until
from verification.zookeeper.commands import invoke
from verification.zookeeper.handover import ClusterFixture
from verification.zookeeper.kafka import Cluster
from verification.zookeeper.sessions import session

_numbers = itertools.count()


@pytest.fixture
def cluster(kafka: ClusterFixture) -> Cluster:
    return kafka.cluster


@pytest.fixture
def topic(kafka: ClusterFixture) -> str:
    """A topic with three partitions. Each has two replicas."""
    name = f"topic-{next(_numbers)}"
    kafka.clients.request("create", topic=name, replicas=[[1, 2], [2, 3], [3, 1]])
    return name


class Done:
    """A command that has ended."""

    def __init__(self, cluster: Cluster, folder: Path, *arguments: object) -> None:
        address = () if arguments[0] == "plan" else ("--bootstrap-server", cluster.address)
        done = invoke(*arguments, *address, folder=folder)
        self.code, self.out, self.err = done.returncode, done.stdout, done.stderr

    @property
    def data(self) -> Any:
        return json.loads(self.out)


def plan_file(folder: Path, topic: str, *lists: list[int]) -> Path:
    path = folder / "plan.json"
    parts = [
        {"topic": topic, "partition": number, "replicas": replica_list} for number, replica_list in enumerate(lists)
    ]
    path.write_text(json.dumps({"version": 1, "partitions": parts}))
    return path


def test_plan_is_described_executed_and_reverted(cluster: Cluster, topic: str, tmp_path: Path) -> None:
    plan = plan_file(tmp_path, topic, [3, 1], [1, 2], [2, 3])
    execute = ("plan", "execute", f"kafka://{cluster.address}", plan, "--concurrency", 2)
    shown = Done(cluster, tmp_path, *execute, "-o", "json")
    assert (shown.code, shown.data["schema"]) == (0, "kframe.plan-execution/v1"), shown.err
    effect = shown.data["effect"]
    assert (effect["reassignment"]["partitions"], effect["impact"]["offline_peak"]) == (3, 0)
    assert "nothing was changed" in shown.err
    assert list(tmp_path.iterdir()) == [plan]
    before = client_capture(cluster)

    done = Done(cluster, tmp_path, *execute, "--execute", "-o", "json")
    assert (done.code, done.data["result"], done.data["settled"]) == (0, "completed", 3), done.err
    assert until(lambda: assignment(cluster, topic) == [(3, 1), (1, 2), (2, 3)])
    repeated = Done(cluster, tmp_path, *execute, "--execute")
    assert (repeated.code, "nothing to do" in repeated.err) == (0, True), "the journal says that it is done"

    back = Done(cluster, tmp_path, "plan", "rollback", "plan.json.journal", "--execute", "-o", "json")
    assert (back.code, back.data["result"]) == (0, "rolled back"), back.err
    assert until(lambda: client_capture(cluster) == before)


def client_capture(cluster: Cluster) -> dict[tuple[str, int], tuple[int, ...]]:
    with closing(open_admin(f"kafka://{cluster.address}", {})) as admin:
        state = admin.capture().to_cluster()
    return {(partition.topic, partition.partition): partition.replicas for partition in state}


def assignment(cluster: Cluster, topic: str) -> list[tuple[int, ...]]:
    """The replicas of each partition of a topic."""
    return [replicas for (name, _), replicas in sorted(client_capture(cluster).items()) if name == topic]


def test_stale_and_invalid_plans_are_refused(cluster: Cluster, topic: str, tmp_path: Path) -> None:
    plan = plan_file(tmp_path, topic, [3, 1])
    captured = tmp_path / "captured"
    assert invoke("snapshot", "capture", f"zookeeper://{cluster.zookeeper}", captured).returncode == 0
    planned = invoke("plan", "stamp", captured, plan)
    assert planned.returncode == 0, planned.stderr
    stamped = tmp_path / "stamped.json"
    stamped.write_text(planned.stdout)
    execute = ("plan", "execute", f"kafka://{cluster.address}", "--execute", "--journal")
    fresh = Done(cluster, tmp_path, *execute, "fresh", stamped)
    assert fresh.code == 0, fresh.err
    assert until(lambda: client_capture(cluster)[topic, 0] == (3, 1))
    stale = Done(cluster, tmp_path, *execute, "stale", stamped)
    assert (stale.code, "assigned anew since" in stale.err) == (4, True), stale.err
    invalid = Done(cluster, tmp_path, *execute, "invalid", plan_file(tmp_path, topic, [9, 1]))
    assert (invalid.code, "error:" in invalid.err) == (1, True)
    assert client_capture(cluster)[topic, 0] == (3, 1)


@pytest.fixture
def frozen(kafka: ClusterFixture) -> Iterator[tuple[str, int, int]]:
    """A topic, the broker with its replica, and another broker, which is frozen: no reassignment to it completes."""
    first = kafka.controller()[0]
    frozen = max({1, 2, 3} - {first})  # Commands connect to broker 1.
    topic = f"topic-{next(_numbers)}"
    kafka.clients.request("create", topic=topic, replicas=[[first]])
    kafka.cluster.brokers[frozen].pause()
    yield topic, first, frozen
    kafka.cluster.brokers[frozen].resume()
    with closing(open_admin(f"kafka://{kafka.cluster.address}", {})) as admin:
        assert until(lambda: all(sorted(each.isr) == sorted(each.replicas) for each in admin.describe().partitions))


def test_reassignments_of_another_client_are_listed_and_cancelled(
    cluster: Cluster, frozen: tuple[str, int, int], tmp_path: Path
) -> None:
    topic, first, second = frozen
    plan = plan_file(tmp_path, topic, [first, second])
    with closing(open_admin(f"kafka://{cluster.brokers[first].address}", {})) as admin:
        assert admin.reassign(Targets.of([((topic, 0), (first, second))])) == (ErrorCode.NONE,)
    listed = Done(cluster, tmp_path, "reassign", "list", "-o", "json")
    assert [(row["topic"], row["adding"]) for row in listed.data["rows"]] == [(topic, [second])], listed.out
    shown = Done(cluster, tmp_path, "reassign", "cancel", "--plan", plan)
    assert (shown.code, "1 reassignment would be cancelled with --execute" in shown.err) == (0, True)
    assert len(Done(cluster, tmp_path, "reassign", "list", "-o", "json").data["rows"]) == 1
    assert Done(cluster, tmp_path, "reassign", "cancel", "--plan", plan, "--execute").code == 0
    assert Done(cluster, tmp_path, "reassign", "list", "-o", "json").data["rows"] == []
    assert client_capture(cluster)[topic, 0] == (first,)


def test_the_client_follows_the_controller(cluster: Cluster, topic: str) -> None:
    """It finds the new controller after the old one has lost the role."""
    admin = open_admin(f"kafka://{cluster.address}", {})
    assert admin.reassignments() == {}
    with session(cluster.zookeeper) as zookeeper:
        zookeeper.delete("/controller")
    assert admin.elect(ElectionType.PREFERRED, [(topic, 0)]) == {(topic, 0): ErrorCode.ELECTION_NOT_NEEDED}
    targets = Targets.of([((topic, 0), (1, 2, 9)), (("nowhere", 0), (1,)), ((topic, 1), None)])
    assert admin.reassign(targets) == (
        ErrorCode.INVALID_REPLICA_ASSIGNMENT,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.NO_REASSIGNMENT_IN_PROGRESS,
    )
    assert all(isinstance(reassignment, PartitionReassignment) for reassignment in admin.reassignments().values())
    admin.close()
