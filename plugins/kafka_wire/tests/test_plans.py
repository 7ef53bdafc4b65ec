"""``kframe plan apply``, ``reassign`` and ``elect`` on real Kafka 3.9.1 brokers with Kafka's own controller."""

from __future__ import annotations

import itertools
import json
import signal
import subprocess
import sys
from contextlib import closing
from pathlib import Path
from typing import Any, Final

import pytest
from kframe_kafka_wire.client import open_admin
from kframe_zookeeper.testing.commands import invoke
from kframe_zookeeper.testing.handover import ClusterFixture
from kframe_zookeeper.testing.kafka import Cluster
from kframe_zookeeper.testing.process import PATIENCE_S, until
from kframe_zookeeper.testing.sessions import session

from kframe.errors import ErrorCode
from kframe.model.events import ElectionType
from kframe.model.tables import Targets
from kframe.snapshot.administration import PartitionReassignment

#: Start a program with SIGINT enabled, which the children of a background shell ignore.
INTERRUPTIBLE: Final = (
    sys.executable, "-c",
    "import os, signal, sys; signal.signal(signal.SIGINT, signal.SIG_DFL); os.execv(sys.argv[1], sys.argv[1:])",
)  # fmt: skip
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
        done = invoke(*arguments, "--bootstrap-server", cluster.address, folder=folder)
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
    shown = Done(cluster, tmp_path, "plan", "apply", plan, "-o", "json")
    assert (shown.code, shown.data["schema"]) == (0, "kframe.whatif/v1"), shown.err
    assert shown.data["reassignment"]["partitions"] == 3
    assert "nothing was changed" in shown.err
    assert list(tmp_path.glob("*.json")) == [plan]
    before = client_capture(cluster)

    done = Done(cluster, tmp_path, "plan", "apply", plan, "--execute", "--rollback", "back.json", "--batch-size", 2)
    assert (done.code, "as planned: 3 of 3 partitions" in done.err) == (0, True), done.err
    after = client_capture(cluster)
    assert [after[topic, number] for number in range(3)] == [(3, 1), (1, 2), (2, 3)]
    reapplied = Done(cluster, tmp_path, "plan", "apply", plan, "--execute", "--rollback", "back.json")
    assert (reapplied.code, "nothing was changed" in reapplied.err) == (2, True), "a way back is never written over"

    back = Done(cluster, tmp_path, "plan", "apply", "back.json", "--execute")
    assert back.code == 0, back.err
    assert client_capture(cluster) == before


def client_capture(cluster: Cluster) -> dict[tuple[str, int], tuple[int, ...]]:
    with closing(open_admin(f"kafka://{cluster.address}", {})) as admin:
        state = admin.capture().to_cluster()
    return {(partition.topic, partition.partition): partition.replicas for partition in state}


def test_stale_and_invalid_plans_are_refused(cluster: Cluster, topic: str, tmp_path: Path) -> None:
    plan = plan_file(tmp_path, topic, [3, 1])
    captured = tmp_path / "captured"
    assert invoke("snapshot", "capture", f"zookeeper://{cluster.zookeeper}", captured).returncode == 0
    planned = invoke("plan", "stamp", captured, plan)
    assert planned.returncode == 0, planned.stderr
    stamped = tmp_path / "stamped.json"
    stamped.write_text(planned.stdout)
    fresh = Done(cluster, tmp_path, "plan", "apply", stamped, "--execute")
    assert fresh.code == 0, fresh.err
    stale = Done(cluster, tmp_path, "plan", "apply", stamped, "--execute")
    assert (stale.code, "assigned anew since" in stale.err) == (4, True), stale.err
    unsound = Done(cluster, tmp_path, "plan", "apply", plan_file(tmp_path, topic, [9, 1]), "--execute")
    assert (unsound.code, "error:" in unsound.err) == (1, True)
    assert client_capture(cluster)[topic, 0] == (3, 1)


