"""Real clusters of 2.8, 3.9 and 4.4: captures through brokers, and what-ifs on the output of ``kafka-topics``.

Each cluster has two brokers; broker 2 fails during the test.
"""

from __future__ import annotations

import csv
import json
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import pytest

from kframe import Snapshot, read_snapshot
from kframe.testing.waiting import until
from verification.kafka_wire import tools
from verification.kafka_wire.secured import PLAIN_MODULE, login, tls_settings
from verification.kraft.kafka_nodes import KraftCluster, KraftOptions
from verification.kraft.kafka_tools import tool_jars
from verification.zookeeper.certificates import Authority
from verification.zookeeper.commands import invoke, kframe_json
from verification.zookeeper.java import JVM
from verification.zookeeper.kafka import Cluster, KafkaClients, jars
from verification.zookeeper.process import Process
from verification.zookeeper.servers import HOST, ServerHandle

#: Replicas of the partitions of each topic.
TOPICS: Final = {"orders": [[1, 2], [2, 1], [2, 1]], "lone": [[2]], "moving": [[1]]}
CONFIGS: Final = {"orders": {"min.insync.replicas": "2", "retention.ms": "3600000", "cleanup.policy": "compact,delete"}}
#: Values of records by topic, so that partitions differ in size.
RECORDS: Final = {"lone": ["a" * 1000], "moving": ["b", "c" * 5000]}
#: A setting in the file of every broker, which ZooKeeper does not have.
STATIC: Final = {"min.insync.replicas": "1", "unclean.leader.election.enable": "false"}
OLD_TOPIC_COMMAND: Final = "kafka.admin.TopicCommand"
TOPIC_COMMAND: Final = "org.apache.kafka.tools.TopicCommand"


@dataclass
class Running:
    """A running cluster of two brokers."""

    address: str
    survivor: str
    """The address of broker 1."""
    brokers: Mapping[int, Process]
    topics_command: tuple[Path, str]
    """The jars and the main class of ``kafka-topics``."""
    zookeeper: str = ""
    secured: tuple[str, Mapping[str, str]] | None = None
    """The address of a SASL_SSL listener and the settings of its clients."""
    folder: Path = field(default_factory=Path)
    clients: KafkaClients = field(init=False)

    def describe(self) -> list[str]:
        libraries, main = self.topics_command
        return ["java", *JVM, "-cp", f"{libraries}/*", main, "--describe", "--bootstrap-server", self.survivor]

    def described(self) -> Snapshot:
        """What ``kafka-topics --describe`` prints."""
        output = subprocess.run(self.describe(), check=True, capture_output=True, text=True).stdout
        path = self.folder / "described.txt"
        path.write_text(output)
        return read_snapshot(path)

    def captured(self, name: str, url: str = "", *options: str) -> Path:
        """A capture through the brokers, or from another URL."""
        target = self.folder / name
        done = invoke("snapshot", "capture", url or f"kafka://{self.survivor}", target, *options, "-o", "json")
        assert done.returncode == 0, done.stderr
        assert json.loads(done.stdout)["consistent"], done.stdout
        return target


@contextmanager
def zookeeper_mode(
    folder: Path, zookeeper: ServerHandle, version: str, main: str, libraries: Callable[[], Path], *, secured: bool
) -> Iterator[Running]:
    authority = Authority(folder / "tls")
    settings = dict(STATIC)
    if secured:
        settings |= {
            **tls_settings(authority.path, authority.issue("node", HOST).key_and_certificate),
            "listeners": f"PLAINTEXT://{HOST}:{{port}},SASL_SSL://{HOST}:{{other_port}}",
            "sasl.enabled.mechanisms": "PLAIN",
            "listener.name.sasl_ssl.plain.sasl.jaas.config": f'{PLAIN_MODULE} user_operator="secret";',
        }
    cluster = Cluster(folder, f"{zookeeper.address}/capture-{version}", (1, 2), settings, version)
    try:
        cluster.brokers[1].start()
        cluster.brokers[1].await_started()  # So that broker 1 is the controller.
        cluster.start()
        client = {
            "security.protocol": "SASL_SSL",
            **tls_settings(authority.path),
            **login("PLAIN", "operator", "secret"),
        }
        yield Running(
            cluster.address,
            cluster.brokers[1].address,
            cluster.brokers,
            (libraries(), main),
            cluster.zookeeper,
            (f"{HOST}:{cluster.brokers[1].other_port}", client) if secured else None,
            folder,
        )
    finally:
        cluster.kill()


@contextmanager
def kraft_mode(folder: Path) -> Iterator[Running]:
    settings = {**STATIC, "broker.session.timeout.ms": "6000"}
    with KraftCluster(folder, KraftOptions("4.4.0", brokers=2, settings=settings)) as cluster:
        brokers = cluster.brokers
        yield Running(cluster.address, brokers[1].address, brokers, (tool_jars(), TOPIC_COMMAND), folder=folder)


