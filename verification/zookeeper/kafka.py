"""Real Kafka brokers for tests, in ZooKeeper mode on loopback: 3.9.1 or another release from Maven Central.

``Cluster`` is a set of brokers on one ZooKeeper. ``KafkaClients`` is a JVM with Kafka's own clients and znode encoders.
They need a JDK and, once for each machine, Maven. ``java.missing()`` names a missing requirement.
"""

from __future__ import annotations

import base64
import json
import re
import tempfile
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any, Final, NamedTuple

from kazoo.client import KazooClient

from kframe.testing.waiting import until
from verification.zookeeper.java import JVM, compiled, fetched, sharing
from verification.zookeeper.machine import LOCAL, Machine
from verification.zookeeper.process import Process
from verification.zookeeper.servers import ServerHandle, ServerOptions, free_ports
from verification.zookeeper.sessions import end_session_of

VERSION: Final = "3.9.1"
#: The logs of a broker and their loggers, as in Kafka's config/log4j.properties.
LOGS: Final = {"server": "", "controller": "kafka.controller", "state-change": "state.change.logger"}
_START_S: Final = 150.0
_COMPLAINT: Final = re.compile(r"^\[([-0-9 :,]+)\] (WARN|ERROR|FATAL) (.*)$", re.MULTILINE)
#: Small settings: a test broker serves one client, and shares two cores with two other brokers and ZooKeeper.
_SETTINGS: Final = {
    "zookeeper.session.timeout.ms": "12000",
    "controlled.shutdown.max.retries": "1",
    # Kafka's default, so that live brokers stay in the ISR on a busy machine.
    "replica.lag.time.max.ms": "30000",
    "replica.socket.timeout.ms": "5000",
    "auto.create.topics.enable": "false",
    "auto.leader.rebalance.enable": "false",
    "offsets.topic.replication.factor": "3",
    "offsets.topic.num.partitions": "3",
    "log.cleaner.enable": "false",
    "num.network.threads": "1",
    "num.io.threads": "2",
    "background.threads": "1",
}


def jars(version: str = VERSION) -> Path:
    """The folder of Kafka's jars. KFRAME_KAFKA_LIBS, or KFRAME_KAFKA_2_8_2_LIBS for 2.8.2, selects another folder."""
    variable = "KFRAME_KAFKA_LIBS" if version == VERSION else f"KFRAME_KAFKA_{version.replace('.', '_')}_LIBS"
    return fetched(f"kafka-{version}", "pom-kafka.xml", variable, f"kafka.version={version}")


@cache
def mapped(version: str = VERSION) -> tuple[str, ...]:
    """JVM options that map this release's classes of a broker or client."""
    return sharing(f"kafka-{version}", jars(version), lambda options: _train(version, options))


def _train(version: str, options: tuple[str, ...]) -> None:
    """Start a broker with these options. Then stop it."""
    with tempfile.TemporaryDirectory() as scratch:
        zookeeper = ServerHandle(Path(scratch) / "zookeeper", ServerOptions())
        try:
            zookeeper.start()
            broker = KafkaProcess(Path(scratch) / "broker", zookeeper.address, 1, {}, version)
            broker.start(options)
            broker.await_started()
            broker.stop()
        finally:
            zookeeper.kill()


def client_command(source: Path, folder: Path) -> list[str]:
    """The command of a Kafka client with one source file. It logs according to ``log4j.properties`` in ``folder``."""
    log4j = f"-Dlog4j.configuration=file:{folder / 'log4j.properties'}"
    return ["java", *JVM, *mapped(), "-Xmx256m", log4j, "-cp", compiled(source, jars()), source.stem]


class Complaint(NamedTuple):
    """A log entry at WARN or above: its first line, followed by the name of the logger."""

    broker_id: int
    log: str
    timestamp: str
    level: str
    message: str


class KafkaProcess(Process):
    """A broker process that can be stopped, killed, frozen, and restarted on the same data and port."""

    def __init__(
        self,
        folder: Path,
        zookeeper: str,
        broker_id: int,
        settings: Mapping[str, str],
        version: str = VERSION,
        machine: Machine = LOCAL,
    ) -> None:
        """In ``settings``, ``{port}`` and ``{other_port}`` are replaced by two free ports."""
        super().__init__(machine)
        self.id = broker_id
        self.folder = folder
        self.version = version
        self._starts = 0
        self.port, self.other_port = free_ports(2)
        folder.mkdir(parents=True)
        node_settings = {
            "broker.id": str(broker_id),
            "listeners": f"PLAINTEXT://{self.address}",
            "zookeeper.connect": zookeeper,
            "log.dirs": str(folder / "data"),
        }
        resolved = {
            key: value.replace("{port}", str(self.port)).replace("{other_port}", str(self.other_port))
            for key, value in settings.items()
        }
        lines = {**_SETTINGS, **node_settings, **resolved}
        (folder / "server.properties").write_text("".join(f"{key}={value}\n" for key, value in lines.items()))
        (folder / "log4j.properties").write_text(_log4j(folder))

    @property
    def address(self) -> str:
        """The bootstrap address."""
        return f"{self.machine.address}:{self.port}"

    def start(self, options: Sequence[str] | None = None) -> None:
        """Start the process. ``await_started`` waits until it serves. JVM ``options`` replace ``mapped``."""
        options = mapped(self.version) if options is None else options
        self._starts += 1
        self._launch(
            [
                "java",
                *JVM,
                *options,
                "-Xmx256m",
                f"-Dlog4j.configuration=file:{self.folder / 'log4j.properties'}",
                "-cp",
                f"{jars(self.version)}/*",
                "kafka.Kafka",
                str(self.folder / "server.properties"),
            ],
            self.folder,
        )

    def await_started(self) -> None:
        """Return when the broker logs that it has started. Raises RuntimeError after 150 s."""
        line = f"[KafkaServer id={self.id}] started"
        until(lambda: self.pid is None or self.log("server").count(line) >= self._starts, _START_S)
        if self.pid is None or self.log("server").count(line) < self._starts:
            raise RuntimeError(f"broker {self.id} does not start:\n{self.log('server')[-4000:]}")

    def log(self, name: str) -> str:
        """The content of one of LOGS."""
        path = self.folder / f"{name}.log"
        return path.read_text(errors="replace") if path.exists() else ""

    def complaints(self, name: str) -> list[Complaint]:
        """The entries at WARN, ERROR or FATAL in one of LOGS."""
        return [Complaint(self.id, name, *match) for match in _COMPLAINT.findall(self.log(name))]


