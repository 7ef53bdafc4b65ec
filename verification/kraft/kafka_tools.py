"""Kafka's command line tools for tests: one JVM runs their main classes one after another."""

from __future__ import annotations

import subprocess
from functools import cache
from pathlib import Path
from typing import Final, Self

from kframe.testing.waiting import PATIENCE_S
from verification.zookeeper.java import JVM, fetched
from verification.zookeeper.tools import ToolProcess

__all__ = ["TOOLS_VERSION", "KafkaTools", "ToolError", "node_jars", "print_snapshot", "tool_jars"]

_HERE: Final = Path(__file__).parent
#: The newest release whose tools are on Maven Central. They serve nodes of all releases.
TOOLS_VERSION: Final = "4.3.1"
_SHELL_RUNS_MAX: Final = 10
#: The main class of each script in Kafka's ``bin`` folder.
MAIN_CLASSES: Final = {
    "kafka-acls": "org.apache.kafka.tools.AclCommand",
    "kafka-cluster": "org.apache.kafka.tools.ClusterTool",
    "kafka-configs": "kafka.admin.ConfigCommand",
    "kafka-console-consumer": "org.apache.kafka.tools.consumer.ConsoleConsumer",
    "kafka-console-share-consumer": "org.apache.kafka.tools.consumer.ConsoleShareConsumer",
    "kafka-consumer-groups": "org.apache.kafka.tools.consumer.group.ConsumerGroupCommand",
    "kafka-delegation-tokens": "org.apache.kafka.tools.DelegationTokenCommand",
    "kafka-dump-log": "org.apache.kafka.tools.DumpLogSegments",
    "kafka-features": "org.apache.kafka.tools.FeatureCommand",
    "kafka-leader-election": "org.apache.kafka.tools.LeaderElectionCommand",
    "kafka-log-dirs": "org.apache.kafka.tools.LogDirsCommand",
    "kafka-metadata-quorum": "org.apache.kafka.tools.MetadataQuorumCommand",
    "kafka-metadata-shell": "org.apache.kafka.shell.MetadataShell",
    "kafka-producer-perf-test": "org.apache.kafka.tools.ProducerPerformance",
    "kafka-reassign-partitions": "org.apache.kafka.tools.reassign.ReassignPartitionsCommand",
    "kafka-storage": "kafka.tools.StorageTool",
    "kafka-topics": "org.apache.kafka.tools.TopicCommand",
}


@cache
def node_jars(version: str) -> Path:
    """The folder of a node's jars. KFRAME_KRAFT_4_4_0_LIBS, for 4.4.0, selects another folder."""
    variable = f"KFRAME_KRAFT_{version.replace('.', '_')}_LIBS"
    return fetched(f"kraft-node-{version}", str(_HERE / "pom-node.xml"), variable, f"kafka.version={version}")


@cache
def tool_jars() -> Path:
    """The folder of the tools' jars. KFRAME_KAFKA_TOOLS_LIBS selects another folder."""
    return fetched(f"kafka-tools-{TOOLS_VERSION}", str(_HERE / "pom-tools.xml"), "KFRAME_KAFKA_TOOLS_LIBS")


def print_snapshot(path: Path) -> str:
    """Return what ``kafka-metadata-shell`` prints for a snapshot, as a tree.

    The shell gets a JVM of its own, because it leaves threads running. It runs again if it has printed an image
    without ``metadata.version``: on a busy machine it may print before it has read the file. Raises ToolError if it
    fails.
    """
    command = ["java", *JVM, "-Xmx192m", "-Dorg.slf4j.simpleLogger.defaultLogLevel=off", "-cp", f"{tool_jars()}/*"]
    arguments = [MAIN_CLASSES["kafka-metadata-shell"], "--snapshot", str(path), "tree", "/"]
    for _ in range(_SHELL_RUNS_MAX):
        completed = subprocess.run(
            [*command, *arguments], capture_output=True, text=True, check=False, timeout=PATIENCE_S
        )
        if completed.returncode:
            raise ToolError(f"kafka-metadata-shell {path}: {completed.stdout}{completed.stderr}")
        if "Optional.empty\n" not in completed.stdout:
            return completed.stdout
    raise ToolError(f"kafka-metadata-shell {path}: no image in {_SHELL_RUNS_MAX} runs")


class ToolError(Exception):
    """A tool has ended with another status than 0; the text is its output."""


class KafkaTools(ToolProcess):
    """The JVM of the tools. It is a context manager. ``close`` ends it."""

    def __init__(self, folder: Path, libraries: Path | None = None) -> None:
        """``libraries`` are the tools' jars of TOOLS_VERSION, or the jars of a node for its own kafka-storage."""
        super().__init__(folder, libraries or tool_jars())

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def run(self, script: str, *arguments: object) -> str:
        """Return the output of a tool, named as in Kafka's ``bin`` folder. Raises ToolError if it fails."""
        result = self.run_main(MAIN_CLASSES[script], list(map(str, arguments)))
        if result.status:
            raise ToolError(f"{script} {' '.join(map(str, arguments))}: {result.output}{result.errors}")
        return result.output

    def close(self) -> None:
        """End the JVM."""
        self.kill()
