"""Replay of topics and their partitions (Kafka 4.4 ``ReplicationControlManager.replay``)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import chain
from typing import Any
from uuid import UUID

import numpy as np

from kframe.errors import InputError
from kframe.model.arrays import Ragged, offsets_of
from kframe.model.kafka_uuids import uuid_text
from kframe.model.kraft import directory_ids
from kframe.model.kraft.columns import PartitionLists
from kframe.model.kraft.directories import MIGRATING
from kframe.model.kraft.ids import ResourceType
from kframe.model.kraft.metadata import ClusterMetadata
from kframe.model.kraft.records import DirectoryIds, PartitionRecord, RemoveTopicRecord, TopicRecord
from kframe.model.kraft.topics import PARTITIONS_MAX


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
    brokers = _Indexes(metadata.brokers.index_of)
    directories = _Indexes(metadata.directories.index_of)
    lists = PartitionLists(
        replicas=_packed(brokers, [record.replicas for record in new]),
        isr=_packed(brokers, [record.isr for record in new]),
        directories=_packed(directories, [_directories_of(record) for record in new]),
        elr=_packed(brokers, [record.eligible_leader_replicas or () for record in new]),
        last_known_elr=_packed(brokers, [record.last_known_elr or () for record in new]),
        adding=_packed(brokers, [record.adding_replicas for record in new]),
        removing=_packed(brokers, [record.removing_replicas for record in new]),
    )
    values = {
        "topic": topics,
        "partition": [record.partition_id for record in new],
        "leader": [brokers[record.leader] for record in new],
        "leader_epoch": [record.leader_epoch for record in new],
        "partition_epoch": [record.partition_epoch for record in new],
        "recovery": [record.leader_recovery_state for record in new],
    }
    columns = {name: np.array(column, np.int32) for name, column in values.items()}
    rows = metadata.partitions.append(lists, columns)
    for topic, record, row in zip(topics, new, rows.tolist(), strict=True):
        metadata.topics.set_row(topic, record.partition_id, row)


class _Indexes(dict[Any, int]):
    """The indexes of ids, each looked up once."""

    def __init__(self, index_of: Callable[[Any], int]) -> None:
        super().__init__()
        self._index_of = index_of

    def __missing__(self, key: Any) -> int:
        index = self[key] = self._index_of(key)
        return index


def _packed(indexes: Mapping[Any, int], lists: Sequence[Sequence[Any]]) -> Ragged:
    """The lists as indexes."""
    offsets = offsets_of(np.fromiter(map(len, lists), np.int32, len(lists)))
    flat = map(indexes.__getitem__, chain.from_iterable(lists))
    return Ragged(offsets, np.fromiter(flat, np.int32, int(offsets[-1])))


def _directories_of(record: PartitionRecord) -> DirectoryIds:
    """The directory of each replica. All are MIGRATING if the record has none."""
    return record.directories or (directory_ids.MIGRATING,) * len(record.replicas)


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
