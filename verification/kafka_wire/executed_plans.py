"""Real clusters of four brokers under load, and processes of ``kframe plan execute`` that tests kill."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from typing import Any, Final, TypeAlias

from kframe_kafka_wire.admin.client import AdminClient, open_admin

from kframe.plugin.admin import ConfigResource
from kframe.testing.waiting import until
from verification.kafka_wire.load import ProducerLoad
from verification.kraft.kafka_nodes import KraftCluster, KraftNode, KraftOptions
from verification.zookeeper.commands import RunningCommand, invoke, kframe_json
from verification.zookeeper.kafka import Cluster, KafkaClients, KafkaProcess
from verification.zookeeper.servers import ServerHandle, ServerOptions, running

BROKERS: Final = (1, 2, 3, 4)
ZOOKEEPER, KRAFT = "3.9.1 with ZooKeeper", "4.4.0 with KRaft"
TOPIC: Final = "records"
#: Each is a batch for three brokers, whose processor time other tests need.
RECORDS_PER_SECOND: Final = 20
#: The assignment before any plan: broker 4 has no replica.
REPLICAS: Final = [[1, 2, 3], [2, 3, 1], [3, 1, 2], [1, 3, 2], [2, 1, 3], [3, 2, 1]]
_SETTINGS: Final = {"min.insync.replicas": "2", "zookeeper.session.timeout.ms": "6000"}
_KRAFT_SETTINGS: Final = {
    "min.insync.replicas": "2",
    "broker.session.timeout.ms": "6000",
    "broker.heartbeat.interval.ms": "1000",
}
_RATES: Final = ("leader.replication.throttled.rate", "follower.replication.throttled.rate")
#: The settings that are throttles.
_THROTTLES: Final = {
    ConfigResource(TOPIC): ("leader.replication.throttled.replicas", "follower.replication.throttled.replicas"),
    **{ConfigResource(None, broker_id): _RATES for broker_id in BROKERS},
}
#: What operators had set before any plan.
OPERATOR_THROTTLES: Final[Mapping[ConfigResource, Mapping[str, str]]] = {
    ConfigResource(TOPIC): {"leader.replication.throttled.replicas": "0:9"},
    ConfigResource(None, 2): {"follower.replication.throttled.rate": "12345678"},
}

BrokerProcess: TypeAlias = KafkaProcess | KraftNode


class ExecutedCluster:
    """A cluster with a topic, throttles of operators, and a producer with ``acks=all`` at a steady rate."""

    def __init__(self, kind: str, brokers: Mapping[int, BrokerProcess], folder: Path) -> None:
        """The brokers run. Create the topic and start the producer. ``kind`` is ZOOKEEPER or KRAFT."""
        self.kind = kind
        self.brokers = brokers
        self.folder = folder
        self.address = ",".join(broker.address for broker in brokers.values())
        with closing(KafkaClients(folder / "clients", self.address)) as clients:
            clients.request("create", topic=TOPIC, replicas=REPLICAS)
        self.admin: AdminClient = open_admin(f"kafka://{self.address}", {})
        assert until(lambda: len(self.admin.describe().brokers) == len(brokers))
        assert until(lambda: len(self.assignment()) == len(REPLICAS))
        assert set(self.admin.change_configs(OPERATOR_THROTTLES).values()) == {0}
        self.load = ProducerLoad(folder / "load", self.address, TOPIC, len(REPLICAS), RECORDS_PER_SECOND)
        self.load.await_more(RECORDS_PER_SECOND)

    def close(self) -> None:
        """End the producer."""
        self.load.close()
        self.admin.close()

    def assignment(self) -> list[list[int]]:
        """The replicas of each partition."""
        described = {each.partition: list(each.replicas) for each in self.admin.describe().partitions}
        return [described[partition] for partition in sorted(described)]

    def throttles(self) -> dict[ConfigResource, dict[str, str]]:
        """All throttles that are set."""
        configs = self.admin.read_configs(_THROTTLES)
        return {resource: values for resource, values in configs.items() if values}

    def is_settled(self, replicas: Sequence[Sequence[int]]) -> bool:
        """Whether partitions have these replicas, all in sync, nothing is in flight, and throttles are as before."""
        description = self.admin.describe()
        return (
            self.assignment() == [list(each) for each in replicas]
            and not description.reassignments
            and all(sorted(each.isr) == sorted(each.replicas) for each in description.partitions)
            and self.throttles() == OPERATOR_THROTTLES
        )

    def await_settled(self, replicas: Sequence[Sequence[int]]) -> None:
        """Wait until ``is_settled``: brokers describe the end of a reassignment slightly later."""
        assert until(lambda: self.is_settled(replicas)), (self.assignment(), self.throttles(), self.admin.describe())

    def plan(self, name: str, replicas: Sequence[Sequence[int]]) -> Path:
        """A plan for all partitions, as a file."""
        path = self.folder / f"{name}.json"
        parts = [{"topic": TOPIC, "partition": number, "replicas": list(each)} for number, each in enumerate(replicas)]
        path.write_text(json.dumps({"version": 1, "partitions": parts}))
        return path

    def generate_stages(self, name: str, *goals: object) -> tuple[Path, list[list[int]]]:
        """The folder of a generated plan in stages of two replicas for each broker, and the assignment after it.

        The snapshot and the sizes of partitions are captured first.
        """
        snapshot, sizes, plan, stages = (self.folder / f"{name}{end}" for end in ("", ".csv", ".json", "-stages"))
        kframe_json("snapshot", "capture", f"kafka://{self.address}", snapshot, "--log-dirs", sizes)
        kframe_json("plan", "generate", snapshot, *goals, "--weights", sizes, "--out", plan)
        kframe_json("plan", "stage", snapshot, plan, "--weights", sizes, "--max-moves-per-broker", 2, "--out", stages)
        replicas = self.assignment()
        for part in json.loads(plan.read_text())["partitions"]:
            replicas[part["partition"]] = part["replicas"]
        return stages, replicas

    def start(self, name: str, plan: Path, *arguments: object) -> RunningCommand:
        """Start ``kframe plan execute`` with the journal ``name``."""
        command = RunningCommand(
            self.folder / f"run-{name}",
            "plan",
            "execute",
            f"kafka://{self.address}",
            plan,
            "--journal",
            self.journal(name),
            "--execute",
            "--interval",
            "0.5",
            *arguments,
        )
        command.start()
        return command

    def journal(self, name: str) -> Path:
        """The journal ``name``."""
        return self.folder / f"{name}.journal"

    def await_lines(self, name: str, count: int, command: RunningCommand) -> None:
        """Wait until a journal has so many entries, or the command has ended."""
        path = self.journal(name)

        def is_long() -> bool:
            return path.exists() and path.read_bytes().count(b"\n") >= count

        assert until(lambda: is_long() or command.pid is None), command.log
        assert is_long(), command.log

    def run(self, verb: str, name: str, *arguments: object) -> tuple[int, dict[str, Any], str]:
        """Run ``kframe plan VERB`` on a journal. Returns the exit code, the document and the error output."""
        act = () if verb in ("pause", "abort", "status") else ("--execute",)
        rounds = () if verb == "status" else ("--interval", "0.5")
        done = invoke("plan", verb, self.journal(name), *act, *rounds, "-o", "json", *arguments)
        return done.returncode, json.loads(done.stdout) if done.stdout else {}, done.stderr

    def execute(
        self, name: str, replicas: Sequence[Sequence[int]], *arguments: object, plan: Path | None = None
    ) -> None:
        """Execute a plan for these replicas to its end: that of a file or folder, or a new one."""
        command = self.start(name, plan or self.plan(name, replicas), *arguments)
        assert until(lambda: command.pid is None), command.log
        self.await_settled(replicas)
        code, document, _ = self.run("status", name)
        assert (code, document["result"]) == (0, "completed"), command.log

    def restart(self, broker_id: int) -> None:
        """Start a killed broker."""
        self.brokers[broker_id].start()
        self.brokers[broker_id].await_started()


@contextmanager
def executed_cluster(kind: str, folder: Path) -> Iterator[ExecutedCluster]:
    """A running cluster of a kind, ZOOKEEPER or KRAFT."""
    with ExitStack() as stack:
        brokers: Mapping[int, BrokerProcess]
        if kind == KRAFT:
            options = KraftOptions("4.4.0", brokers=len(BROKERS), settings=_KRAFT_SETTINGS)
            brokers = stack.enter_context(KraftCluster(folder / "nodes", options)).brokers
        else:
            server = stack.enter_context(running(ServerHandle(folder / "zookeeper", ServerOptions())))
            cluster = Cluster(folder / "kafka", server.address, BROKERS, _SETTINGS)
            stack.callback(cluster.kill)
            cluster.start()
            brokers = cluster.brokers
        yield stack.enter_context(closing(ExecutedCluster(kind, brokers, folder)))
