"""Processes of Kafka 4.4's controller and of kframe, on a directory whose snapshot has many partitions."""

from __future__ import annotations

import os
import resource
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final
from uuid import UUID

from kframe_kafka_wire.server.connection_rate import RATE_KEY
from kframe_kraft.disk import MetaProperties, SnapshotId, write_properties
from kframe_kraft.encoding.checkpoint import write_checkpoint
from kframe_kraft.sources.detection import LOG_DIRECTORY

from benchmarks.against_kafka.kraft_replay import cluster
from verification.kraft.kafka_tools import node_jars
from verification.zookeeper.servers import free_ports

KAFKA, KFRAME = "Kafka 4.4.0", "kframe"
_VERSION: Final = "4.4.0"
_NODE_ID: Final = 3000
_CLUSTER_ID: Final = "4L6g3nShT-eMCtK--X86sw"
#: The records of the cluster are below this offset, in this epoch.
SNAPSHOT: Final = SnapshotId(2_000_000, 5)
#: ``broker.session.timeout.ms``.
SESSION_MS: Final = 6_000


@dataclass(frozen=True, slots=True)
class Setup:
    """The size of a cluster. ``heap`` is that of Kafka's process, ``program`` the compiled brokers. ``observers`` fetch
    beside them."""

    program: Path
    partitions: int
    brokers: int
    heap: str
    observers: int = 0


def write_directory(directory: Path, setup: Setup) -> None:
    """Write ``metadata.log.dir`` of a controller whose snapshot has the cluster."""
    log = directory / LOG_DIRECTORY
    log.mkdir(parents=True)
    write_properties(directory, MetaProperties(_CLUSTER_ID, _NODE_ID, UUID(int=1 << 64)))
    write_checkpoint(cluster(setup.partitions, setup.brokers), log / SNAPSHOT.file_name, SNAPSHOT, timestamp=1, now=2)


class RunningController:
    """A controller of a kind on the directory ``data`` of a folder. It can be started again after ``kill``."""

    def __init__(self, kind: str, folder: Path, heap: str) -> None:
        (self.port,) = free_ports(1)
        self._command = _command(kind, folder, self.port, heap)
        self._environment = {**os.environ, "PYTHONPATH": _without_hypothesis(folder)}
        self._folder = folder
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Start the process."""
        with (self._folder / "log.txt").open("ab") as log:
            self._process = subprocess.Popen(
                self._command, stdout=log, stderr=subprocess.STDOUT, cwd=self._folder, env=self._environment
            )

    @property
    def is_running(self) -> bool:
        """Whether the process runs."""
        return self._process is not None and self._process.poll() is None

    def kill(self) -> None:
        """End the process with SIGKILL."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()

    def resident_bytes(self) -> int:
        """The memory of the process that is in RAM (Linux)."""
        assert self._process is not None
        pages = int(Path(f"/proc/{self._process.pid}/statm").read_text().split()[1])
        return pages * resource.getpagesize()

    def cpu_seconds(self) -> float:
        """The processor time of the process so far (Linux)."""
        assert self._process is not None
        fields = Path(f"/proc/{self._process.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def log_bytes(self) -> int:
        """The bytes of the log, without snapshots."""
        return sum(path.stat().st_size for path in (self._folder / "data" / LOG_DIRECTORY).glob("*.log"))


@contextmanager
def stopping(controller: RunningController) -> Iterator[None]:
    """End the process at the end of the block."""
    try:
        yield
    finally:
        controller.kill()


def _without_hypothesis(folder: Path) -> str:
    """A module path without Hypothesis: kio imports it where it is installed, as it is for developers alone."""
    hidden = folder / "hidden"
    hidden.mkdir(exist_ok=True)
    (hidden / "hypothesis.py").write_text("raise ImportError\n")
    return os.pathsep.join(filter(None, (str(hidden), os.environ.get("PYTHONPATH"))))


def _command(kind: str, folder: Path, port: int, heap: str) -> list[str]:
    keys = {
        "process.roles": "controller",
        "node.id": _NODE_ID,
        "controller.listener.names": "CONTROLLER",
        "listeners": f"CONTROLLER://127.0.0.1:{port}",
        "controller.quorum.voters": f"{_NODE_ID}@127.0.0.1:{port}",
        "log.dirs": folder / "data",
        "broker.session.timeout.ms": SESSION_MS,
        "metadata.max.idle.interval.ms": 0,
        "auto.leader.rebalance.enable": "false",
        "socket.listen.backlog.size": 4096,
    }
    if kind == KFRAME:
        keys[RATE_KEY] = 0  # All observers come from one address.
    config = folder / "server.properties"
    config.write_text("".join(f"{key}={value}\n" for key, value in keys.items()))
    if kind == KFRAME:
        return [sys.executable, "-m", "kframe.cli", "controller", "run", "--config", str(config)]
    return ["java", f"-Xmx{heap}", "-cp", f"{node_jars(_VERSION)}/*", "kafka.Kafka", str(config)]
