"""A controller of Kafka 4.4 beside kframe: it copies the log byte by byte, and replays every record."""

from __future__ import annotations

from pathlib import Path

import pytest

from kframe.testing.waiting import wait_until
from verification.kraft.kafka_nodes import CLUSTER_ID, KraftNode, KraftOptions
from verification.kraft.kafka_tools import KafkaTools, node_jars
from verification.kraft.led_cluster import LedCluster

pytestmark = [pytest.mark.real, pytest.mark.extended]

OBSERVER_ID = 3001


def observer_of(cluster: LedCluster, folder: Path) -> KraftNode:
    """A formatted controller that is no voter."""
    options = cluster.kafka.options
    node = KraftNode(folder / "observer", OBSERVER_ID, ["controller"], options)
    node.configure({"controller.quorum.bootstrap.servers": cluster.kafkas_controller.controller_address})
    with KafkaTools(folder / "format", node_jars(options.version)) as tools:
        tools.run("kafka-storage", "format", "-t", CLUSTER_ID, "--no-initial-controllers", "-c", node.config_path)
    return node


def log_bytes(node: KraftNode) -> bytes:
    """The metadata log of a node."""
    return b"".join(path.read_bytes() for path in sorted(node.metadata_log.glob("*.log")))


def test_observer_has_every_record(tmp_path: Path) -> None:
    options = KraftOptions(brokers=2, controllers=1, combined=False, dynamic_quorum=True)
    with LedCluster(tmp_path / "nodes", options) as cluster, KafkaTools(tmp_path / "tools") as tools:
        observer = observer_of(cluster, tmp_path)
        try:
            observer.start()
            observer.await_started()
            for topic in ("a", "b"):
                words = ("--topic", topic, "--partitions", 8, "--replication-factor", 2)
                cluster.kafka.admin(tools, "kafka-topics", "--create", *words, "--config", "retention.ms=3600000")
            first, _ = cluster.brokers
            first.kill()
            cluster.until_all(tools, "a", 8, lambda leader, isr: leader == 2 and isr == {2})
            first.start()
            first.await_started()
            cluster.until_all(tools, "a", 8, lambda leader, isr: isr == {1, 2})
            cluster.kafka.admin(tools, "kafka-topics", "--delete", "--topic", "b")
            wait_until(lambda: log_bytes(observer) == log_bytes(cluster.kafkas_controller))
            assert OBSERVER_ID in cluster.metadata.controllers
            quorum = cluster.kafka.admin(tools, "kafka-metadata-quorum", "describe", "--replication")
            (state,) = [line.split() for line in quorum.splitlines() if line.startswith(str(OBSERVER_ID))]
            assert state[-1] == "Observer"
            assert observer.pid is not None
            assert " ERROR " not in observer.log
        finally:
            observer.kill()
