"""Kafka's own tools on a server without brokers: every address leads to the controller."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from kframe_kafka_wire.records.credentials import make_credential, scram_lookup
from kframe_kafka_wire.records.store import Records

from kframe.testing.clusters import PartitionSpec, healthy
from verification.kafka_wire.served import Served, shared_address
from verification.kafka_wire.tools import Tools
from verification.zookeeper.tools import ToolProcess

#: The leader of partition 1 is not its preferred replica.
TOPICS = {"old": [healthy(1, 2), PartitionSpec((2, 3), leader=3, isr=(3, 2))]}


@pytest.fixture(scope="module")
def served() -> Iterator[Served]:
    with shared_address(TOPICS) as served:
        yield served


@pytest.fixture
def tools(served: Served, tool_process: ToolProcess, tmp_path: Path) -> Tools:
    return Tools(tool_process, tmp_path, served.server.addresses["PLAINTEXT"])


@pytest.mark.parametrize(
    "arguments, message",
    [
        (("--create", "--topic", "old", "--partitions", "1", "--replication-factor", "1"), "already exists"),
        (("--create", "--topic", "x", "--partitions", "1", "--replication-factor", "9"), "replication factor"),
        (("--create", "--topic", "x", "--partitions", "1", "--replication-factor", "1", "--config", "retention.ms=x"),
         "retention.ms"),
        (("--alter", "--topic", "old", "--partitions", "1"), "number of partitions"),
    ],
)  # fmt: skip
def test_refusals_are_explained(arguments: tuple[str, ...], message: str, tools: Tools) -> None:
    code, text = tools.run_with_code("kafka-topics", *arguments)
    assert code != 0
    assert message in text


def test_settings_of_topics_and_of_all_brokers(tools: Tools) -> None:
    topic = ("--entity-type", "topics", "--entity-name", "old")
    tools.run(
        "kafka-configs", "--alter", *topic, "--add-config", "max.message.bytes=4321,cleanup.policy=[compact,delete]"
    )
    output = tools.run("kafka-configs", "--describe", *topic)
    assert "max.message.bytes=4321" in output
    assert "DYNAMIC_TOPIC_CONFIG:max.message.bytes=4321, DEFAULT_CONFIG:message.max.bytes=1048588" in output
    tools.run("kafka-configs", "--alter", *topic, "--delete-config", "max.message.bytes")
    assert "max.message.bytes" not in tools.run("kafka-configs", "--describe", *topic)
    everyone = ("--entity-type", "brokers", "--entity-default")
    tools.run("kafka-configs", "--alter", *everyone, "--add-config", "log.retention.ms=777")
    assert "log.retention.ms=777" in tools.run("kafka-configs", "--describe", *everyone)
    output = tools.run("kafka-configs", "--describe", "--all", *topic)
    assert "retention.ms=777" in output
    tools.run("kafka-configs", "--alter", *everyone, "--delete-config", "log.retention.ms")


def test_scram_users_are_created(served: Served, tools: Tools) -> None:
    secret = "SCRAM-SHA-256=[iterations=8192,password=pencil]"
    tools.run("kafka-configs", "--alter", "--entity-type", "users", "--entity-name", "carol", "--add-config", secret)
    store = served.controller.store
    assert isinstance(store, Records)
    credential = scram_lookup(store)("SCRAM-SHA-256", "carol")
    assert credential is not None
    assert credential == make_credential("SCRAM-SHA-256", "pencil", credential.salt, 8192)
