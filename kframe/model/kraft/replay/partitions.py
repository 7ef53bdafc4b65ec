"""Replay of the records of topics and partitions (Kafka 4.4 ``ReplicationControlManager.replay``)."""

from __future__ import annotations

from collections.abc import Sequence
from uuid import UUID

import numpy as np

from kframe.errors import InputError
from kframe.model.columns import Int32
from kframe.model.kafka_uuids import uuid_text
from kframe.model.kraft.directories import MIGRATING
from kframe.model.kraft.ids import ResourceType
from kframe.model.kraft.metadata import ClusterMetadata
from kframe.model.kraft.records import (
    NO_LEADER_CHANGE,
    NO_RECOVERY_CHANGE,
    ClearElrRecord,
    DirectoryIds,
    Ids,
    PartitionChangeRecord,
    PartitionRecord,
    RemoveTopicRecord,
    TopicRecord,
)
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
    topic = _topic(metadata, record.topic_id)
    if not 0 <= record.partition_id < PARTITIONS_MAX:
        raise InputError("PartitionRecord", f"partition {record.partition_id}", f"0 to {PARTITIONS_MAX - 1}")
    index_of = metadata.brokers.indexes_of
    lists = {
        "replica": index_of(record.replicas),
        "isr": index_of(record.isr),
        "directory": _directories(metadata, record.directories, len(record.replicas)),
        "elr": index_of(record.eligible_leader_replicas or ()),
        "last_known_elr": index_of(record.last_known_elr or ()),
        "adding": index_of(record.adding_replicas),
        "removing": index_of(record.removing_replicas),
    }
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


def replay_partition_change(metadata: ClusterMetadata, record: PartitionChangeRecord, offset: int) -> None:
    """Change a partition. Its epoch rises, and its leader epoch if the record names a leader."""
    partitions = metadata.partitions
    row = metadata.topics.row_of(_topic(metadata, record.topic_id), record.partition_id)
    if row is None:
        raise InputError("PartitionChangeRecord", f"partition {record.partition_id}", "a partition of the topic")
    fields: dict[str, Ids | None] = {
        "replica": record.replicas,
        "isr": record.isr,
        "elr": record.eligible_leader_replicas,
        "last_known_elr": record.last_known_elr,
        "adding": record.adding_replicas,
        "removing": record.removing_replicas,
    }
    lists: dict[str, Sequence[int]] = {
        name: metadata.brokers.indexes_of(ids) for name, ids in fields.items() if ids is not None
    }
    count = int(partitions.replica_count[row]) if record.replicas is None else len(record.replicas)
    if record.directories is not None:
        lists["directory"] = _directories(metadata, record.directories, count)
    elif count != partitions.replica_count[row]:
        # Below metadata.version 17 no record has directories. Kafka keeps the former number of directories and fails.
        stored = dict(zip(partitions.list_of("replica", row), partitions.list_of("directory", row), strict=True))
        lists["directory"] = [stored.get(replica, MIGRATING) for replica in lists["replica"]]
    if lists:
        partitions.replace_lists(row, lists)
    if record.leader != NO_LEADER_CHANGE:
        partitions.leader[row] = metadata.brokers.index_of(record.leader)
        partitions.leader_epoch[row] += 1
    if record.leader_recovery_state != NO_RECOVERY_CHANGE:
        partitions.recovery[row] = record.leader_recovery_state
    partitions.partition_epoch[row] += 1


def replay_remove_topic(metadata: ClusterMetadata, record: RemoveTopicRecord, offset: int) -> None:
    """Remove a topic with its partitions and configurations."""
    topic = _topic(metadata, record.topic_id)
    metadata.partitions.clear(metadata.topics.rows_of(topic))
    metadata.configs.pop((ResourceType.TOPIC, metadata.topics.names[topic]), None)
    metadata.topics.remove(topic)


def replay_clear_elr(metadata: ClusterMetadata, record: ClearElrRecord, offset: int) -> None:
    """Empty ELRs and last-known ELRs. The epoch of a partition rises where there was any."""
    partitions = metadata.partitions
    rows: Int32 = np.arange(len(partitions), dtype=np.int32)
    if record.topic_name:
        topic = metadata.topics.index_by_name.get(record.topic_name)
        if topic is None:
            raise InputError("ClearElrRecord", f"topic {record.topic_name}", "a topic that exists")
        rows = metadata.topics.rows_of(topic)
    rows = rows[(partitions.elr_count[rows] > 0) | (partitions.last_known_elr_count[rows] > 0)]
    for row in rows[(partitions.adding_count[rows] > 0) | (partitions.removing_count[rows] > 0)].tolist():
        partitions.replace_lists(row, {"elr": (), "last_known_elr": ()})
    partitions.elr_count[rows] = partitions.last_known_elr_count[rows] = 0
    partitions.partition_epoch[rows] += 1


def _topic(metadata: ClusterMetadata, topic_id: UUID) -> int:
    topic = metadata.topics.index_by_id.get(topic_id)
    if topic is None:
        raise InputError("topic of a metadata record", f"topic id {uuid_text(topic_id)}", "a topic that exists")
    return topic


def _directories(metadata: ClusterMetadata, directories: DirectoryIds, count: int) -> list[int]:
    """Directory indexes of ``count`` replicas. All are MIGRATING if ``directories`` is empty."""
    if not directories:
        return [MIGRATING] * count
    return metadata.directories.indexes_of(directories)
