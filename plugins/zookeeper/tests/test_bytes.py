"""Znodes that Kafka 3.9.1 wrote keep their bytes when they are decoded and encoded.

``vectors/zkdata.tsv`` is the output of Kafka's own ``ZkData`` (``vectors/Vectors.java``). The dumps come from a real
cluster.
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from kframe_zookeeper.znodes.brokers import decode_broker, encode_broker
from kframe_zookeeper.znodes.cluster import (
    NO_FEATURES,
    decode_controller,
    decode_controller_epoch,
    decode_producer_ids,
    encode_controller,
    encode_controller_epoch,
    encode_producer_ids,
)
from kframe_zookeeper.znodes.configs import decode_config, decode_config_change, encode_config, encode_config_change
from kframe_zookeeper.znodes.lists import (
    decode_log_dir_event,
    decode_partitions,
    decode_targets,
    encode_log_dir_event,
    encode_partitions,
    encode_targets,
)
from kframe_zookeeper.znodes.paths import (
    BROKER_IDS,
    CLUSTER_ID,
    CONFIG_CHANGES,
    CONTROLLER,
    CONTROLLER_EPOCH,
    FEATURE,
    ISR_CHANGES,
    LOG_DIR_EVENTS,
    PREFERRED_ELECTION,
    PRODUCER_IDS,
    REASSIGN_PARTITIONS,
)
from kframe_zookeeper.znodes.topics import decode_state, decode_topic, encode_state, encode_topics, table_of

from verification.zookeeper.trees import STATE_PATH

ROOT = Path(__file__).parents[3]
VECTORS = [
    line.split("\t", 1)
    for line in (Path(__file__).parent / "vectors" / "zkdata.tsv").read_text("utf-8").split("\n")[:-1]
]


def dumped(phase: str) -> Iterator[tuple[str, str]]:
    """Path and data of each znode in a dump that has data."""
    with gzip.open(
        ROOT / "examples" / "clusters" / "kafka-3.9.1-six-brokers" / f"{phase}.zookeeper.jsonl.gz", "rt"
    ) as lines:
        for line in lines:
            znode = json.loads(line)
            if znode["data"]:
                yield znode["path"], znode["data"]


def reencoded(path: str, raw: bytes) -> bytes:
    """Decode and encode ``raw``."""
    if STATE_PATH.fullmatch(path):
        state = decode_state(raw, path)
        return encode_state(
            state.leader, state.leader_epoch, state.isr, state.controller_epoch, state.leader_recovery_state
        )
    parent, _, name = path.rpartition("/")
    if parent == "/brokers/topics":
        topic = decode_topic(name, raw)
        (encoded,) = encode_topics(table_of([topic]), [topic.extra])
        return encoded
    if parent == BROKER_IDS:
        record = json.loads(raw)
        return encode_broker(
            decode_broker(name, raw, czxid=9),
            int(record["timestamp"]),
            version=record["version"],
            jmx_port=record["jmx_port"],
            features=record.get("features"),
        )
    if parent == CONFIG_CHANGES:
        return encode_config_change(decode_config_change(raw, path))
    if parent.startswith("/config"):
        return encode_config(decode_config(raw, path))
    if parent == LOG_DIR_EVENTS:
        return encode_log_dir_event(decode_log_dir_event(raw, path))
    if parent == ISR_CHANGES or path == PREFERRED_ELECTION:
        return encode_partitions(decode_partitions(raw, path))
    return SINGLE[path](raw)


def _controller(raw: bytes) -> bytes:
    controller = decode_controller(raw)
    return encode_controller(controller.brokerid, int(controller.timestamp or "0"))


def _producer_ids(raw: bytes) -> bytes:
    block = decode_producer_ids(raw)
    assert block is not None
    return encode_producer_ids(block)


#: Znodes that exist once in a cluster.
SINGLE: dict[str, Callable[[bytes], bytes]] = {
    CONTROLLER: _controller,
    CONTROLLER_EPOCH: lambda raw: encode_controller_epoch(decode_controller_epoch(raw)),
    PRODUCER_IDS: _producer_ids,
    FEATURE: lambda _: NO_FEATURES,
    REASSIGN_PARTITIONS: lambda raw: encode_targets(decode_targets(raw)),
}


def is_written(path: str, data: str) -> bool:
    """Whether a controller writes this record: never the cluster id, and ``/feature`` only without features."""
    return path != CLUSTER_ID and (path != FEATURE or data == NO_FEATURES.decode())


@pytest.mark.parametrize("path, data", [vector for vector in VECTORS if is_written(*vector)])
def test_encoders_write_kafkas_bytes(path: str, data: str) -> None:
    assert reencoded(path, data.encode()).decode() == data


@pytest.mark.parametrize("phase", ["healthy", "broker-4-dead"])
def test_znodes_of_dump_are_reencoded_to_same_bytes(phase: str) -> None:
    znodes_of = [znode for znode in dumped(phase) if is_written(*znode)]
    assert len(znodes_of) > 700
    assert [path for path, data in znodes_of if reencoded(path, data.encode()) != data.encode()] == []