@pytest.fixture(params=[pytest.param("2.8.2", marks=pytest.mark.extended), "3.9.1", "4.4.0"])
def cluster(request: pytest.FixtureRequest, zookeeper: ServerHandle, tmp_path: Path) -> Iterator[Running]:
    """A cluster with TOPICS and CONFIGS."""
    version = request.param
    if version == "4.4.0":
        starting = kraft_mode(tmp_path)
    else:
        main, libraries = (
            (OLD_TOPIC_COMMAND, lambda: jars(version)) if version == "2.8.2" else (TOPIC_COMMAND, tools.jars)
        )
        starting = zookeeper_mode(tmp_path, zookeeper, version, main, libraries, secured=version == "3.9.1")
    with starting as running:
        clients = KafkaClients(tmp_path / "clients", running.address)
        try:
            for topic, replicas in TOPICS.items():
                clients.request("create", topic=topic, replicas=replicas)
                for key, value in CONFIGS.get(topic, {}).items():
                    clients.request("configure", topic=topic, key=key, value=value)
            assert until(lambda: isrs(clients) == {name: [set(ids) for ids in TOPICS[name]] for name in TOPICS})
            for topic, values in RECORDS.items():
                assert clients.request("produce", topic=topic, partition=0, values=values) == len(values)
            running.clients = clients
            yield running
        finally:
            clients.close()


def isrs(clients: KafkaClients) -> dict[str, list[set[int]]]:
    """The ISR of each partition by topic, as Kafka's client describes it."""
    return {
        topic: [set(partition["isr"]) for _, partition in sorted(partitions.items())]
        for topic, partitions in clients.request("describe").items()
        if not topic.startswith("__")
    }


def partitions(snapshot: Snapshot, *columns: str) -> dict[str, list[Any]]:
    """These columns of each partition, by name."""
    rows = snapshot.to_arrow().to_pylist()
    return {f"{row['topic']}-{row['partition']}": [row[column] for column in columns] for row in rows}


def configs(snapshot: Snapshot) -> dict[str, dict[str, str]]:
    """The own settings of topics, with sorted lists."""
    assert snapshot.topics.configs is not None
    return {
        snapshot.topics.names[index]: {key: ",".join(sorted(value.split(","))) for key, value in settings.items()}
        for index, settings in snapshot.topics.configs.items()
    }


def topic_ids(snapshot: Snapshot) -> list[bytes]:
    assert snapshot.topics.topic_ids is not None
    return [topic_id.tobytes() for topic_id in snapshot.topics.topic_ids]


def compare_with_describe(captured: Snapshot, described: Snapshot) -> None:
    columns = ["leader", "replicas", "isr", "adding_replicas", "removing_replicas", "elr", "last_known_elr"]
    assert partitions(captured, *columns) == partitions(described, *columns)
    assert captured.mode == described.mode
    assert topic_ids(captured) == topic_ids(described)
    printed = configs(described)  # kafka-topics prints settings of brokers, too.
    assert configs(captured).keys() == CONFIGS.keys()
    assert all(printed[topic].items() >= settings.items() for topic, settings in configs(captured).items())


def compare_with_zookeeper(captured: Snapshot, stored: Snapshot) -> None:
    columns = ["leader", "leader_epoch", "replicas", "isr", "adding_replicas", "removing_replicas"]
    assert partitions(captured, *columns) == partitions(stored, *columns)
    assert topic_ids(captured) == topic_ids(stored)
    assert configs(captured) == configs(stored)
    assert (captured.cluster_id, captured.controller_id) == (stored.cluster_id, stored.controller_id)
    registered = [
        [(broker.broker_id, broker.rack) for broker in snapshot.brokers if broker.registered]
        for snapshot in (captured, stored)
    ]
    assert registered[0] == registered[1]
    defaults = dict(captured.broker_default_configs or {})
    assert defaults == {**STATIC, **(stored.broker_default_configs or {})}


