"""KRaft clusters with many partitions, built in columns."""

from __future__ import annotations

from uuid import UUID

import numpy as np

from kframe.core.kraft.brokers.heartbeats import Heartbeats
from kframe.core.kraft.context import KraftContext, KraftSettings
from kframe.core.kraft.random_source import JavaRandom
from kframe.core.kraft.replay import replay
from kframe.model.arrays import Ragged
from kframe.model.kraft.columns import PartitionLists
from kframe.model.kraft.ids import ELR_VERSION, METADATA_VERSION, MetadataLevel
from kframe.model.kraft.metadata import ClusterMetadata
from kframe.model.kraft.records import FeatureLevelRecord, RegisterBrokerRecord, TopicRecord

FACTOR = 3


def large_cluster(brokers: int, partitions: int, *, topics: int = 1, elr: bool = False) -> KraftContext:
    """Active brokers 0, 1, …, and topics t0, t1, … with so many partitions in all, each led by its first replica."""
    metadata = ClusterMetadata()
    replay(metadata, FeatureLevelRecord(name=METADATA_VERSION, feature_level=MetadataLevel.LATEST), 0)
    replay(metadata, FeatureLevelRecord(name=ELR_VERSION, feature_level=int(elr)), 0)
    for broker in range(brokers):
        replay(metadata, _registration(broker), broker)
    per_topic = partitions // topics
    for topic in range(topics):
        replay(metadata, TopicRecord(name=f"t{topic}", topic_id=UUID(int=500 + topic)), 0)
    first = np.arange(partitions, dtype=np.int32) % brokers
    replicas = Ragged(
        np.arange(0, FACTOR * partitions + 1, FACTOR, dtype=np.int32),
        ((np.repeat(first, FACTOR) + np.tile(np.arange(FACTOR, dtype=np.int32), partitions)) % brokers).astype(
            np.int32
        ),
    )
    directories = np.array(
        metadata.directories.indexes_of(UUID(int=900 + broker) for broker in range(brokers)), np.int32
    )
    none = Ragged.empty(partitions)
    lists = PartitionLists(
        replicas, replicas, Ragged(replicas.offsets, directories[replicas.values]), none, none, none, none
    )
    numbers = np.arange(partitions, dtype=np.int32)
    columns = {"topic": numbers // per_topic, "partition": numbers % per_topic, "leader": first}
    rows = metadata.partitions.append(lists, columns)
    for row in rows.tolist():
        metadata.topics.set_row(row // per_topic, row % per_topic, row)
    heartbeats = Heartbeats.activated(1, metadata.brokers.registrations, 0)
    return KraftContext(metadata, heartbeats, KraftSettings(), JavaRandom(0))


def _registration(broker: int) -> RegisterBrokerRecord:
    return RegisterBrokerRecord(
        broker_id=broker,
        incarnation_id=UUID(int=700 + broker),
        broker_epoch=broker,
        end_points=(),
        features=(),
        rack=None,
        fenced=False,
        log_dirs=(UUID(int=900 + broker),),
    )
