"""``kframe plan execute`` between the log directories of real brokers: an abort, a resumption and rollbacks."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any, Final

import pytest
from kframe_kafka_wire.admin.client import AdminClient, open_admin

from kframe.plans.execute.observation import log_paths
from kframe.plugin.admin import ConfigResource
from kframe.testing.waiting import until
from verification.kraft.kafka_nodes import KraftCluster, KraftOptions
from verification.zookeeper.commands import RunningCommand, invoke
from verification.zookeeper.kafka import KafkaClients

#: The log of t-0 takes a minute at SLOW.
RECORDS, RECORD = 3_000, "x" * 1_000
SLOW, FAST = ("--throttle", "50kB/s"), ("--throttle", "50MB/s")
RATE: Final = "replica.alter.log.dirs.io.max.bytes.per.second"
OPERATOR_RATE: Final = {ConfigResource(None, 1): {RATE: "12345678"}}


class DirectoryCluster:
    """Two brokers with two log directories each. Topic t has a replica on both, topic u on broker 1."""

    def __init__(self, nodes: KraftCluster, admin: AdminClient, folder: Path) -> None:
        self.nodes = nodes
        self.admin = admin
        self.folder = folder
        self.url = f"kafka://{nodes.address}"

    def directory(self, broker_id: int, number: int) -> str:
        return str(self.nodes.brokers[broker_id].log_dirs[number])

    def logs(self, topic: str) -> dict[int, tuple[str | None, str | None]]:
        """The directories of the log and the future log of partition 0 by broker."""
        self.admin.describe()
        listed = {
            broker_id: log_paths(directories) for broker_id, directories in self.admin.log_directories((1, 2)).items()
        }
        return {
            broker_id: (paths[topic, 0].current, paths[topic, 0].future)
            for broker_id, paths in listed.items()
            if (topic, 0) in paths
        }

    def plan(self, topic: str, replicas: list[int], log_dirs: list[str]) -> Path:
        path = self.folder / f"{topic}.json"
        entry = {"topic": topic, "partition": 0, "replicas": replicas, "log_dirs": log_dirs}
        path.write_text(json.dumps({"version": 1, "partitions": [entry]}))
        return path

    def run(self, *arguments: object) -> tuple[int, dict[str, Any], str]:
        """Run ``kframe plan ARGUMENTS``. Returns the exit code, the document and the error output."""
        done = invoke("plan", *arguments, "--interval", "0.2", "-o", "json", folder=self.folder)
        return done.returncode, json.loads(done.stdout) if done.stdout else {}, done.stderr


@pytest.fixture(scope="module")
def cluster(needs_java: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[DirectoryCluster]:
    folder = tmp_path_factory.mktemp("directories")
    options = KraftOptions(brokers=2, log_dirs=2, settings={"replica.fetch.max.bytes": "65536"})
    with KraftCluster(folder / "nodes", options) as nodes, closing(open_admin(f"kafka://{nodes.address}", {})) as admin:
        with closing(KafkaClients(folder / "clients", nodes.address)) as clients:
            clients.request("create", topic="t", replicas=[[1, 2]])
            clients.request("create", topic="u", replicas=[[1]])
            nodes.await_topics(["t", "u"])
            clients.request("produce", topic="t", partition=0, values=[RECORD] * RECORDS)
        yield DirectoryCluster(nodes, admin, folder)


def other(cluster: DirectoryCluster, broker_id: int, path: str | None) -> str:
    """The log directory of a broker that is not ``path``."""
    return cluster.directory(broker_id, int(path == cluster.directory(broker_id, 0)))


def test_moves_are_aborted_resumed_and_rolled_back(cluster: DirectoryCluster) -> None:
    assert cluster.admin.describe().brokers.keys() == {1, 2}
    assert set(cluster.admin.change_configs(OPERATOR_RATE).values()) == {0}
    before = cluster.logs("t")
    after = {broker_id: (other(cluster, broker_id, path), None) for broker_id, (path, _) in before.items()}
    plan, journal = cluster.plan("t", [1, 2], [path for path, _ in after.values()]), cluster.folder / "t.journal"
    dry = cluster.run("execute", cluster.url, plan, "--journal", journal, *SLOW)
    assert (dry[0], [row["source"] for row in dry[1]["directories"]]) == (0, [path for path, _ in before.values()])
    assert dry[1]["expected_seconds"] >= 50

    execute = ("plan", "execute", cluster.url, plan, "--journal", journal, *SLOW, "--interval", "0.2", "--execute")
    command = RunningCommand(cluster.folder / "execute", *execute)
    command.start()
    assert until(lambda: command.pid is None or all(future for _, future in cluster.logs("t").values())), command.log
    assert cluster.logs("t") == {broker_id: (before[broker_id][0], after[broker_id][0]) for broker_id in before}
    code, document, err = cluster.run("abort", journal)
    assert (code, document["result"], document["not_restored"]) == (0, "aborted", []), err
    assert until(lambda: command.pid is None), command.log
    assert cluster.logs("t") == before
    assert cluster.admin.read_configs({ConfigResource(None, each): [RATE] for each in (1, 2)}) == {
        **OPERATOR_RATE,
        ConfigResource(None, 2): {},
    }

    code, document, err = cluster.run("resume", journal, *FAST, "--execute")
    assert (code, document.get("result")) == (0, "completed"), err
    assert cluster.logs("t") == after
    code, document, err = cluster.run("rollback", journal, "--execute")
    assert (code, document.get("result")) == (0, "rolled back"), err
    assert cluster.logs("t") == before


def test_added_replica_is_created_in_its_directory_and_a_kept_one_moves(cluster: DirectoryCluster) -> None:
    before = cluster.logs("u")
    targets = [other(cluster, 1, before[1][0]), cluster.directory(2, 1)]
    plan, journal = cluster.plan("u", [2, 1], targets[::-1]), cluster.folder / "u.journal"
    code, document, err = cluster.run("execute", cluster.url, plan, "--journal", journal, "--execute")
    assert (code, document.get("result"), document.get("problems")) == (0, "completed", []), err
    assert cluster.logs("u") == {1: (targets[0], None), 2: (targets[1], None)}
    code, document, err = cluster.run("rollback", journal, "--execute")
    assert (code, document.get("result")) == (0, "rolled back"), err
    assert until(lambda: cluster.logs("u") == before), cluster.logs("u")


def test_directory_that_the_broker_lacks_is_refused_by_name(cluster: DirectoryCluster) -> None:
    plan = cluster.plan("refused", [1], ["/nowhere"])
    plan.write_text(plan.read_text().replace('"refused"', '"u"'))
    code, _, err = cluster.run("execute", cluster.url, plan)
    assert (code, "u-0: found log directory /nowhere of broker 1" in err) == (1, True), err
    codes = cluster.admin.alter_log_directories({1: {("u", 0): "/nowhere"}, 9: {("u", 0): "/nowhere"}})
    assert {broker_id: code[("u", 0)].name for broker_id, code in codes.items()} == {
        1: "LOG_DIR_NOT_FOUND",
        9: "BROKER_NOT_AVAILABLE",
    }
