"""The znodes of a benchmark cluster: writing them, and restoring them after a broker failure."""

from __future__ import annotations

import base64
import json
import uuid
from collections.abc import Iterable
from itertools import islice

from kazoo.client import KazooClient, TransactionRequest
from kazoo.exceptions import NoNodeError

PARTITIONS_PER_TOPIC = 100
FAILING = 0  # the broker that fails in each run
TRANSACTIONS = 20  # on their way at once


def populate(client: KazooClient, partitions: int, brokers: int, replication_factor: int) -> None:
    """Write the znodes of a healthy cluster: topics of 100 partitions, leaders spread evenly, epoch 1."""
    for path in (
        "/brokers/ids",
        "/brokers/topics",
        "/brokers/seqid",
        "/config/topics",
        "/config/brokers",
        "/config/changes",
        "/config/clients",
        "/config/users",
        "/config/ips",
        "/admin/delete_topics",
        "/isr_change_notification",
        "/log_dir_event_notification",
    ):
        client.ensure_path(path)
    client.ensure_path("/controller_epoch")
    client.set("/controller_epoch", b"1")
    client.create("/feature", b'{"features":{},"version":2,"status":1}')
    execute(create_topic(client, topic, brokers, replication_factor) for topic in topics(partitions))


def topics(partitions: int) -> range:
    """Topic numbers."""
    return range(partitions // PARTITIONS_PER_TOPIC)


def topic_path(topic: int) -> str:
    """The path of a topic."""
    return f"/brokers/topics/topic-{topic:06d}"


def state_path(topic: int, partition: int) -> str:
    """The path of a partition state."""
    return f"{topic_path(topic)}/partitions/{partition}/state"


def assignment(topic: int, brokers: int, replication_factor: int) -> list[list[int]]:
    """Replicas of each partition of a topic."""
    return [
        [
            (topic * PARTITIONS_PER_TOPIC + p + slot * (1 + p % (brokers - 2))) % brokers
            for slot in range(replication_factor)
        ]
        for p in range(PARTITIONS_PER_TOPIC)
    ]


def healthy_state(replicas: list[int]) -> bytes:
    """The first replica leads, all are in sync."""
    in_sync = list(dict.fromkeys(replicas))
    state = {"controller_epoch": 1, "leader": in_sync[0], "version": 1, "leader_epoch": 0, "isr": in_sync}
    return json.dumps(state, separators=(",", ":")).encode()


def create_topic(client: KazooClient, topic: int, brokers: int, replication_factor: int) -> TransactionRequest:
    """A topic with all its states."""
    topic_id = uuid.UUID(int=((topic + 1) << 64) | (4 << 76) | (1 << 63)).bytes
    partitions = assignment(topic, brokers, replication_factor)
    record = {
        "version": 3,
        "topic_id": base64.urlsafe_b64encode(topic_id).decode().rstrip("="),
        "partitions": {str(partition): replicas for partition, replicas in enumerate(partitions)},
        "adding_replicas": {},
        "removing_replicas": {},
    }
    write = client.transaction()
    write.create(topic_path(topic), json.dumps(record).encode())
    write.create(f"{topic_path(topic)}/partitions")
    for partition, replicas in enumerate(partitions):
        write.create(f"{topic_path(topic)}/partitions/{partition}")
        write.create(state_path(topic, partition), healthy_state(replicas))
    return write


def restore_topic(client: KazooClient, topic: int, brokers: int, replication_factor: int) -> TransactionRequest:
    """The states of a topic's partitions that the failing broker hosts, as they were before it failed."""
    write = client.transaction()
    for partition, replicas in enumerate(assignment(topic, brokers, replication_factor)):
        if FAILING in replicas:
            write.set_data(state_path(topic, partition), healthy_state(replicas))
    return write


def restore_topics(client: KazooClient, partitions: int, brokers: int, replication_factor: int) -> None:
    """Restore the states that the broker failure changed."""
    execute(restore_topic(client, topic, brokers, replication_factor) for topic in topics(partitions))


def execute(writes: Iterable[TransactionRequest]) -> None:
    """Execute a few transactions at a time. Raises the server's error."""
    remaining = iter(writes)
    while waiting := [write.commit_async() for write in islice(remaining, TRANSACTIONS)]:
        for transaction in waiting:
            for operation_result in transaction.get():
                if isinstance(operation_result, Exception):
                    raise operation_result


def count_unmoved(client: KazooClient, partitions: int) -> int:
    """In a sample of 50 topics, the partitions whose stored state still names the failed broker as leader or in
    sync."""
    wrong = 0
    for topic in topics(partitions)[:: max(1, len(topics(partitions)) // 50)]:
        for partition in range(PARTITIONS_PER_TOPIC):
            try:
                data, _ = client.get(state_path(topic, partition))
            except NoNodeError:
                wrong += 1
                continue
            state = json.loads(data)
            wrong += state["leader"] == FAILING or FAILING in state["isr"]
    return wrong
