"""Kafka's own command-line tools, run against a server. They need what ``kframe_zookeeper.testing.java`` needs."""

from __future__ import annotations

import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from kframe_zookeeper.testing.java import JVM, fetched
from kframe_zookeeper.testing.kafka import VERSION

#: The scripts by the classes that they start.
TOOLS: Final = {
    "kafka-topics": "org.apache.kafka.tools.TopicCommand",
    "kafka-configs": "kafka.admin.ConfigCommand",
    "kafka-leader-election": "org.apache.kafka.tools.LeaderElectionCommand",
    "kafka-reassign-partitions": "org.apache.kafka.tools.reassign.ReassignPartitionsCommand",
    "kafka-cluster": "org.apache.kafka.tools.ClusterTool",
    "kafka-broker-api-versions": "kafka.admin.BrokerApiVersionsCommand",
}
#: How a tool is told the settings of its client, where that is not --command-config.
_CONFIG_OPTIONS: Final = {"kafka-cluster": "--config", "kafka-leader-election": "--admin.config"}
_PATIENCE_S: Final = 120


def jars() -> Path:
    """The folder of the tools' jars; KFRAME_KAFKA_TOOLS_LIBS names another one than Maven fills."""
    return fetched(f"kafka-tools-{VERSION}", "pom-tools.xml", "KFRAME_KAFKA_TOOLS_LIBS")


class Tools:
    """Runs tools with the same client settings in a folder of its own."""

    def __init__(self, folder: Path, address: str, settings: Mapping[str, str] = {}) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.folder = folder
        self._address = address
        (folder / "log4j.properties").write_text("log4j.rootLogger=OFF\n")
        (folder / "client.properties").write_text("".join(f"{key}={value}\n" for key, value in settings.items()))

    def run(self, tool: str, *arguments: str) -> str:
        """What a tool says on both outputs, when it has ended well. Raises AssertionError when it has not."""
        code, said = self.tried(tool, *arguments)
        assert code == 0, said
        return said

    def tried(self, tool: str, *arguments: str) -> tuple[int, str]:
        """Exit code, and what it says."""
        config = _CONFIG_OPTIONS.get(tool, "--command-config")
        command = [arguments[0]] if tool == "kafka-cluster" else []  # which has commands, and options behind them
        done = subprocess.run(
            ["java", *JVM, "-Xmx128m", f"-Dlog4j.configuration=file:{self.folder / 'log4j.properties'}",
             "-cp", f"{jars()}/*", TOOLS[tool], *command, "--bootstrap-server", self._address,
             config, str(self.folder / "client.properties"), *arguments[len(command) :]],
            cwd=self.folder, capture_output=True, text=True, timeout=_PATIENCE_S, check=False,
        )  # fmt: skip
        return done.returncode, done.stdout + done.stderr