def test_capture_describe_and_what_if_agree(cluster: Running) -> None:
    sizes = cluster.folder / "sizes.csv"
    healthy = cluster.captured("healthy", "", "--log-dirs", str(sizes))
    captured = read_snapshot(healthy)
    compare_with_describe(captured, cluster.described())
    compare_with_disks(cluster, captured, sizes)
    assert configs(captured) == {
        topic: {**settings, "cleanup.policy": "compact,delete"} for topic, settings in CONFIGS.items()
    }
    assert [broker.broker_id for broker in captured.brokers if broker.registered] == [1, 2]
    if cluster.zookeeper:
        compare_with_zookeeper(captured, read_snapshot(cluster.captured("stored", f"zookeeper://{cluster.zookeeper}")))
    else:
        assert captured.kraft is not None
        assert captured.kraft.voters == (captured.controller_id,)
    if cluster.secured is not None:
        address, settings = cluster.secured
        properties = cluster.folder / "client.properties"
        properties.write_text("".join(f"{key}={value}\n" for key, value in settings.items()))
        secured = read_snapshot(cluster.captured("secured", f"kafka://{address}", "--command-config", str(properties)))
        assert partitions(secured, "leader", "leader_epoch", "isr") == partitions(
            captured, "leader", "leader_epoch", "isr"
        )
        assert {end.security_protocol for broker in secured.brokers for end in broker.endpoints or ()} == {"SASL_SSL"}

    output = whatif_on_pipe(cluster, "-o", "json")
    assert json.loads(output)["snapshot"]["mode"] == ("zookeeper" if cluster.zookeeper else "kraft")
    predicted = leaders(output)
    assert predicted == leaders(json.dumps(kframe_json("whatif", "fail", healthy, "--brokers", "2")))
    assert "leaders moved" in whatif_on_pipe(cluster)

    fail_during_reassignment(cluster)
    failed = read_snapshot(cluster.captured("failed"))
    compare_with_describe(failed, cluster.described())
    actual = {name: leader for name, (leader,) in partitions(failed, "leader").items()}
    assert actual == {name: predicted.get(name, 1) for name in actual}
    assert partitions(failed, "replicas", "adding_replicas")["moving-0"] == [[1, 2], [2]]
    assert [broker.broker_id for broker in failed.brokers if not broker.registered] == [2]
    if cluster.zookeeper:
        compare_with_zookeeper(failed, read_snapshot(cluster.captured("left", f"zookeeper://{cluster.zookeeper}")))
    else:
        assert partitions(failed, "elr")["orders-0"] == [[2]]
        last = invoke("whatif", "fail", cluster.folder / "failed", "--brokers", "1", "--fail-on", "offline")
        assert last.returncode == 3, last.stderr


def compare_with_disks(cluster: Running, captured: Snapshot, sizes: Path) -> None:
    """The sizes equal those of the files, the directories are those of the brokers, and a plan uses them."""
    with sizes.open(newline="") as file:
        rows = {f"{row['topic']}-{row['partition']}": row for row in csv.DictReader(file)}
    assert {name: int(row["bytes"]) for name, row in rows.items()} == {
        name: max(map(log_bytes, cluster.folder.rglob(name))) for name in partitions(captured)
    }
    assert int(rows["moving-0"]["bytes"]) > int(rows["lone-0"]["bytes"]) > 1000
    for name, ((*broker_ids,),) in partitions(captured, "replicas").items():
        replicas = json.loads(rows[name]["replicas"])
        assert [replica["broker_id"] for replica in replicas] == broker_ids
        assert {(Path(replica["log_dir"]) / name).is_dir() for replica in replicas} == {True}
    planned = invoke("plan", "generate", cluster.folder / "healthy", "--rebalance", "--weights", sizes, "-o", "json")
    report = json.loads(planned.stdout)
    # The largest of so few partitions may be more than its broker's share.
    assert planned.returncode == (0 if report["targets_met"] else 1), planned.stderr
    assert report["moves"]["unit"] == "bytes"
    assert sum(broker["bytes_before"] for broker in report["brokers"]) == sum(
        int(row["bytes"]) for row in rows.values()
    )


def log_bytes(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.glob("*.log"))


def fail_during_reassignment(cluster: Running) -> None:
    """Kill broker 2 while a partition is being reassigned to it.

    Kafka's ZooKeeper-mode controller refuses targets that are not registered, so broker 2 is only paused first. A KRaft
    controller accepts fenced targets. There a client may send the request to any broker, a paused one included.
    """
    if cluster.zookeeper:
        cluster.brokers[2].pause()
        cluster.clients.request("reassign", topic="moving", partition=0, replicas=[1, 2])
    cluster.brokers[2].kill()
    assert until(lambda: isrs(cluster.clients)["orders"] == [{1}, {1}, {1}])
    if not cluster.zookeeper:
        cluster.clients.request("reassign", topic="moving", partition=0, replicas=[1, 2])


def whatif_on_pipe(cluster: Running, *options: str) -> str:
    """The output of ``kafka-topics --describe 2>&1 | kframe whatif fail - --brokers 2``."""
    whatif = [sys.executable, "-m", "kframe.cli", "whatif", "fail", "-", "--brokers", "2", *options]
    with subprocess.Popen(cluster.describe(), stdout=subprocess.PIPE, stderr=subprocess.STDOUT) as describe:
        done = subprocess.run(whatif, stdin=describe.stdout, capture_output=True, text=True, check=False)
    assert (describe.returncode, done.returncode) == (0, 0), done.stderr
    return done.stdout


def leaders(document: str) -> dict[str, int]:
    """The new leaders in a what-if, by partition; -1 for none."""
    changes = json.loads(document)["partitions"]
    return {f"{change['topic']}-{change['partition']}": change["leader_after"] for change in changes}
