"""Replay of configurations, and of the ELRs that they clear."""

from __future__ import annotations

import numpy as np

from kframe.errors import InputError
from kframe.model.arrays import Int32
from kframe.model.kraft.ids import ResourceType
from kframe.model.kraft.metadata import ClusterMetadata
from kframe.model.kraft.records import ClearElrRecord, ConfigRecord


def replay_config(metadata: ClusterMetadata, record: ConfigRecord, offset: int) -> None:
    """Set or remove a configuration. The settings of a topic that elections read are stored with the topic."""
    resource = record.resource_type, record.resource_name
    configs = metadata.configs.setdefault(resource, {})
    if record.value is None:
        configs.pop(record.name, None)
    else:
        configs[record.name] = record.value
    if not configs:
        del metadata.configs[resource]
    topic = metadata.topics.index_by_name.get(record.resource_name) if resource[0] == ResourceType.TOPIC else None
    if topic is not None:
        metadata.topics.store_setting(topic, record.name, record.value)


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
