"""Random metadata of KRaft clusters, malformed partitions included."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final
from uuid import UUID

import numpy as np
from hypothesis import strategies as st

from kframe.core.kraft.brokers.heartbeats import Heartbeats
from kframe.core.kraft.context import KraftContext, KraftSettings
from kframe.core.kraft.random_source import JavaRandom
from kframe.core.kraft.replay import replay
from kframe.core.kraft.replication import isr_changes
from kframe.core.kraft.replication.change_batch import PartitionChangeBatch
from kframe.core.kraft.replication.partition_changes import TargetReplicas, plan_changes
from kframe.model.arrays import Int32, Ragged
from kframe.model.kraft.ids import ELR_VERSION, METADATA_VERSION, MetadataLevel
from kframe.model.kraft.metadata import ClusterMetadata
from kframe.model.kraft.records import (
    FeatureLevelRecord,
    PartitionChangeRecord,
    PartitionRecord,
    RegisterBrokerRecord,
    TopicRecord,
)

BROKERS: Final = 6
TOPICS: Final = 2
PARTITIONS: Final = 2


def topic_id(index: int) -> UUID:
    return UUID(int=1_000_000 + index)


def directory_id(broker: int, index: int) -> UUID:
    return UUID(int=2_000_000 + broker * 10 + index)


broker_ids = st.integers(0, BROKERS - 1)
member_lists = st.lists(broker_ids, unique=True, max_size=BROKERS).map(tuple)


@st.composite
def registrations(draw: st.DrawFn, broker: int) -> RegisterBrokerRecord:
    indexes = draw(st.lists(st.integers(0, 2), unique=True, max_size=3))
    return RegisterBrokerRecord(
        broker_id=broker,
        incarnation_id=UUID(int=3_000_000 + broker),
        broker_epoch=100 + broker,
        end_points=(),
        features=(),
        rack=None,
        fenced=draw(st.booleans()),
        in_controlled_shutdown=draw(st.integers(0, 3)) == 0,
        log_dirs=tuple(directory_id(broker, index) for index in indexes),
    )


@st.composite
def directory_lists(draw: st.DrawFn, replicas: tuple[int, ...]) -> tuple[UUID, ...]:
    return tuple(draw(st.sampled_from([*(UUID(int=k) for k in range(3)), *_own(replica)])) for replica in replicas)


def _own(replica: int) -> list[UUID]:
    return [directory_id(replica, index) for index in range(3)]


@st.composite
def partitions(draw: st.DrawFn, topic: int, partition: int) -> PartitionRecord:
    replicas = draw(member_lists.filter(bool))
    return PartitionRecord(
        partition_id=partition,
        topic_id=topic_id(topic),
        replicas=replicas,
        isr=draw(member_lists),
        removing_replicas=draw(member_lists) if draw(st.booleans()) else (),
        adding_replicas=draw(member_lists) if draw(st.booleans()) else (),
        leader=draw(st.integers(-1, BROKERS - 1)),
        leader_recovery_state=draw(st.integers(0, 1)),
        leader_epoch=draw(st.integers(0, 9)),
        partition_epoch=draw(st.integers(0, 9)),
        directories=draw(directory_lists(replicas)),
        eligible_leader_replicas=draw(st.none() | member_lists),
        last_known_elr=draw(st.none() | st.lists(st.integers(-1, BROKERS - 1), max_size=2).map(tuple)),
    )


@st.composite
def changes(draw: st.DrawFn, topic: int, partition: int) -> PartitionChangeRecord:
    replicas = draw(st.none() | member_lists.filter(bool))
    optional = st.none() | member_lists
    return PartitionChangeRecord(
        partition_id=partition,
        topic_id=topic_id(topic),
        isr=draw(optional),
        leader=draw(st.integers(-2, BROKERS - 1)),
        replicas=replicas,
        removing_replicas=draw(optional),
        adding_replicas=draw(optional),
        leader_recovery_state=draw(st.integers(-1, 1)),
        directories=None if replicas is None else draw(directory_lists(replicas)),
        eligible_leader_replicas=draw(optional),
        last_known_elr=draw(optional),
    )


@st.composite
def clusters(draw: st.DrawFn, levels: Sequence[int] = (7, 12, 17, 23, MetadataLevel.LATEST)) -> ClusterMetadata:
    """Topics and brokers; ``levels`` are those of ``metadata.version``."""
    metadata = ClusterMetadata()
    level = int(draw(st.sampled_from(levels)))
    replay(metadata, FeatureLevelRecord(name=METADATA_VERSION, feature_level=level), 0)
    for broker in range(BROKERS):
        metadata.brokers.index_of(broker)
        if draw(st.integers(0, 5)):
            replay(metadata, draw(registrations(broker)), broker)
    for topic in range(TOPICS):
        replay(metadata, TopicRecord(name=f"t{topic}", topic_id=topic_id(topic)), 0)
        for partition in range(PARTITIONS):
            replay(metadata, draw(partitions(topic, partition)), 0)
    return metadata


def context_of(metadata: ClusterMetadata, *, elr: bool) -> KraftContext:
    """A controller of random metadata. ``elr`` enables eligible leader replicas where the level has them."""
    elr &= metadata.metadata_version >= MetadataLevel.ELR
    replay(metadata, FeatureLevelRecord(name=ELR_VERSION, feature_level=int(elr)), 0)
    return KraftContext(metadata, Heartbeats(1), KraftSettings(min_insync_replicas=2), JavaRandom(0))


Change = Callable[[KraftContext, int, Int32], PartitionChangeBatch]


def without_adding(context: KraftContext, broker_id: int, rows: Int32) -> PartitionChangeBatch:
    """A change of lists that only reassignments have."""
    kinds = np.zeros(len(rows), np.uint8)
    return plan_changes(context, TargetReplicas(rows=rows, kinds=kinds, adding=Ragged.empty(len(rows))))


CHANGES: Final[tuple[Change, ...]] = (
    isr_changes.remove_broker,
    isr_changes.remove_unclean_broker,
    isr_changes.add_broker,
    without_adding,
)
