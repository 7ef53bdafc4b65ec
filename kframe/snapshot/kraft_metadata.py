"""Snapshot of a KRaft cluster to the metadata that a KRaft controller decides on, and back."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final
from uuid import UUID

import numpy as np
from numpy.typing import NDArray

from kframe.core.kraft.replay import replay
from kframe.model.arrays import Int32, Ragged, offsets_of, positions_within
from kframe.model.brokers import SECURITY_PROTOCOLS, Endpoint
from kframe.model.ids import NO_LEADER
from kframe.model.kraft.brokers import BrokerRegistration
from kframe.model.kraft.columns import PartitionLists
from kframe.model.kraft.directories import UNASSIGNED, Directories
from kframe.model.kraft.ids import ResourceType
from kframe.model.kraft.image_records import config_records, quota_records
from kframe.model.kraft.metadata import ClusterMetadata
from kframe.model.kraft.records import MetadataRecord, ProducerIdsRecord, ZkMigrationStateRecord
from kframe.model.kraft.topics import NO_ROW
from kframe.snapshot.content import SnapshotContent
from kframe.snapshot.convert import broker_indexer
from kframe.snapshot.facts import BrokerFacts, KraftFacts, PartitionFacts, Source, TopicFacts
from kframe.snapshot.kraft_assumptions import assumed_features, assumed_registration, assumed_topic_id

_PROTOCOLS: Final = {number: name for name, number in SECURITY_PROTOCOLS.items()}
_CLUSTER_CONFIGS: Final = (int(ResourceType.BROKER), "")


def snapshot_of_metadata(
    metadata: ClusterMetadata, source: Source, offset: int | None, voters: tuple[int, ...] | None
) -> SnapshotContent:
    """See ``Snapshot.from_metadata``, which adds the identity of the cluster."""
    topics, p = metadata.topics, metadata.partitions
    names = sorted(topics.index_by_name)
    order = np.array([topics.index_by_name[name] for name in names], np.int64)
    rank = np.full(len(topics) + 1, -1, np.int32)
    rank[order] = np.arange(len(order), dtype=np.int32)
    rows, counts = _canonical_rows(metadata, rank)
    numbers = p.partition[rows]
    partitions, directory_ids = _partition_facts(metadata, rows)
    topic_facts = TopicFacts(
        names=tuple(names),
        partition_counts=counts,
        topic_ids=np.frombuffer(b"".join(topics.ids[index].bytes for index in order), np.uint8).reshape(-1, 16),
        configs={
            index: dict(configs)
            for index, name in enumerate(names)
            if (configs := metadata.configs.get((int(ResourceType.TOPIC), name)))
        },
        partitions=None if np.array_equal(numbers, positions_within(counts)) else numbers,
    )
    return SnapshotContent(
        brokers=tuple(_broker_facts(metadata)),
        topics=topic_facts,
        partitions=partitions,
        source=source,
        broker_default_configs=dict(metadata.configs.get(_CLUSTER_CONFIGS, {})),
        kraft=KraftFacts(dict(metadata.features), tuple(_other_records(metadata)), directory_ids, offset, voters),
    )


def _canonical_rows(metadata: ClusterMetadata, rank: Int32) -> tuple[NDArray[np.int64], Int32]:
    """Rows topic by topic, partitions ascending, without rows of removed topics; and topic sizes."""
    p = metadata.partitions
    owners = rank[p.topic]
    rows = np.flatnonzero(owners >= 0)
    owners = owners[rows]
    key = owners.astype(np.int64) << 32 | p.partition[rows]
    if len(key) > 1 and bool(np.any(key[1:] <= key[:-1])):
        order = np.argsort(key, kind="stable")
        rows, owners = rows[order], owners[order]
    return rows, np.bincount(owners, minlength=int(rank.max()) + 1).astype(np.int32)


def _partition_facts(metadata: ClusterMetadata, rows: NDArray[np.int64]) -> tuple[PartitionFacts, tuple[UUID, ...]]:
    p, ids = metadata.partitions, metadata.brokers.ids
    empty = Ragged.empty(len(rows))

    def broker_lists(name: str, shared: Int32 | None = None) -> Ragged:
        """Lists of broker ids; equal offsets share one array, so that lists without entries take no room."""
        lists = p.lists(name, rows)
        if not len(lists.values):
            return empty
        same = shared is not None and np.array_equal(lists.offsets, shared)
        return Ragged(shared if same and shared is not None else lists.offsets, ids[lists.values])

    replicas = broker_lists("replica")
    directories = p.lists("directory", rows)
    directory_ids, values = _canonical_directories(metadata.directories, directories.values)
    leader = p.leader[rows].astype(np.int32)
    led = leader >= 0
    leader[led] = ids[leader[led]]
    facts = PartitionFacts(
        replicas=replicas,
        leader=leader,
        isr=broker_lists("isr", replicas.offsets),
        leader_epoch=p.leader_epoch[rows],
        partition_epoch=p.partition_epoch[rows],
        leader_recovery_state=p.recovery[rows].astype(np.int32),
        adding_replicas=broker_lists("adding"),
        removing_replicas=broker_lists("removing"),
        elr=broker_lists("elr"),
        last_known_elr=broker_lists("last_known_elr"),
        directories=Ragged(replicas.offsets, values),
    )
    return facts, directory_ids


def _canonical_directories(directories: Directories, values: Int32) -> tuple[tuple[UUID, ...], Int32]:
    """The directory ids that ``values`` name, the reserved ones first and the others sorted; and ``values`` by them."""
    reserved = len(Directories())
    used = np.flatnonzero(np.bincount(values, minlength=reserved)) if len(values) else np.arange(0)
    other_indexes = sorted(used[used >= reserved].tolist(), key=lambda index: directories.ids[index])
    position = np.zeros(max(len(directories), 1), np.int32)
    position[:reserved] = np.arange(reserved)
    position[other_indexes] = np.arange(reserved, reserved + len(other_indexes))
    return (*directories.ids[:reserved], *(directories.ids[index] for index in other_indexes)), position[values]


def _broker_facts(metadata: ClusterMetadata) -> Iterator[BrokerFacts]:
    for broker_id in sorted(metadata.brokers.ids.tolist()):
        registration = metadata.brokers.registrations.get(broker_id)
        yield BrokerFacts(broker_id, registered=False) if registration is None else broker_facts_of(registration)


def broker_facts_of(registration: BrokerRegistration) -> BrokerFacts:
    """The facts of a registered broker."""
    endpoints = tuple(
        Endpoint(point.name, point.host, point.port, _PROTOCOLS.get(point.security_protocol, "PLAINTEXT"))
        for point in registration.end_points
    )
    return BrokerFacts(
        registration.broker_id, True, registration.broker_epoch, endpoints, registration.rack, registration
    )


def _other_records(metadata: ClusterMetadata) -> Iterator[MetadataRecord]:
    """The metadata that no table has, as records in an order that depends on nothing else."""
    for record in config_records(metadata):
        resource = record.resource_type, record.resource_name
        is_topic = record.resource_type == ResourceType.TOPIC and record.resource_name in metadata.topics.index_by_name
        if not is_topic and resource != _CLUSTER_CONFIGS:
            yield record
    yield from (controller for _, controller in sorted(metadata.controllers.items()))
    yield from quota_records(sorted(metadata.quotas.items(), key=lambda item: str(item[0])))
    yield from (acl for _, acl in sorted(metadata.acls.items()))
    yield from (credential for _, credential in sorted(metadata.scram.items()))
    yield from (token for _, token in sorted(metadata.tokens.items()))
    if metadata.next_producer_id:
        yield ProducerIdsRecord(broker_id=-1, next_producer_id=metadata.next_producer_id)
    if metadata.zk_migration_state is not None:
        yield ZkMigrationStateRecord(zk_migration_state=metadata.zk_migration_state)


def metadata_of(snapshot: SnapshotContent) -> ClusterMetadata:
    """See ``Snapshot.to_metadata``."""
    metadata = ClusterMetadata()
    facts = snapshot.kraft or KraftFacts()
    metadata.features = dict(assumed_features(snapshot) if facts.features is None else facts.features)
    for broker in snapshot.brokers:
        metadata.brokers.index_of(broker.broker_id)
        registration = broker.registration or assumed_registration(broker)
        if registration is not None:
            metadata.brokers.register(registration)
    for record in facts.records or ():
        replay(metadata, record, facts.offset or 0)
    if snapshot.broker_default_configs:
        metadata.configs[_CLUSTER_CONFIGS] = dict(snapshot.broker_default_configs)
    _add_topics(metadata, snapshot.topics)
    _add_partitions(metadata, snapshot, facts)
    return metadata


def _add_topics(metadata: ClusterMetadata, topics: TopicFacts) -> None:
    configs = topics.configs or {}
    for index, (name, topic_id) in enumerate(zip(topics.names, _topic_ids(topics), strict=True)):
        metadata.topics.add(name, topic_id)
        if index in configs:
            metadata.configs[int(ResourceType.TOPIC), name] = dict(configs[index])
            for key, value in configs[index].items():
                metadata.topics.store_setting(index, key, value)


def _topic_ids(topics: TopicFacts) -> Iterator[UUID]:
    """The id of each topic; an assumed one where the snapshot has none."""
    if topics.topic_ids is None:
        yield from map(assumed_topic_id, range(len(topics)))
        return
    ids, known = topics.topic_ids.tobytes(), np.any(topics.topic_ids, axis=1)
    for index, is_known in enumerate(known.tolist()):
        yield UUID(bytes=ids[16 * index : 16 * index + 16]) if is_known else assumed_topic_id(index)


def _add_partitions(metadata: ClusterMetadata, snapshot: SnapshotContent, facts: KraftFacts) -> None:
    topics, columns = snapshot.topics, snapshot.partitions
    to_index = broker_indexer(metadata.brokers.ids)  # ids ascend, as the brokers of a snapshot do
    directory_ids = () if columns.directories is None else facts.directory_ids
    to_directory = np.array(metadata.directories.indexes_of(directory_ids), np.int32)
    metadata.partitions.reserve(len(columns), columns.slot_count)
    for block, rows in topics.blocks():
        part, counts = columns.part(rows.start, rows.stop), topics.partition_counts[block]
        topic = np.repeat(np.arange(block.start, block.stop, dtype=np.int32), counts)
        partition = positions_within(counts) if topics.partitions is None else topics.partitions[rows]
        metadata.partitions.append(
            _lists_of(part, to_index, to_directory),
            {"topic": topic, "partition": partition, **_known_columns(part, to_index)},
        )
    _set_rows(metadata, topics)


def _lists_of(columns: PartitionFacts, to_index: Any, to_directory: Int32) -> PartitionLists:
    """The lists of partitions as indexes of brokers and directories; unknown ones are empty."""
    empty = Ragged.empty(len(columns))

    def broker_indexes(lists: Ragged | None) -> Ragged:
        if lists is None or not len(lists.values):
            return empty
        return Ragged(lists.offsets, to_index(lists.values))

    replicas = columns.replicas
    if columns.directories is None:
        directories = np.full(len(replicas.values), UNASSIGNED, np.int32)
    else:
        directories = to_directory[columns.directories.values]
    return PartitionLists(
        replicas=broker_indexes(replicas),
        isr=broker_indexes(columns.isr),
        directories=Ragged(replicas.offsets, directories),
        elr=broker_indexes(columns.elr),
        last_known_elr=broker_indexes(columns.last_known_elr),
        adding=broker_indexes(columns.adding_replicas),
        removing=broker_indexes(columns.removing_replicas),
    )


def _known_columns(columns: PartitionFacts, to_index: Any) -> Mapping[str, Any]:
    leader = np.full(len(columns), NO_LEADER, np.int32)
    if columns.leader is not None:
        led = columns.leader >= 0
        leader[led] = to_index(columns.leader[led])
    by_name = {
        "leader": leader,
        "leader_epoch": columns.leader_epoch,
        "partition_epoch": columns.partition_epoch,
        "recovery": columns.leader_recovery_state,
    }
    return {name: column for name, column in by_name.items() if column is not None}


def _set_rows(metadata: ClusterMetadata, topics: TopicFacts) -> None:
    """Record the row of each partition; of a part of a cluster, NO_ROW where there is none."""
    first = offsets_of(topics.partition_counts).tolist()
    for index in range(len(topics)):
        rows = np.arange(first[index], first[index + 1], dtype=np.int32)
        if topics.partitions is not None and len(rows):
            numbers = topics.partitions[first[index] : first[index + 1]]
            by_partition = np.full(int(numbers[-1]) + 1, NO_ROW, np.int32)
            by_partition[numbers] = rows
            rows = by_partition
        metadata.topics.set_rows(index, rows)
