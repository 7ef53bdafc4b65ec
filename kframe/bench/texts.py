"""A cluster in the text formats of other tools, as Kafka's tools, kcat and a ZooKeeper dump print it."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import pairwise
from typing import Any, Final, NamedTuple, TypeAlias

import numpy as np

from kframe.snapshot.decode import topic_id_text
from kframe.snapshot.snapshot import Snapshot

Lines: TypeAlias = Iterator[str]


class TopicText(NamedTuple):
    """One topic. ``leaders``, ``replicas`` and ``isrs`` are by partition."""

    name: str
    topic_id: str
    leaders: list[int]
    replicas: list[list[int]]
    isrs: list[list[int]]


def topics_of(snapshot: Snapshot, order: Iterable[int] | None = None) -> Iterator[TopicText]:
    """The topics of a snapshot that has topic ids, leaders and ISRs: those of these indexes, by default by name."""
    topics, partitions, leader = snapshot.topics, snapshot.partitions, snapshot.known_leaders()
    assert topics.topic_ids is not None
    assert partitions.isr is not None
    for index in range(len(topics)) if order is None else order:
        rows = topics.rows_of(np.array([index]))
        lists = []
        for column in (partitions.replicas.take(rows), partitions.isr.take(rows)):
            values = column.values.tolist()
            lists.append([values[start:end] for start, end in pairwise(column.offsets.tolist())])
        topic_id = topic_id_text(topics.topic_ids[index].tobytes())
        yield TopicText(topics.names[index], topic_id, leader[rows].tolist(), *lists)


def _describe(topics: Iterable[TopicText], broker_ids: Iterable[int], configs: Mapping[str, str]) -> Lines:
    """The output of ``kafka-topics --describe`` of Kafka 3.9."""
    settings = ",".join(f"{name}={value}" for name, value in configs.items())
    for topic in topics:
        yield (
            f"Topic: {topic.name}\tTopicId: {topic.topic_id}\tPartitionCount: {len(topic.leaders)}\t"
            f"ReplicationFactor: {len(topic.replicas[0])}\tConfigs: {settings}\n"
        )
        for number, leader in enumerate(topic.leaders):
            replicas, isr = (",".join(map(str, lists[number])) for lists in (topic.replicas, topic.isrs))
            yield (
                f"\tTopic: {topic.name}\tPartition: {number}\tLeader: {leader}\tReplicas: {replicas}\tIsr: {isr}\t"
                "Elr: N/A\tLastKnownElr: N/A\n"
            )


def _kcat(topics: Iterable[TopicText], broker_ids: Iterable[int], configs: Mapping[str, str]) -> Lines:
    """The output of ``kcat -L -J``, on one line."""
    outline = {
        "originating_broker": {"id": 1, "name": "broker-1:9092/1"},
        "query": {"topic": "*"},
        "controllerid": 0,
        "brokers": [{"id": broker_id, "name": f"broker-{broker_id}:9092"} for broker_id in broker_ids],
        "topics": [],
    }
    yield _compact(outline).removesuffix("]}")
    for position, topic in enumerate(topics):
        partitions = [
            {
                "partition": number,
                "leader": leader,
                "replicas": [{"id": broker} for broker in topic.replicas[number]],
                "isrs": [{"id": broker} for broker in topic.isrs[number]],
            }
            for number, leader in enumerate(topic.leaders)
        ]
        yield ("," if position else "") + _compact({"topic": topic.name, "partitions": partitions})
    yield "]}\n"


def _reassignment(topics: Iterable[TopicText], broker_ids: Iterable[int], configs: Mapping[str, str]) -> Lines:
    """The JSON of ``kafka-reassign-partitions --generate``, on one line."""
    yield '{"version":1,"partitions":['
    separator = ""
    for topic in topics:
        for number, replicas in enumerate(topic.replicas):
            entry = {"topic": topic.name, "partition": number, "replicas": replicas}
            yield separator + _compact(entry | {"log_dirs": ["any"] * len(replicas)})
            separator = ","
    yield "]}\n"


def _zookeeper(topics: Iterable[TopicText], broker_ids: Iterable[int], configs: Mapping[str, str]) -> Lines:
    """A dump of the whole tree, with the znodes of partitions that have no data."""
    for path in ("/brokers", "/brokers/ids", "/brokers/topics", "/config/topics", "/admin/delete_topics"):
        yield _znode(path, None)
    for broker_id in broker_ids:
        endpoints = {"endpoints": [f"PLAINTEXT://broker-{broker_id}:9092"]}
        protocols = {"listener_security_protocol_map": {"PLAINTEXT": "PLAINTEXT"}}
        yield _znode(f"/brokers/ids/{broker_id}", {"version": 5, "host": "h", "port": 9092, **endpoints, **protocols})
    for topic in topics:
        root = f"/brokers/topics/{topic.name}"
        reassignment: dict[str, Any] = {"adding_replicas": {}, "removing_replicas": {}, "version": 3}
        partitions = dict(enumerate(topic.replicas))
        yield _znode(root, {"partitions": partitions, "topic_id": topic.topic_id, **reassignment})
        yield _znode(f"{root}/partitions", None)
        for number, leader in enumerate(topic.leaders):
            state = {
                "controller_epoch": 1,
                "leader": leader,
                "version": 1,
                "leader_epoch": 0,
                "isr": topic.isrs[number],
            }
            yield _znode(f"{root}/partitions/{number}", None)
            yield _znode(f"{root}/partitions/{number}/state", state)
        if configs:
            yield _znode(f"/config/topics/{topic.name}", {"version": 1, "config": configs})


def _znode(path: str, data: Any) -> str:
    text = None if data is None else _compact(data)
    stat = {"version": 0, "czxid": 1, "mzxid": 1, "cversion": 0, "ephemeral": False}
    return json.dumps({"path": path, "data": text, **stat}) + "\n"


def _compact(value: object) -> str:
    return json.dumps(value, separators=(",", ":"))


#: The writer of each format that kframe reads but does not write: of topics, broker ids, and settings of each topic.
TEXTS: Final[Mapping[str, Callable[[Iterable[TopicText], Iterable[int], Mapping[str, str]], Lines]]] = {
    "describe": _describe,
    "kcat": _kcat,
    "reassignment": _reassignment,
    "zookeeper": _zookeeper,
}
