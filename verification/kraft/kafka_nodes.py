"""Real Kafka nodes in KRaft mode for tests, on loopback, of any release on Maven Central from 3.9 on.

``KraftCluster`` formats and starts controllers and brokers. They need a JDK and, once for each machine and release,
Maven. ``verification.zookeeper.java.missing()`` names a missing requirement.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Final
from uuid import UUID, uuid4

from kframe_kraft.sources.detection import LOG_DIRECTORY

from kframe.plugin.kraft import uuid_text
from kframe.testing.waiting import until, wait_until
from verification.kafka_wire.broker_metadata import metadata
from verification.kraft.kafka_tools import KafkaTools, node_jars
from verification.zookeeper.java import JVM, missing, sharing
from verification.zookeeper.process import Process
from verification.zookeeper.servers import HOST, free_ports

__all__ = ["CLUSTER_ID", "RELEASES", "KraftCluster", "KraftNode", "KraftOptions", "missing"]

#: The releases that tests run.
RELEASES: Final = ("3.9.1", "4.0.2", "4.1.2", "4.2.2", "4.3.1", "4.4.0")
CLUSTER_ID: Final = "a2ZyYW1lLWtyYWZ0LXRlc3"
#: The node id of the first controller in a process of its own.
CONTROLLER_ID: Final = 3000
_START_S: Final = 150.0
_STARTED: Final = "Kafka Server started"
#: Small settings: the nodes of a test share two cores, and serve one client.
_SETTINGS: Final = {
    "auto.create.topics.enable": "false",
    "auto.leader.rebalance.enable": "false",
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "super.users": "User:ANONYMOUS",
    "metadata.max.idle.interval.ms": "0",
    "offsets.topic.num.partitions": "3",
    "log.cleaner.enable": "false",
    "num.network.threads": "1",
    "num.io.threads": "2",
    "background.threads": "1",
    # As long as the tests wait for a start: several processes start at once on two cores.
    "initial.broker.registration.timeout.ms": "150000",
}


@dataclass(frozen=True, slots=True)
class KraftOptions:
    """The nodes of a cluster and how they are formatted."""

    version: str = RELEASES[-1]
    brokers: int = 1
    controllers: int = 1
    combined: bool = True
    """The first brokers are also the controllers. Otherwise controllers are processes of their own, from id 3000 on."""
    log_dirs: int = 1
    """Log directories of each broker. The metadata log is in the first one."""
    dynamic_quorum: bool = False
    """Format with ``--initial-controllers``, so that ``kraft.version`` is 1 and the voters are in the log."""
    release: str | None = None
    """``--release-version`` of the format. By default the newest ``metadata.version`` of the nodes."""
    elr: bool | None = None
    """The level of ``eligible.leader.replicas.version``. By default that of the release."""
    format_arguments: tuple[str, ...] = ()
    """Further arguments of ``kafka-storage format``."""
    settings: Mapping[str, str] = field(default_factory=dict)
    """Settings of all nodes. They replace the defaults of the tests."""


class KraftNode(Process):
    """A controller, a broker, or both in one process. It can be stopped, killed, frozen, and restarted on its data."""

    def __init__(self, folder: Path, node_id: int, roles: Sequence[str], options: KraftOptions) -> None:
        """``roles`` are ``controller`` and ``broker``. ``configure`` writes the configuration."""
        super().__init__()
        self.id = node_id
        self.roles = tuple(roles)
        self.folder = folder
        self.options = options
        self.directory_id: UUID = uuid4()
        """The directory id that a dynamic quorum knows the controller by."""
        self.port, self.controller_port = free_ports(2)
        self._starts = 0
        folder.mkdir(parents=True)

    @property
    def address(self) -> str:
        """The bootstrap address of the broker."""
        return f"{HOST}:{self.port}"

    @property
    def controller_address(self) -> str:
        """The address of the controller listener."""
        return f"{HOST}:{self.controller_port}"

    @property
    def config_path(self) -> Path:
        """The path of ``server.properties``."""
        return self.folder / "server.properties"

    @property
    def log_dirs(self) -> list[Path]:
        """The log directories. The first one has the metadata log."""
        count = self.options.log_dirs if "broker" in self.roles else 1
        return [self.folder / f"data-{number}" for number in range(count)]

    @property
    def metadata_log(self) -> Path:
        """The directory of the metadata log."""
        return self.log_dirs[0] / LOG_DIRECTORY

    @property
    def log(self) -> str:
        """All output."""
        path = self.folder / "log.txt"
        return path.read_text(errors="replace") if path.exists() else ""

    def configure(self, quorum: Mapping[str, str], **settings: str) -> None:
        """Write ``server.properties`` with the settings of the quorum. ``settings`` have underscores for dots."""
        listeners = []
        if "broker" in self.roles:
            listeners.append(f"PLAINTEXT://{self.address}")
        if "controller" in self.roles:
            listeners.append(f"CONTROLLER://{self.controller_address}")
        lines = {
            **_SETTINGS,
            "offsets.topic.replication.factor": str(min(3, self.options.brokers)),
            "process.roles": ",".join(self.roles),
            "node.id": str(self.id),
            "listeners": ",".join(listeners),
            "controller.listener.names": "CONTROLLER",
            "log.dirs": ",".join(map(str, self.log_dirs)),
            **quorum,
            **self.options.settings,
            **{key.replace("_", "."): value for key, value in settings.items()},
        }
        self.config_path.write_text("".join(f"{key}={value}\n" for key, value in lines.items()))

    def start(self, options: Sequence[str] | None = None) -> None:
        """Start the process. ``await_started`` waits until it serves. JVM ``options`` replace ``mapped``."""
        options = mapped(self.options.version) if options is None else options
        heap = "-Xmx192m" if "broker" in self.roles else "-Xmx128m"
        self._starts += 1
        self._launch(
            [
                "java",
                *JVM,
                *options,
                heap,
                "-Dorg.slf4j.simpleLogger.showDateTime=true",
                "-cp",
                f"{node_jars(self.options.version)}/*",
                "kafka.Kafka",
                str(self.config_path),
            ],
            self.folder,
        )

    def await_started(self) -> None:
        """Return when the node has started; a broker is then unfenced. Raises RuntimeError after 150 s."""
        until(lambda: self.pid is None or self.log.count(_STARTED) >= self._starts, _START_S)
        if self.pid is None or self.log.count(_STARTED) < self._starts:
            raise RuntimeError(f"node {self.id} does not start:\n{self.log[-4000:]}")


class KraftCluster:
    """Formatted nodes of one cluster. It is a context manager that starts all nodes, and kills them at the end."""

    def __init__(self, folder: Path, options: KraftOptions = KraftOptions()) -> None:
        """Format the directories of all nodes below ``folder``."""
        self.folder = folder
        self.options = options
        broker_ids = range(1, options.brokers + 1)
        first = 1 if options.combined else CONTROLLER_ID
        controller_ids = range(first, first + options.controllers)
        self.nodes = {
            node_id: KraftNode(
                folder / f"node-{node_id}",
                node_id,
                [role for role, ids in (("broker", broker_ids), ("controller", controller_ids)) if node_id in ids],
                options,
            )
            for node_id in sorted({*broker_ids, *controller_ids})
        }
        self._format()

    @property
    def brokers(self) -> dict[int, KraftNode]:
        """The nodes that are brokers, by id."""
        return {node.id: node for node in self.nodes.values() if "broker" in node.roles}

    @property
    def controllers(self) -> dict[int, KraftNode]:
        """The nodes that are controllers, by id."""
        return {node.id: node for node in self.nodes.values() if "controller" in node.roles}

    @property
    def address(self) -> str:
        """The bootstrap addresses of the running brokers."""
        return ",".join(node.address for node in self.brokers.values() if node.pid is not None)

    def start(self) -> None:
        """Start all stopped nodes together, and return when all serve."""
        stopped = [node for node in self.nodes.values() if node.pid is None]
        for node in stopped:
            node.start()
        for node in stopped:
            node.await_started()

    def stop(self) -> None:
        """Stop all nodes in order, brokers first."""
        for node in sorted(self.nodes.values(), key=lambda node: "controller" in node.roles):
            node.stop()

    def kill(self) -> None:
        """Kill all nodes at the end of a test."""
        for node in self.nodes.values():
            node.kill()

    def __enter__(self) -> KraftCluster:
        try:
            self.start()
        except BaseException:
            self.kill()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.kill()

    def admin(self, tools: KafkaTools, script: str, *arguments: object) -> str:
        """Return the output of a Kafka tool that is run against the brokers. Raises ToolError if it fails."""
        return tools.run(script, "--bootstrap-server", self.address, *arguments)

    def produce(self, tools: KafkaTools, topic: str, count: int, size: int) -> None:
        """Write ``count`` records of ``size`` bytes with acks=all. Raises ToolError if it fails."""
        limits = ("--num-records", count, "--record-size", size, "--throughput", -1)
        properties = ("--producer-props", f"bootstrap.servers={self.address}", "acks=all")
        output = tools.run("kafka-producer-perf-test", "--topic", topic, *limits, *properties)
        assert f"{count} records sent" in output, output

    def await_topics(self, names: Collection[str]) -> None:
        """Return when every running broker knows these topics: a request may go to any of them."""
        running = [node.address for node in self.brokers.values() if node.pid is not None]

        def are_known() -> bool:
            known = ({topic["name"] for topic in metadata(address)["topics"]} for address in running)
            return all(each.issuperset(names) for each in known)

        wait_until(are_known)

    def reassign(self, tools: KafkaTools, topic: str, replicas: Sequence[int], *action: str) -> None:
        """Run ``kafka-reassign-partitions`` for partition 0 of a topic. ``action`` is ``--execute`` or ``--cancel``."""
        plan = self.folder / "plan.json"
        reassignments = [{"topic": topic, "partition": 0, "replicas": list(replicas)}]
        plan.write_text(json.dumps({"version": 1, "partitions": reassignments}))
        self.admin(tools, "kafka-reassign-partitions", *action, "--reassignment-json-file", plan)

    def _format(self) -> None:
        options, controllers = self.options, self.controllers.values()
        arguments = ["format", "-t", CLUSTER_ID, *options.format_arguments]
        if options.release is not None:
            arguments += ["--release-version", options.release]
        if options.elr is not None:
            arguments += ["--feature", f"eligible.leader.replicas.version={int(options.elr)}"]
        if options.dynamic_quorum:
            quorum = {"controller.quorum.bootstrap.servers": ",".join(node.controller_address for node in controllers)}
            voters = (f"{node.id}@{node.controller_address}:{uuid_text(node.directory_id)}" for node in controllers)
            dynamic = ["--initial-controllers", ",".join(voters)]
        else:
            quorum = {
                "controller.quorum.voters": ",".join(f"{node.id}@{node.controller_address}" for node in controllers)
            }
            dynamic = []
        with KafkaTools(self.folder / "format", node_jars(options.version)) as tools:
            for node in self.nodes.values():
                node.configure(quorum)
                tools.run(
                    "kafka-storage",
                    *arguments,
                    *(dynamic if "controller" in node.roles else ()),
                    "-c",
                    node.config_path,
                )


@cache
def mapped(version: str) -> tuple[str, ...]:
    """JVM options that map the classes of a node of this release."""
    return sharing(f"kraft-node-{version}", node_jars(version), lambda options: _train(version, options))


def _train(version: str, jvm_options: tuple[str, ...]) -> None:
    """Start and stop a node with these options."""
    with tempfile.TemporaryDirectory() as scratch:
        (node,) = KraftCluster(Path(scratch), KraftOptions(version)).nodes.values()
        try:
            node.start(jvm_options)
            node.await_started()
            node.stop()
        finally:
            node.kill()
