"""A real cluster with metadata of every kind that Kafka's tools can create without SASL."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from kframe_kraft.disk import read_checkpoint

from kframe.plugin.kraft import records
from kframe.testing.waiting import wait_until
from verification.kraft.kafka_nodes import KraftCluster, KraftOptions
from verification.kraft.kafka_tools import KafkaTools

#: The release whose ``metadata.version`` the tools of 4.3.1 know.
_RELEASE_OF: Final = {"4.4.0": "4.3"}
_SETTINGS: Final = {
    # A snapshot after each change, so that the newest one has everything.
    "metadata.log.max.record.bytes.between.snapshots": "1",
    "broker.session.timeout.ms": "6000",
    "broker.heartbeat.interval.ms": "500",
}


def rich_options(version: str) -> KraftOptions:
    """Three brokers with two directories each, one of them the controller. ELR from 4.0 on."""
    return KraftOptions(
        version,
        brokers=3,
        log_dirs=2,
        release=_RELEASE_OF.get(version),
        settings=_SETTINGS,
        elr=None if version.startswith("3.") else True,
        dynamic_quorum=version >= "4.",
    )


def fill(cluster: KraftCluster, tools: KafkaTools) -> None:
    """Create metadata of all kinds, kill broker 3 and wait until it is fenced. A reassignment to it stays open."""
    _create_topics(cluster, tools)
    _create_settings(cluster, tools)
    cluster.nodes[3].kill()
    # The tool refuses brokers that are fenced, so it runs before the session of the broker ends.
    cluster.reassign(tools, "moved", [1, 3], "--execute")
    log = cluster.nodes[1].metadata_log

    def has_snapshot_with_fenced_broker() -> bool:
        snapshot = read_checkpoint(newest_snapshot(log))
        changes = [record for record, _ in snapshot.records() if isinstance(record, records.RegisterBrokerRecord)]
        return any(change.broker_id == 3 and change.fenced for change in changes)

    wait_until(has_snapshot_with_fenced_broker)


def newest_snapshot(log: Path) -> Path:
    """The newest snapshot in a log's directory."""
    return max(log.glob("*.checkpoint"))


def _create_topics(cluster: KraftCluster, tools: KafkaTools) -> None:
    for topic, *arguments in (
        ("orders", "--partitions", "6", "--replication-factor", "3", "--config", "min.insync.replicas=2"),
        ("moved", "--replica-assignment", "1:2,2:1"),
        ("to-3", "--replica-assignment", "3:1,3:2"),
        ("only-3", "--replica-assignment", "3,3"),
        ("brief.topic", "--partitions", "1", "--replication-factor", "2", "--config", "retention.ms=1000"),
        ("deleted", "--partitions", "2", "--replication-factor", "1"),
    ):
        cluster.admin(tools, "kafka-topics", "--create", "--topic", topic, *arguments)
    cluster.await_topics(["brief.topic", "deleted"])
    cluster.admin(tools, "kafka-topics", "--delete", "--topic", "deleted")
    cluster.admin(tools, "kafka-topics", "--alter", "--topic", "brief.topic", "--partitions", "3")


def _create_settings(cluster: KraftCluster, tools: KafkaTools) -> None:
    changes = [
        ("--entity-type", "topics", "--entity-name", "orders", "--add-config", "cleanup.policy=compact"),
        ("--entity-type", "topics", "--entity-name", "brief.topic", "--delete-config", "retention.ms"),
        ("--entity-type", "brokers", "--entity-name", "1", "--add-config", "log.cleaner.threads=2"),
        ("--entity-type", "brokers", "--entity-default", "--add-config", "log.retention.ms=7000000"),
        ("--entity-type", "users", "--entity-name", "ann", "--add-config", "SCRAM-SHA-256=[password=p]"),
        ("--entity-type", "users", "--entity-name", "ann", "--add-config", "SCRAM-SHA-512=[password=p]"),
        (
            "--entity-type",
            "users",
            "--entity-name",
            "ann",
            "--entity-type",
            "clients",
            "--entity-name",
            "app",
            "--add-config",
            "producer_byte_rate=1024,request_percentage=12.5",
        ),
        ("--entity-type", "users", "--entity-default", "--add-config", "consumer_byte_rate=2048"),
        ("--entity-type", "ips", "--entity-name", "127.0.0.9", "--add-config", "connection_creation_rate=10"),
        ("--entity-type", "client-metrics", "--entity-name", "m1", "--add-config", "interval.ms=10000"),
    ]
    for change in changes:
        cluster.admin(tools, "kafka-configs", "--alter", *change)
    for acl in (
        ("--allow-principal", "User:ann", "--operation", "Read", "--topic", "orders"),
        (
            "--deny-principal",
            "User:*",
            "--deny-host",
            "10.0.0.1",
            "--operation",
            "All",
            "--topic",
            "or",
            "--resource-pattern-type",
            "prefixed",
        ),
        ("--allow-principal", "User:bob", "--operation", "Alter", "--cluster"),
    ):
        cluster.admin(tools, "kafka-acls", "--add", *acl)
