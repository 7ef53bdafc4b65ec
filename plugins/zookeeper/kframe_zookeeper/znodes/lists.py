"""Requests of operators and notifications of brokers: znodes that list partitions or name a broker.

The reference is ``docs/reference/controller/zookeeper.md``, sections 3.7 and 3.8.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

import msgspec
import numpy as np

from kframe.plugin import ZnodeError
from kframe.plugin.cluster import Targets, TopicPartition
from kframe.plugin.columns import Ragged
from kframe.plugin.snapshot import check_topic_name
from kframe.plugin.znodes import Count, SchemaVersion
from kframe_zookeeper.znodes.paths import PREFERRED_ELECTION, REASSIGN_PARTITIONS
from kframe_zookeeper.znodes.strict import decode_znode, encode_znode

LIST_VERSION: Final = 1
#: The only log directory event: the directory failed.
LOG_DIR_FAILED: Final = 1


class _ListedPartition(msgspec.Struct):
    topic: str
    partition: Count


class _Target(msgspec.Struct):
    topic: str
    partition: Count
    replicas: list[Count]


class _PartitionsZnode(msgspec.Struct):
    version: SchemaVersion
    partitions: list[_ListedPartition]


class _TargetsZnode(msgspec.Struct):
    version: SchemaVersion
    partitions: list[_Target]


class _LogDirEventZnode(msgspec.Struct):
    version: SchemaVersion
    broker: Count
    event: SchemaVersion


_PARTITIONS: Final = msgspec.json.Decoder(_PartitionsZnode)
_TARGETS: Final = msgspec.json.Decoder(_TargetsZnode)
_LOG_DIR_EVENT: Final = msgspec.json.Decoder(_LogDirEventZnode)


def decode_targets(raw: bytes | None) -> Targets:
    """The targets in ``/admin/reassign_partitions``, in order. Raises ZnodeError.

    Other fields that tools write (log_dirs) are ignored. A partition may be named repeatedly, and a list may be empty;
    ``core`` handles both.
    """
    record, _ = decode_znode(_TARGETS, raw, REASSIGN_PARTITIONS)
    _check_names(record.partitions, REASSIGN_PARTITIONS)
    numbers: dict[str, int] = {}
    topics = [numbers.setdefault(target.topic, len(numbers)) for target in record.partitions]
    return Targets(
        tuple(numbers),
        np.array(topics, np.int32),
        np.array([target.partition for target in record.partitions], np.int32),
        Ragged.of([target.replicas for target in record.partitions]),
        np.zeros(len(topics), np.bool_),
    )


def encode_targets(targets: Targets) -> bytes:
    """The record of these reassignments."""
    topics, partitions = targets.topic.tolist(), targets.partition.tolist()
    return encode_znode(
        _TargetsZnode(
            LIST_VERSION,
            [
                _Target(targets.names[topic], partition, targets.replicas[number].tolist())
                for number, (topic, partition) in enumerate(zip(topics, partitions, strict=True))
            ],
        )
    )


def decode_partitions(raw: bytes | None, path: str = PREFERRED_ELECTION) -> tuple[TopicPartition, ...]:
    """The partitions named by ``/admin/preferred_replica_election`` or by an ISR notification. Raises ZnodeError."""
    record, _ = decode_znode(_PARTITIONS, raw, path)
    _check_names(record.partitions, path)
    return tuple((partition.topic, partition.partition) for partition in record.partitions)


def encode_partitions(partitions: Iterable[TopicPartition]) -> bytes:
    """The record of these partitions."""
    return encode_znode(_PartitionsZnode(LIST_VERSION, [_ListedPartition(*partition) for partition in partitions]))


def decode_log_dir_event(raw: bytes | None, path: str) -> int:
    """The id of the broker whose log directory failed. Raises ZnodeError."""
    return decode_znode(_LOG_DIR_EVENT, raw, path)[0].broker


def encode_log_dir_event(broker_id: int) -> bytes:
    """The notification of a failed log directory."""
    return encode_znode(_LogDirEventZnode(LIST_VERSION, broker_id, LOG_DIR_FAILED))


def _check_names(partitions: Sequence[_ListedPartition | _Target], path: str) -> None:
    for number, partition in enumerate(partitions):
        check_topic_name(partition.topic, f"{path} field partitions[{number}].topic", ZnodeError)
