"""A small cluster in every snapshot format, which tests modify."""

from __future__ import annotations

import base64
import gzip
import hashlib
import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Final

import msgspec

from kframe.snapshot import Snapshot

ROOT: Final = Path(__file__).resolve().parents[2]
EXAMPLES: Final = ROOT / "examples" / "clusters" / "kafka-3.9.1-six-brokers"
STATES: Final = ("healthy", "broker-4-dead")
ENDINGS: Final = {"zookeeper": "zookeeper.jsonl.gz", "describe": "topics-describe.txt.gz", "kcat": "kcat.json.gz"}

TOPIC_ID: Final = "oEwwV51-QoiZY0G02A_A6Q"


def example(state: str, source_format: str) -> Path:
    """Return the path of one file of the real cluster."""
    return EXAMPLES / f"{state}.{ENDINGS[source_format]}"


def raw_znodes(state: str) -> dict[str, dict[str, Any]]:
    """Return every znode of the real cluster as plain JSON, by path."""
    with gzip.open(example(state, "zookeeper"), "rt") as lines:
        return {znode["path"]: znode for znode in map(json.loads, lines)}


def znode(path: str, data: Any = None, **stat: Any) -> dict[str, Any]:
    """Return one line of a dump. ``data`` other than text or None is encoded as JSON."""
    text = data if data is None or isinstance(data, str) else json.dumps(data)
    return {"path": path, "data": text, "version": 0, "czxid": 1, "mzxid": 1, "cversion": 0, "ephemeral": False, **stat}


def registration(broker_id: int, **fields: Any) -> dict[str, Any]:
    """Return the znode of a broker."""
    data = {
        "version": 5,
        "host": "h",
        "port": 9092,
        "endpoints": [f"PLAINTEXT://host-{broker_id}:9092"],
        "listener_security_protocol_map": {"PLAINTEXT": "PLAINTEXT"},
        "rack": f"r{broker_id % 2}",
        **fields,
    }
    return znode(f"/brokers/ids/{broker_id}", data, czxid=100 + broker_id, ephemeral=True)


def topic_id_of(topic: str) -> str:
    """Return the id of a topic: TOPIC_ID for ``t``."""
    digest = hashlib.sha256(topic.encode(errors="replace")).digest()[:16]
    return TOPIC_ID if topic == "t" else base64.urlsafe_b64encode(digest).rstrip(b"=").decode()


def assignment(topic: str, partitions: Mapping[int, list[int]], **fields: Any) -> dict[str, Any]:
    """Return the znode of a topic."""
    data = {"version": 3, "partitions": partitions, "topic_id": topic_id_of(topic), **fields}
    return znode(f"/brokers/topics/{topic}", data)


def state(topic: str, partition: int, leader: int, isr: list[int], version: int = 0, **fields: Any) -> dict[str, Any]:
    """Return the state znode of a partition."""
    data = {"version": 1, "leader": leader, "isr": isr, "leader_epoch": 5, "controller_epoch": 2, **fields}
    return znode(f"/brokers/topics/{topic}/partitions/{partition}/state", data, version=version)


def dump(*changed: dict[str, Any], without: Iterable[str] = ()) -> list[dict[str, Any]]:
    """Return a dump of brokers 1 to 3 and topic ``t`` of two partitions. ``changed`` znodes replace others or are
    added."""
    nodes = [
        *(znode(path) for path in ("/brokers/ids", "/brokers/topics", "/config/topics", "/admin/delete_topics")),
        *(registration(broker_id) for broker_id in (1, 2, 3)),
        assignment("t", {0: [1, 2, 3], 1: [2, 3, 1]}),
        state("t", 0, 1, [1, 2, 3]),
        state("t", 1, 2, [2, 3], version=7),
        znode("/config/topics/t", {"version": 1, "config": {"min.insync.replicas": "2"}}),
        znode("/cluster/id", {"version": "1", "id": "a-cluster"}),
        znode("/controller", {"version": 2, "brokerid": 3}),
        znode("/controller_epoch", "4"),
    ]
    by_path = {node["path"]: node for node in nodes} | {node["path"]: node for node in changed}
    return [node for path, node in by_path.items() if path not in without]


def dump_text(znodes: Iterable[dict[str, Any]]) -> str:
    """Write a dump to a file."""
    return "".join(json.dumps(node) + "\n" for node in znodes)


DESCRIBE: Final = (
    f"Topic: t\tTopicId: {TOPIC_ID}\tPartitionCount: 2\tReplicationFactor: 3\tConfigs: min.insync.replicas=2\n"
    "\tTopic: t\tPartition: 0\tLeader: 1\tReplicas: 1,2,3\tIsr: 1,2,3\tElr: N/A\tLastKnownElr: N/A\n"
    "\tTopic: t\tPartition: 1\tLeader: 2\tReplicas: 2,3,1\tIsr: 2,3\tElr: N/A\tLastKnownElr: N/A\n"
)


def kcat(**changed: Any) -> dict[str, Any]:
    """Return the output of ``kcat -L -J``."""

    def partition(number: int, leader: int, replicas: list[int], isr: list[int]) -> dict[str, Any]:
        ids = {
            "replicas": [{"id": broker_id} for broker_id in replicas],
            "isrs": [{"id": broker_id} for broker_id in isr],
        }
        return {"partition": number, "leader": leader, **ids}

    return {
        "originating_broker": {"id": 1, "name": "host-1:9092/1"},
        "query": {"topic": "*"},
        "controllerid": 3,
        "brokers": [{"id": broker_id, "name": f"host-{broker_id}:9092"} for broker_id in (3, 1, 2)],
        "topics": [
            {"topic": "t", "partitions": [partition(0, 1, [1, 2, 3], [1, 2, 3]), partition(1, 2, [2, 3, 1], [2, 3])]}
        ],
        **changed,
    }


def reassignment(**changed: Any) -> dict[str, Any]:
    """Return a file for ``kafka-reassign-partitions --execute``."""
    entries = [
        {"topic": "t", "partition": 0, "replicas": [1, 2, 3]},
        {"topic": "t", "partition": 1, "replicas": [2, 3, 1]},
    ]
    return {"version": 1, "partitions": entries, **changed}


def facts(snapshot: Snapshot) -> dict[str, dict[str, Any]]:
    """Return all columns of the partition table by partition name, as plain values."""
    from kframe.snapshot.listing import partition_rows

    return {f"{row.topic}-{row.partition}": msgspec.to_builtins(row) for row in partition_rows(snapshot)}


#: A file in each text format.
CONTENT: Final = {
    "zookeeper": dump_text(dump()),
    "describe": DESCRIBE,
    "kcat": json.dumps(kcat()),
    "reassignment": json.dumps(reassignment()),
}
