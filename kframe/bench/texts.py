"""A cluster in the text formats of other tools. All replicas are in sync, and the first replica leads."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

from kframe.snapshot.decode import topic_id_text
from kframe.snapshot.snapshot import Snapshot

Lines: TypeAlias = Iterator[str]


@dataclass(frozen=True, slots=True)
class _TopicText:
    """One topic. ``replicas`` are by partition."""

    name: str
    topic_id: str
    replicas: list[list[int]]


def _topics(snapshot: Snapshot) -> Iterator[_TopicText]:
    topics, lists, row = snapshot.topics, snapshot.partitions.replicas, 0
    ids = topics.topic_ids
    for index, (name, count) in enumerate(zip(topics.names, topics.partition_counts.tolist(), strict=True)):
        replicas = [lists[index].tolist() for index in range(row, row + count)]
        yield _TopicText(name, "" if ids is None else topic_id_text(ids[index].tobytes()), replicas)
        row += count


def _describe(snapshot: Snapshot) -> Lines:
    """``kafka-topics --describe``."""
    for topic in _topics(snapshot):
        start = f"Topic: {topic.name}\t"
        factor = len(topic.replicas[0])
        yield f"{start}TopicId: {topic.topic_id}\tPartitionCount: {len(topic.replicas)}\tReplicationFactor: {factor}"
        yield "\tConfigs: \n"
        for number, replicas in enumerate(topic.replicas):
            ids = ",".join(map(str, replicas))
            yield f"\t{start}Partition: {number}\tLeader: {replicas[0]}\tReplicas: {ids}\tIsr: {ids}\n"


def _kcat(snapshot: Snapshot) -> Lines:
    """``kcat -L -J``."""
    brokers = [{"id": broker.broker_id, "name": f"broker-{broker.broker_id}:9092"} for broker in snapshot.brokers]
    yield f'{{"controllerid": 0, "brokers": {json.dumps(brokers)}, "topics": ['
    for index, topic in enumerate(_topics(snapshot)):
        ids = [[{"id": broker_id} for broker_id in replicas] for replicas in topic.replicas]
        partitions = [
            {"partition": number, "leader": replicas[0]["id"], "replicas": replicas, "isrs": replicas}
            for number, replicas in enumerate(ids)
        ]
        yield ("," if index else "") + json.dumps({"topic": topic.name, "partitions": partitions})
    yield "]}\n"


def _reassignment(snapshot: Snapshot) -> Lines:
    """A file for ``kafka-reassign-partitions``."""
    yield '{"version": 1, "partitions": ['
    for index, topic in enumerate(_topics(snapshot)):
        entries = [
            {"topic": topic.name, "partition": number, "replicas": replicas}
            for number, replicas in enumerate(topic.replicas)
        ]
        yield ("," if index else "") + json.dumps(entries)[1:-1]
    yield "]}\n"


def _zookeeper(snapshot: Snapshot) -> Lines:
    """A dump of the tree."""
    for path in ("/brokers/ids", "/brokers/topics", "/config/topics", "/admin/delete_topics"):
        yield _znode(path, None)
    for broker in snapshot.brokers:
        endpoints = {"endpoints": [f"PLAINTEXT://broker-{broker.broker_id}:9092"]}
        names = {"listener_security_protocol_map": {"PLAINTEXT": "PLAINTEXT"}}
        known = {"version": 5, "host": "h", "port": 9092}
        yield _znode(f"/brokers/ids/{broker.broker_id}", {**known, **endpoints, **names})
    for topic in _topics(snapshot):
        path, partitions = f"/brokers/topics/{topic.name}", dict(enumerate(topic.replicas))
        yield _znode(path, {"version": 3, "topic_id": topic.topic_id, "partitions": partitions})
        for number, replicas in partitions.items():
            state = {"version": 1, "leader": replicas[0], "isr": replicas, "leader_epoch": 0, "controller_epoch": 1}
            yield _znode(f"{path}/partitions/{number}/state", state)


def _znode(path: str, data: Any) -> str:
    text = None if data is None else json.dumps(data)
    return json.dumps({"path": path, "data": text, "version": 0, "czxid": 1}) + "\n"


#: The writer of each format that kframe reads but does not write.
TEXTS: Final[Mapping[str, Callable[[Snapshot], Lines]]] = {
    "describe": _describe,
    "kcat": _kcat,
    "reassignment": _reassignment,
    "zookeeper": _zookeeper,
}