class Cluster:
    """Brokers on one ZooKeeper."""

    def __init__(
        self,
        folder: Path,
        zookeeper: str,
        broker_ids: Sequence[int] = (1, 2, 3),
        settings: Mapping[str, str] = {},
        version: str = VERSION,
        machines: Mapping[int, Machine] = {},
    ) -> None:
        """``machines`` are those of brokers by id."""
        self.zookeeper = zookeeper
        self.brokers = {
            broker_id: KafkaProcess(folder / f"broker-{broker_id}", zookeeper, broker_id, settings, version, machine)
            for broker_id in broker_ids
            for machine in [machines.get(broker_id, LOCAL)]
        }

    @property
    def address(self) -> str:
        """The bootstrap addresses of all brokers."""
        return ",".join(broker.address for broker in self.brokers.values())

    def start(self) -> None:
        """Start all stopped brokers together, and return when all serve."""
        for broker in self.brokers.values():
            if broker.pid is None:
                broker.start()
        for broker in self.brokers.values():
            broker.await_started()

    def lose(self, broker_id: int, client: KazooClient) -> None:
        """Kill a broker, and end its session without waiting for the timeout."""
        self.brokers[broker_id].kill()
        end_session_of(client, self.zookeeper, f"/brokers/ids/{broker_id}")

    def kill(self) -> None:
        """Kill all brokers at the end of a test."""
        for broker in self.brokers.values():
            broker.kill()

    def complaints(self) -> list[Complaint]:
        """The entries at WARN or above in all logs of all brokers."""
        return [complaint for broker in self.brokers.values() for name in LOGS for complaint in broker.complaints(name)]


class KafkaError(Exception):
    """An exception of one of Kafka's own clients."""


class KafkaClients(Process):
    """A JVM with Kafka's own admin client, producer, consumer and znode encoders, until ``close``."""

    def __init__(self, folder: Path, address: str, settings: Mapping[str, str] = {}, machine: Machine = LOCAL) -> None:
        """``settings`` apply to all its clients."""
        super().__init__(machine)
        folder.mkdir(parents=True)
        (folder / "log4j.properties").write_text("log4j.rootLogger=OFF\n")
        (folder / "client.properties").write_text("".join(f"{key}={value}\n" for key, value in settings.items()))
        source = Path(__file__).parent / "KafkaClients.java"
        self._launch([*client_command(source, folder), address, "client.properties"], folder, piped=True)

    def request(self, operation: str, **fields: Any) -> Any:
        """Send a request and return the result. Raises KafkaError with the exception of Kafka's client."""
        reply = json.loads(self._answer(json.dumps({"operation": operation, **fields})))
        if "error" in reply:
            raise KafkaError(reply["error"])
        return reply["result"]

    def encoded(self, kind: str, data: bytes) -> bytes:
        """Decode and encode ``data`` by Kafka's own classes. ``kind`` is state, topic, config or controller."""
        return base64.b64decode(self.request("encode", kind=kind, data=base64.b64encode(data).decode()))

    def close(self) -> None:
        """End the JVM."""
        self.kill()


def _log4j(folder: Path) -> str:
    """A configuration that writes each of LOGS to its own file in Kafka's layout."""
    lines = ["log4j.rootLogger=INFO, server", "log4j.logger.state.change.logger=TRACE, state-change"]
    lines += ["log4j.logger.kafka.controller=INFO, controller"]
    for name, logger in LOGS.items():
        lines += [
            f"log4j.appender.{name}=org.apache.log4j.FileAppender",
            f"log4j.appender.{name}.File={folder / name}.log",
            f"log4j.appender.{name}.layout=org.apache.log4j.PatternLayout",
            f"log4j.appender.{name}.layout.ConversionPattern=[%d] %p %m (%c)%n",
        ]
        if logger:
            lines.append(f"log4j.additivity.{logger}=false")
    return "\n".join(lines) + "\n"
