"""Write one cluster in each text format, as the tools of Kafka, kcat and a ZooKeeper dump print it.

Topics come in the order of a hash table, as in the output of Kafka's tools. The replicas and the ISRs of partitions are
those of the cluster.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from itertools import pairwise
from pathlib import Path
from typing import Final, NamedTuple

import numpy as np

from kframe.snapshot import Snapshot
from kframe.snapshot.decode import topic_id_text

_CONFIGS: Final = {"min.insync.replicas": "2", "retention.ms": "604800000"}


class Topic(NamedTuple):
    """A topic with its partitions: the leader, the replicas and the ISR of each."""

    name: str
    topic_id: str
    leaders: list[int]
    replicas: list[list[int]]
    isrs: list[list[int]]


def topics_of(snapshot: Snapshot, seed: int = 1) -> Iterator[Topic]:
    """The topics in a random order."""
    topics, partitions = snapshot.topics, snapshot.partitions
    assert topics.topic_ids is not None
    assert partitions.leader is not None
    assert partitions.isr is not None
    for index in np.random.default_rng(seed).permutation(len(topics)).tolist():
        first = int(topics.first_rows[index])
        rows = np.arange(first, first + int(topics.partition_counts[index]))
        lists = []
        for chosen in (partitions.replicas.take(rows), partitions.isr.take(rows)):
            values = chosen.values.tolist()
            lists.append([values[start:end] for start, end in pairwise(chosen.offsets.tolist())])
        topic_id = topic_id_text(topics.topic_ids[index].tobytes())
        yield Topic(topics.names[index], topic_id, partitions.leader[rows].tolist(), *lists)


def describe_lines(snapshot: Snapshot) -> Iterator[str]:
    """The output of ``kafka-topics --describe`` of Kafka 3.9."""
    configs = ",".join(f"{name}={value}" for name, value in _CONFIGS.items())
    for topic in topics_of(snapshot):
        count, factor = len(topic.leaders), len(topic.replicas[0])
        yield (
            f"Topic: {topic.name}\tTopicId: {topic.topic_id}\tPartitionCount: {count}\tReplicationFactor: {factor}\t"
            f"Configs: {configs}\n"
        )
        for number, leader in enumerate(topic.leaders):
            replicas, isr = (",".join(map(str, lists[number])) for lists in (topic.replicas, topic.isrs))
            yield (
                f"\tTopic: {topic.name}\tPartition: {number}\tLeader: {leader}\tReplicas: {replicas}\tIsr: {isr}\t"
                "Elr: N/A\tLastKnownElr: N/A\n"
            )


def reassignment_lines(snapshot: Snapshot) -> Iterator[str]:
    """The JSON of ``kafka-reassign-partitions --generate``, on one line."""
    yield '{"version":1,"partitions":['
    separator = ""
    for topic in topics_of(snapshot):
        for number, replicas in enumerate(topic.replicas):
            entry = {"topic": topic.name, "partition": number, "replicas": replicas}
            yield separator + _compact(entry | {"log_dirs": ["any"] * len(replicas)})
            separator = ","
    yield "]}\n"


def kcat_lines(snapshot: Snapshot) -> Iterator[str]:
    """The output of ``kcat -L -J``, on one line."""
    brokers = [{"id": broker.broker_id, "name": f"broker-{broker.broker_id}:9092"} for broker in snapshot.brokers]
    outline = {
        "originating_broker": {"id": 1, "name": "broker-1:9092/1"},
        "query": {"topic": "*"},
        "controllerid": 1,
        "brokers": brokers,
        "topics": [],
    }
    yield _compact(outline).removesuffix("]}")
    for position, topic in enumerate(topics_of(snapshot)):
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


def zookeeper_lines(snapshot: Snapshot) -> Iterator[str]:
    """A dump of the whole tree, with the znodes of partitions that have no data."""
    for path in ("/brokers", "/brokers/ids", "/brokers/topics", "/config/topics", "/admin/delete_topics"):
        yield _znode(path, None)
    yield _znode("/controller_epoch", "1")
    for broker in snapshot.brokers:
        registration = {
            "version": 5,
            "host": "h",
            "port": 9092,
            "endpoints": [f"PLAINTEXT://h-{broker.broker_id}:9092"],
            "listener_security_protocol_map": {"PLAINTEXT": "PLAINTEXT"},
        }
        yield _znode(f"/brokers/ids/{broker.broker_id}", _compact(registration))
    for topic in topics_of(snapshot):
        root = f"/brokers/topics/{topic.name}"
        assignment = {
            "partitions": dict(enumerate(topic.replicas)),
            "topic_id": topic.topic_id,
            "adding_replicas": {},
            "removing_replicas": {},
            "version": 3,
        }
        yield _znode(root, _compact(assignment))
        yield _znode(f"{root}/partitions", None)
        for number, leader in enumerate(topic.leaders):
            epochs = {"controller_epoch": 1, "leader": leader, "version": 1, "leader_epoch": 0}
            yield _znode(f"{root}/partitions/{number}", None)
            yield _znode(f"{root}/partitions/{number}/state", _compact(epochs | {"isr": topic.isrs[number]}))
        yield _znode(f"/config/topics/{topic.name}", _compact({"version": 1, "config": _CONFIGS}))


def _znode(path: str, data: str | None) -> str:
    stat = {"version": 0, "czxid": 1609, "mzxid": 1609, "cversion": 0, "ephemeral": False}
    return json.dumps({"path": path, "data": data, **stat}) + "\n"


def _compact(value: object) -> str:
    return json.dumps(value, separators=(",", ":"))


#: What writes each format, by the name of the format.
WRITERS: Final[Mapping[str, Callable[[Snapshot], Iterator[str]]]] = {
    "describe": describe_lines,
    "reassignment": reassignment_lines,
    "kcat": kcat_lines,
    "zookeeper": zookeeper_lines,
}


def write_cluster(snapshot: Snapshot, format_name: str, path: Path) -> int:
    """Write the cluster; return the size of the file in bytes."""
    with path.open("w", encoding="utf-8") as file:
        file.writelines(WRITERS[format_name](snapshot))
    return path.stat().st_size
