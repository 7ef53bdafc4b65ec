"""Common operations with Kafka's command-line tools, verified in ZooKeeper."""

from __future__ import annotations

import json
import re
from typing import Final

from kframe.testing.waiting import PATIENCE_S, until
from verification.kafka_wire.real_cluster import RealCluster
from verification.kafka_wire.tools import Tools

TOPIC: Final = "tooled"
GROUP: Final = "tool-readers"
VALUES: Final = [f"value-{number:02}" for number in range(20)]
_PER_TRANSACTION: Final = 50


def check_tools(tools: Tools, cluster: RealCluster) -> None:
    """Create, describe, produce, consume, expand, reassign, elect, configure, delete. Raises AssertionError."""
    topic = ("--topic", TOPIC)
    size = ("--partitions", "3", "--replication-factor", "2")
    tools.run("kafka-topics", "--create", *topic, *size, "--config", "retention.ms=3600000")
    _describes(tools, r"PartitionCount: 3\s+ReplicationFactor: 2\s+Configs: .*retention.ms=3600000")

    _produce_and_consume(tools)

    tools.run("kafka-topics", "--alter", *topic, "--partitions", "5")
    _describes(tools, "PartitionCount: 5")
    _reassign_and_elect(tools, cluster)

    entity = ("--entity-type", "topics", "--entity-name", TOPIC)
    tools.run("kafka-configs", "--alter", *entity, "--add-config", "max.message.bytes=54321")
    assert "max.message.bytes=54321" in tools.run("kafka-configs", "--describe", *entity)
    tools.run("kafka-configs", "--alter", *entity, "--delete-config", "max.message.bytes")
    assert "max.message.bytes" not in tools.run("kafka-configs", "--describe", *entity)

    tools.run("kafka-topics", "--delete", *topic)
    assert until(lambda: TOPIC not in tools.run("kafka-topics", "--list").split())
    assert until(lambda: not cluster.assignment(TOPIC))


def _describes(tools: Tools, pattern: str) -> None:
    """Wait until the topic is described like that. UpdateMetadata is asynchronous."""
    outputs: list[str] = []

    def is_described() -> bool:
        outputs.append(tools.run_with_code("kafka-topics", "--describe", "--topic", TOPIC)[1])
        return re.search(pattern, outputs[-1]) is not None

    assert until(is_described), outputs[-1]


def _produce_and_consume(tools: Tools) -> None:
    """Produce idempotently, then in a transaction, and consume each by a group."""
    once = ("--producer-property", "enable.idempotence=true", "--producer-property", "acks=all")
    tools.run("kafka-console-producer", "--topic", TOPIC, *once, stdin="".join(f"{value}\n" for value in VALUES))
    assert sorted(_consumed(tools, len(VALUES))) == VALUES
    many = ("--num-records", str(_PER_TRANSACTION), "--record-size", "10", "--throughput", "-1")
    whole = ("--transactional-id", "tooled", "--transaction-duration-ms", "60000")
    output = tools.run("kafka-producer-perf-test", "--topic", TOPIC, *many, *whole)
    assert f"{_PER_TRANSACTION} records sent" in output, output
    assert len(_consumed(tools, _PER_TRANSACTION)) == _PER_TRANSACTION
    output = tools.run("kafka-consumer-groups", "--describe", "--group", GROUP)
    ends = [line.split()[3:6] for line in output.splitlines() if line.startswith(GROUP)]
    assert sum(int(end) for _, end, _ in ends) >= len(VALUES) + _PER_TRANSACTION, output


def _consumed(tools: Tools, count: int) -> list[str]:
    """The next ``count`` committed values of the group."""
    how = ("--isolation-level", "read_committed", "--from-beginning", "--group", GROUP)
    bounds = ("--max-messages", str(count), "--timeout-ms", str(int(1000 * PATIENCE_S)))
    lines = tools.run("kafka-console-consumer", "--topic", TOPIC, *how, *bounds).splitlines()
    assert f"Processed a total of {count} messages" in lines, lines
    return lines[:count]


def _reassign_and_elect(tools: Tools, cluster: RealCluster) -> None:
    """Reassign partition 0 to a new broker, then elect that broker."""
    before = cluster.assignment(TOPIC)[0]
    (third,) = {1, 2, 3} - set(before)
    after = [third, before[0]]
    plan = tools.folder / "plan.json"
    plan.write_text(json.dumps({"version": 1, "partitions": [{"topic": TOPIC, "partition": 0, "replicas": after}]}))
    moving = ("--reassignment-json-file", str(plan))
    output = tools.run("kafka-reassign-partitions", "--execute", *moving)
    assert f"Successfully started partition reassignment for {TOPIC}-0" in output, output
    done = f"Reassignment of partition {TOPIC}-0 is completed."
    assert until(lambda: done in tools.run("kafka-reassign-partitions", "--verify", *moving))
    assert "No partition reassignments found" in tools.run("kafka-reassign-partitions", "--list")
    assert cluster.assignment(TOPIC)[0] == after
    election = ("--election-type", "preferred", "--topic", TOPIC, "--partition", "0")
    tools.run("kafka-leader-election", *election)
    assert cluster.state(TOPIC, 0)["leader"] == third
