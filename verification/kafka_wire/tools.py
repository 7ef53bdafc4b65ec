"""Kafka's own command-line tools. They need what ``verification.zookeeper.java`` needs."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Final

from verification.zookeeper.java import fetched
from verification.zookeeper.kafka import VERSION
from verification.zookeeper.tools import ToolProcess

#: Scripts and the classes that they run.
TOOLS: Final = {
    "kafka-acls": "kafka.admin.AclCommand",
    "kafka-topics": "org.apache.kafka.tools.TopicCommand",
    "kafka-configs": "kafka.admin.ConfigCommand",
    "kafka-leader-election": "org.apache.kafka.tools.LeaderElectionCommand",
    "kafka-reassign-partitions": "org.apache.kafka.tools.reassign.ReassignPartitionsCommand",
    "kafka-cluster": "org.apache.kafka.tools.ClusterTool",
    "kafka-broker-api-versions": "kafka.admin.BrokerApiVersionsCommand",
    "kafka-console-producer": "kafka.tools.ConsoleProducer",
    "kafka-console-consumer": "org.apache.kafka.tools.consumer.ConsoleConsumer",
    "kafka-producer-perf-test": "org.apache.kafka.tools.ProducerPerformance",
    "kafka-consumer-groups": "org.apache.kafka.tools.consumer.group.ConsumerGroupCommand",
    "kafka-client-metrics": "org.apache.kafka.tools.ClientMetricsCommand",
    "kafka-consumer-perf-test": "org.apache.kafka.tools.ConsumerPerformance",
    "kafka-delegation-tokens": "org.apache.kafka.tools.DelegationTokenCommand",
    "kafka-delete-records": "org.apache.kafka.tools.DeleteRecordsCommand",
    "kafka-features": "org.apache.kafka.tools.FeatureCommand",
    "kafka-get-offsets": "org.apache.kafka.tools.GetOffsetShell",
    "kafka-log-dirs": "org.apache.kafka.tools.LogDirsCommand",
    "kafka-metadata-quorum": "org.apache.kafka.tools.MetadataQuorumCommand",
    "kafka-transactions": "org.apache.kafka.tools.TransactionsCommand",
}
#: Options for client settings where it is not --command-config.
_CONFIG_OPTIONS: Final = {
    "kafka-cluster": "--config",
    "kafka-leader-election": "--admin.config",
    "kafka-console-producer": "--producer.config",
    "kafka-console-consumer": "--consumer.config",
    "kafka-producer-perf-test": "--producer.config",
    "kafka-consumer-perf-test": "--consumer.config",
}
#: Tools that read the bootstrap servers from the settings only.
_BY_SETTINGS: Final = {"kafka-producer-perf-test"}


def jars() -> Path:
    """The folder of the tools' jars. KFRAME_KAFKA_TOOLS_LIBS selects another folder."""
    return fetched(f"kafka-tools-{VERSION}", "pom-tools.xml", "KFRAME_KAFKA_TOOLS_LIBS")


class Tools:
    """Runs tools with the same client settings."""

    def __init__(self, process: ToolProcess, folder: Path, address: str, settings: Mapping[str, str] = {}) -> None:
        """``folder`` receives the settings, and may have further files for tools."""
        folder.mkdir(parents=True, exist_ok=True)
        self.folder = folder
        self._process = process
        self._address = address
        self._settings = folder / "client.properties"
        lines = {**settings, "bootstrap.servers": address}
        self._settings.write_text("".join(f"{key}={value}\n" for key, value in lines.items()))

    def run(self, tool: str, *arguments: str, stdin: str = "") -> str:
        """The output of a successful tool. Raises AssertionError if the tool fails."""
        code, output = self.run_with_code(tool, *arguments, stdin=stdin)
        assert code == 0, output
        return output

    def run_with_code(self, tool: str, *arguments: str, stdin: str = "") -> tuple[int, str]:
        """Exit code and output."""
        config = [_CONFIG_OPTIONS.get(tool, "--command-config"), str(self._settings)]
        address = [] if tool in _BY_SETTINGS else ["--bootstrap-server", self._address]
        first = [arguments[0]] if tool == "kafka-cluster" else []  # kafka-cluster expects options after the subcommand.
        result = self._process.run_main(TOOLS[tool], [*first, *address, *config, *arguments[len(first) :]], stdin)
        return result.status, result.output + result.errors
