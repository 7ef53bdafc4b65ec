"""Unmodified brokers of each release under kframe: they serve clients, fail, return, and are administered."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import pytest

from kframe.testing.waiting import wait_until
from verification.kraft.kafka_nodes import RELEASES, KraftOptions
from verification.kraft.kafka_tools import KafkaTools
from verification.kraft.led_cluster import LedCluster

pytestmark = [pytest.mark.real, pytest.mark.extended]

RECORDS, PARTITIONS = 500, 6
ALL = {1, 2, 3}
#: Kafka 3.9 has no ``eligible.leader.replicas.version`` that can be raised.
WITH_ELR = RELEASES[1:]


def consumed(cluster: LedCluster, tools: KafkaTools, count: int) -> int:
    """How many records a consumer reads from the beginning if it stops at ``count``, or after 20 s without one."""
    limits = ("--from-beginning", "--max-messages", count, "--timeout-ms", 20_000)
    return len(cluster.kafka.admin(tools, "kafka-console-consumer", "--topic", "orders", *limits).splitlines())


def fail_each_broker(cluster: LedCluster, tools: KafkaTools) -> None:
    """Stop the first broker in order, and start it again; then kill the second one, and start it again."""
    until_all = partial(cluster.until_all, tools, "orders", PARTITIONS)
    first, second, _ = cluster.brokers
    first.stop()
    until_all(lambda leader, isr: leader in (2, 3) and isr == {2, 3})
    first.start()
    first.await_started()
    until_all(lambda leader, isr: isr == ALL)
    second.kill()
    until_all(lambda leader, isr: leader in (1, 3) and isr == {1, 3})
    cluster.kafka.produce(tools, "orders", RECORDS, 100)
    second.start()
    second.await_started()
    until_all(lambda leader, isr: isr == ALL)


def change_topic(cluster: LedCluster, tools: KafkaTools) -> None:
    """Reassign a partition, elect preferred leaders, and change a setting."""
    cluster.kafka.reassign(tools, "orders", [3, 1], "--execute")
    cluster.until_all(tools, "orders", PARTITIONS, lambda leader, isr: isr in (ALL, {1, 3}))
    cluster.kafka.admin(tools, "kafka-leader-election", "--election-type", "preferred", "--all-topic-partitions")
    # The broker that is asked may not have read the records yet.
    wait_until(lambda: cluster.described(tools, "orders")[0] == (3, {1, 3}))
    topic = ("--alter", "--entity-type", "topics", "--entity-name", "orders")
    cluster.kafka.admin(tools, "kafka-configs", *topic, "--add-config", "retention.ms=123456")
    assert cluster.metadata.configs[2, "orders"]["retention.ms"] == "123456"


@pytest.mark.parametrize("version", RELEASES)
def test_brokers_of_a_release(tmp_path: Path, version: str) -> None:
    options = KraftOptions(version, brokers=3, controllers=1, combined=False)
    with LedCluster(tmp_path / "nodes", options) as cluster, KafkaTools(tmp_path / "tools") as tools:
        topic = ("--create", "--topic", "orders", "--partitions", 4, "--replication-factor", 3)
        cluster.kafka.admin(tools, "kafka-topics", *topic, "--config", "min.insync.replicas=2")
        cluster.kafka.admin(tools, "kafka-topics", "--alter", "--topic", "orders", "--partitions", PARTITIONS)
        cluster.until_all(tools, "orders", PARTITIONS, lambda leader, isr: isr == ALL)
        cluster.kafka.produce(tools, "orders", RECORDS, 100)
        fail_each_broker(cluster, tools)
        if version in WITH_ELR:
            level = int(not cluster.metadata.elr_enabled)
            verb = "upgrade" if level else "downgrade"
            cluster.kafka.admin(tools, "kafka-features", verb, "--feature", f"eligible.leader.replicas.version={level}")
            assert cluster.metadata.elr_enabled == bool(level)
            fail_each_broker(cluster, tools)
        change_topic(cluster, tools)
        count = RECORDS * (3 if version in WITH_ELR else 2)
        assert consumed(cluster, tools, count) == count
        cluster.kafka.admin(tools, "kafka-topics", "--delete", "--topic", "orders")
        cluster.until_listed(tools, "__consumer_offsets")
        assert cluster.controller is not None
        assert cluster.controller.failure is None


def test_metadata_version_rises_step_by_step(tmp_path: Path) -> None:
    """From 4.0-IV3 to 4.4-IV2 under brokers of 4.4.0, with a topic at each level."""
    options = KraftOptions("4.4.0", brokers=1, controllers=1, combined=False, release="4.0-IV3")
    with LedCluster(tmp_path / "nodes", options) as cluster, KafkaTools(tmp_path / "tools") as tools:
        created = ["level-25"]
        create = ("--create", "--partitions", 2, "--replication-factor", 1, "--topic")
        cluster.kafka.admin(tools, "kafka-topics", *create, created[0])
        for level in range(26, 34):
            cluster.kafka.admin(tools, "kafka-features", "upgrade", "--feature", f"metadata.version={level}")
            assert cluster.metadata.metadata_version == level
            created.append(f"level-{level}")
            cluster.kafka.admin(tools, "kafka-topics", *create, created[-1])
        cluster.until_listed(tools, *created)
        (broker,) = cluster.brokers
        broker.stop()
        broker.start()
        broker.await_started()
        cluster.until_all(tools, created[-1], 2, lambda leader, isr: leader == 1)
