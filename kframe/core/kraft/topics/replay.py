"""Replay of topics and their partitions (Kafka 4.4 ``ReplicationControlManager.replay``)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final
from uuid import UUID

import numpy as np

from kframe.errors import InputError
from kframe.model.arrays import Ragged
from kframe.model.kafka_uuids import uuid_text
from kframe.model.kraft.columns import PartitionLists
from kframe.model.kraft.directories import MIGRATING
from kframe.model.kraft.ids import ResourceType
from kframe.model.kraft.metadata import ClusterMetadata
from kframe.model.kraft.records import DirectoryIds, PartitionRecord, RemoveTopicRecord, TopicRecord
from kframe.model.kraft.topics import PARTITIONS_MAX

#: The names of lists in a row, by the fields of ``PartitionLists``.
_FIELDS: Final = {
    "replicas": "replica",
    "isr": "isr",
    "directories": "directory",
    "elr": "elr",
    "last_known_elr": "last_known_elr",
    "adding": "adding",
    "removing": "removing",
}


def replay_topic(metadata: ClusterMetadata, record: TopicRecord, offset: int) -> None:
    """Add a topic."""
    topics = metadata.topics
    if record.name in topics.index_by_name or record.topic_id in topics.index_by_id:
        raise InputError(
            "TopicRecord", f"topic {record.name} with id {uuid_text(record.topic_id)} again", "a new topic"
        )
    index = topics.add(record.name, record.topic_id)
    for key, value in metadata.configs.get((ResourceType.TOPIC, record.name), {}).items():
        topics.store_setting(index, key, value)


def replay_partition(metadata: ClusterMetadata, record: PartitionRecord, offset: int) -> None:
    """Add a partition, or replace its whole state."""
    topic, lists = _topic_of(metadata, record), _lists_of(metadata, record)
    partitions = metadata.partitions
    row = metadata.topics.row_of(topic, record.partition_id)
    if row is None:
        row = partitions.append_row(lists)
        partitions.topic[row], partitions.partition[row] = topic, record.partition_id
        metadata.topics.set_row(topic, record.partition_id, row)
    else:
        partitions.replace_lists(row, lists)
    partitions.leader[row] = metadata.brokers.index_of(record.leader)
    partitions.leader_epoch[row] = record.leader_epoch
    partitions.partition_epoch[row] = record.partition_epoch
    partitions.recovery[row] = record.leader_recovery_state


def replay_new_partitions(metadata: ClusterMetadata, new: Sequence[PartitionRecord]) -> None:
    """Add partitions that do not exist, as ``replay_partition`` does one by one: the columns grow only once."""
    topics = [_topic_of(metadata, record) for record in new]
    lists = [_lists_of(metadata, record) for record in new]
    index_of = metadata.brokers.index_of
    values = {
        "topic": topics,
        "partition": [record.partition_id for record in new],
        "leader": [index_of(record.leader) for record in new],
        "leader_epoch": [record.leader_epoch for record in new],
        "partition_epoch": [record.partition_epoch for record in new],
        "recovery": [record.leader_recovery_state for record in new],
    }
    packed = {field: Ragged.of([row[name] for row in lists]) for field, name in _FIELDS.items()}
    columns = {name: np.array(column, np.int32) for name, column in values.items()}
    rows = metadata.partitions.append(PartitionLists(**packed), columns)
    for topic, record, row in zip(topics, new, rows.tolist(), strict=True):
        metadata.topics.set_row(topic, record.partition_id, row)


def _topic_of(metadata: ClusterMetadata, record: PartitionRecord) -> int:
    topic = topic_index(metadata, record.topic_id)
    if not 0 <= record.partition_id < PARTITIONS_MAX:
        raise InputError("PartitionRecord", f"partition {record.partition_id}", f"0 to {PARTITIONS_MAX - 1}")
    return topic


def _lists_of(metadata: ClusterMetadata, record: PartitionRecord) -> dict[str, list[int]]:
    """The lists of a partition by name, as ``KraftPartitions.append_row`` takes them."""
    index_of = metadata.brokers.indexes_of
    return {
        "replica": index_of(record.replicas),
        "isr": index_of(record.isr),
        "directory": directory_indexes(metadata, record.directories, len(record.replicas)),
        "elr": index_of(record.eligible_leader_replicas or ()),
        "last_known_elr": index_of(record.last_known_elr or ()),
        "adding": index_of(record.adding_replicas),
        "removing": index_of(record.removing_replicas),
    }


def replay_remove_topic(metadata: ClusterMetadata, record: RemoveTopicRecord, offset: int) -> None:
    """Remove a topic with its partitions and configurations."""
    topic = topic_index(metadata, record.topic_id)
    metadata.partitions.clear(metadata.topics.rows_of(topic))
    metadata.configs.pop((ResourceType.TOPIC, metadata.topics.names[topic]), None)
    metadata.topics.remove(topic)


def topic_index(metadata: ClusterMetadata, topic_id: UUID) -> int:
    """The index of a topic. Raises InputError for an unknown topic."""
    topic = metadata.topics.index_by_id.get(topic_id)
    if topic is None:
        raise InputError("topic of a metadata record", f"topic id {uuid_text(topic_id)}", "a topic that exists")
    return topic


def directory_indexes(metadata: ClusterMetadata, directories: DirectoryIds, count: int) -> list[int]:
    """Directory indexes of ``count`` replicas. All are MIGRATING if ``directories`` is empty."""
    if not directories:
        return [MIGRATING] * count
    return metadata.directories.indexes_of(directories)