def test_a_reassignment_is_started_listed_and_cancelled(kafka: ClusterFixture, tmp_path: Path) -> None:
    """A broker is frozen, so the reassignment cannot complete. Ctrl-C does not cancel it."""
    cluster, first = kafka.cluster, kafka.controller()[0]
    second, frozen = sorted({1, 2, 3} - {first})
    topic = f"topic-{next(_numbers)}"
    kafka.clients.request("create", topic=topic, replicas=[[first, second]])
    plan = plan_file(tmp_path, topic, [first, frozen])
    cluster.brokers[frozen].pause()
    try:
        command = [sys.executable, "-m", "kframe.cli", "plan", "apply", str(plan), "--execute"]
        with (tmp_path / "err.txt").open("wb") as err:
            process = subprocess.Popen(
                [*INTERRUPTIBLE, *command, "--bootstrap-server", cluster.brokers[first].address],
                stderr=err, stdout=err, cwd=tmp_path,
            )  # fmt: skip
        try:
            errors = tmp_path / "err.txt"
            until(lambda: "1 moving" in errors.read_text() or process.poll() is not None)
            assert "1 moving" in errors.read_text(), errors.read_text()
            process.send_signal(signal.SIGINT)
            assert process.wait(PATIENCE_S) == 1
        finally:
            process.kill()
        assert "still in progress: 1 reassignment; to cancel: kframe plan cancel" in errors.read_text()

        listed = Done(cluster, tmp_path, "reassign", "list", "-o", "json")
        assert [(row["topic"], row["adding"]) for row in listed.data["rows"]] == [(topic, [frozen])], listed.out
        shown = Done(cluster, tmp_path, "plan", "cancel", plan)
        assert (shown.code, "; --execute " in shown.err) == (0, True)
        assert len(Done(cluster, tmp_path, "reassign", "list", "-o", "json").data["rows"]) == 1
        assert Done(cluster, tmp_path, "plan", "cancel", plan, "--execute").code == 0
        assert client_capture(cluster)[topic, 0] == (first, second)
    finally:
        cluster.brokers[frozen].resume()


def test_reassign_and_elect(cluster: Cluster, topic: str, tmp_path: Path) -> None:
    moved = Done(cluster, tmp_path, "reassign", "start", f"{topic}-0=2,1", "--execute")
    assert moved.code == 0, moved.err
    admin = open_admin(f"kafka://{cluster.address}", {})

    def leader() -> int | None:
        return admin.capture().to_cluster()[topic, 0].leader

    assert leader() == 1, "the leader stays while it has a replica"
    shown = Done(cluster, tmp_path, "elect", "--type", "preferred", "--partition", f"{topic}-0", "-o", "json")
    assert (shown.code, shown.data["schema"]) == (0, "kframe.whatif/v1"), shown.err
    assert leader() == 1
    elected = Done(
        cluster, tmp_path, "elect", "--type", "preferred", "--partition", f"{topic}-0", "--execute", "-o", "json"
    )
    assert (elected.code, [row["error"] for row in elected.data["rows"]]) == (0, ["NONE"]), elected.err
    assert until(lambda: leader() == 2)
    unknown = Done(
        cluster, tmp_path, "elect", "--type", "preferred", "--partition", "nowhere-0", "--execute", "-o", "json"
    )
    assert (unknown.code, unknown.data["rows"][0]["error"]) == (1, "UNKNOWN_TOPIC_OR_PARTITION")
    admin.close()


def test_the_client_follows_the_controller(cluster: Cluster, topic: str) -> None:
    """It finds the new controller after the old one has lost the role."""
    admin = open_admin(f"kafka://{cluster.address}", {})
    assert admin.reassignments() == {}
    with session(cluster.zookeeper) as zookeeper:
        zookeeper.delete("/controller")
    assert admin.elect(ElectionType.PREFERRED, [(topic, 0)]) == {(topic, 0): ErrorCode.ELECTION_NOT_NEEDED}
    targets = Targets.of([((topic, 0), (1, 2, 9)), (("nowhere", 0), (1,)), ((topic, 1), None)])
    assert admin.reassign(targets) == (
        ErrorCode.INVALID_REPLICA_ASSIGNMENT, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.NO_REASSIGNMENT_IN_PROGRESS,
    )  # fmt: skip
    assert all(isinstance(reassignment, PartitionReassignment) for reassignment in admin.reassignments().values())
    admin.close()
