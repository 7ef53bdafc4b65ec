"""kafka-python's admin client on a server without brokers."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from kframe.testing.clusters import PartitionSpec, healthy
from verification.kafka_wire.served import shared_address

kafka = pytest.importorskip("kafka")
admin = pytest.importorskip("kafka.admin")
errors = pytest.importorskip("kafka.errors")

TOPICS = {"old": [healthy(1, 2), PartitionSpec((2, 3), leader=3, isr=(3, 2))]}


@pytest.fixture(scope="module")
def client() -> Iterator[Any]:
    with shared_address(TOPICS) as served:
        client = kafka.KafkaAdminClient(bootstrap_servers=[served.server.addresses["PLAINTEXT"]])
        yield client
        client.close()


def test_topics_are_created_grown_described_and_deleted(client: Any) -> None:
    client.create_topics([admin.NewTopic("new", 3, 2, topic_configs={"retention.ms": "1000"})])
    assert {"old", "new"} <= set(client.list_topics())
    client.create_partitions({"new": admin.NewPartitions(5)})
    (topic,) = client.describe_topics(["new"])
    assert len(topic["partitions"]) == 5
    assert all(len(partition["replica_nodes"]) == 2 for partition in topic["partitions"])
    client.delete_topics(["new"])
    assert "new" not in client.list_topics()


def test_refusals_raise_errors_of_kafka_python(client: Any) -> None:
    with pytest.raises(errors.TopicAlreadyExistsError):
        client.create_topics([admin.NewTopic("old", 1, 1)])
    with pytest.raises(errors.InvalidReplicationFactorError):
        client.create_topics([admin.NewTopic("more", 1, 9)])


def test_the_cluster_is_described(client: Any) -> None:
    description = client.describe_cluster()
    assert description["controller_id"] == 1000
    assert len(description["brokers"]) == 4


def test_settings_are_altered_and_described(client: Any) -> None:
    topic = admin.ConfigResource(admin.ConfigResourceType.TOPIC, "old", configs={"max.message.bytes": "4321"})
    client.alter_configs([topic])
    assert "4321" in str(client.describe_configs([admin.ConfigResource(admin.ConfigResourceType.TOPIC, "old")]))
