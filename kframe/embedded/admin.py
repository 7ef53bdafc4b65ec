"""The calls of the embedded store for topics, requests that operators write to storage, and notifications."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final, Protocol

import msgspec
import numpy as np

from kframe.embedded.layout import (
    CONFIG_CHANGES,
    DELETE_TOPICS,
    ISR_CHANGES,
    LOG_DIR_EVENTS,
    PREFERRED_ELECTION,
    PRODUCER_IDS,
    REASSIGN_PARTITIONS,
)
from kframe.embedded.records import NO_VERSION, CheckVersion, Create, Delete, Operation, RecordTree, SetData
from kframe.embedded.topics import TOPICS, StoredTopics, topic_path
from kframe.errors import KframeError
from kframe.model.changes import WriteCode
from kframe.model.events import TopicPartition
from kframe.model.tables import Notifications, Targets, TopicSettings, TopicTable
from kframe.ports.store_requests import (
    AllocateProducerIds,
    AssignTopicIds,
    CreateTopics,
    DeleteTopics,
    DropDeletions,
    DropNotifications,
    DropPreferredElection,
    QueueDeletions,
    ReadConfigs,
    ReadDeletions,
    ReadIsrChanges,
    ReadLogDirEvents,
    ReadPreferredElection,
    ReadReassignments,
    ReadTopicNames,
    ReadTopics,
    ReadTopicSettings,
    WriteAssignments,
    WriteConfigs,
    WriteReassignments,
)

#: Number of producer ids in a block.
BLOCK_LENGTH: Final = 1000


class AdminStore(Protocol):
    """The parts of the store that these calls use."""

    _records: RecordTree
    _topics: StoredTopics
    _read_versions: dict[str, int]

    def _connected(self) -> int: ...

    def _write_fenced(self, *operations: Operation) -> None: ...


def read_topic_names(store: AdminStore, request: ReadTopicNames) -> frozenset[str]:
    """Names of all topics. Arms the watch on them."""
    return frozenset(store._records.children(store._connected(), TOPICS, watch=True))


def _read_topics(store: AdminStore, request: ReadTopics) -> TopicTable:
    """Ids and assignments. Arms a watch on each."""
    table = store._topics.read(request.names)
    for name in table.names:
        _, stat = store._records.get(store._connected(), topic_path(name), watch=True)
        store._read_versions[name] = stat.version
    return table


def _assign_topic_ids(store: AdminStore, request: AssignTopicIds) -> tuple[bytes, ...]:
    """Store a new id for each topic."""
    store._write_fenced()
    return store._topics.give_ids(request.names)


def _create_topics(store: AdminStore, request: CreateTopics) -> tuple[WriteCode, ...]:
    """Store new topics. Existing ones are refused."""
    table, configs = request.table, request.configs
    exists = [store._records.exists(store._connected(), topic_path(name)) is not None for name in table.names]
    fresh = np.flatnonzero(~np.array(exists, np.bool_))
    store._topics.create(store._connected(), table.take(fresh), tuple(configs[i] for i in fresh), request.with_ids)
    return tuple(WriteCode.EXISTS if known else WriteCode.OK for known in exists)


def _write_assignments(store: AdminStore, request: WriteAssignments) -> tuple[WriteCode, ...]:
    """Compare-and-set by the version that this session last read or wrote."""
    table = request.table
    paths, read = [topic_path(name) for name in table.names], store._read_versions
    versions = store._records.versions(store._connected(), paths)
    codes = [_write_code(version, read.get(name, version)) for name, version in zip(table.names, versions, strict=True)]
    accepted = [index for index, code in enumerate(codes) if code is WriteCode.OK]
    before = {name: read[name] for index in accepted if (name := table.names[index]) in read}
    read.update((table.names[index], versions[index] + 1) for index in accepted)
    try:
        store._write_fenced(*(SetData(paths[index], b"") for index in accepted))
    except KframeError:
        for index in accepted:
            del read[table.names[index]]
        read.update(before)
        raise
    store._topics.assign(table.take(np.array(accepted, np.int64)))
    return tuple(codes)


def _read_topic_settings(store: AdminStore, request: ReadTopicSettings) -> tuple[TopicSettings, ...]:
    """Settings of each topic. UNSET where it has none."""
    store._records.children(store._connected(), CONFIG_CHANGES, watch=True)
    return tuple(store._topics.settings(name) for name in request.names)


def _read_configs(store: AdminStore, request: ReadConfigs) -> Mapping[str, str]:
    """All settings of a topic, or of all brokers."""
    store._connected()
    topic = request.topic
    return dict(store._topics.broker_defaults if topic is None else store._topics.configs.get(topic, {}))


def _write_configs(store: AdminStore, request: WriteConfigs) -> None:
    """Replace them, and write a config change notification. Not fenced, as in Kafka."""
    if request.topic is None:
        store._topics.broker_defaults = dict(request.config)
    else:
        store._topics.replace_config(request.topic, request.config)
    path = f"{CONFIG_CHANGES}/config_change_"
    store._records.create(store._connected(), path, config_entity(request.topic), sequential=True)


def _queue_deletions(store: AdminStore, request: QueueDeletions) -> None:
    """Mark topics; an existing mark remains."""
    paths = [f"{DELETE_TOPICS}/{name}" for name in request.names]
    session = store._connected()
    store._records.multi(session, [Create(path) for path in paths if not store._records.exists(session, path)])


def _read_deletions(store: AdminStore, request: ReadDeletions) -> frozenset[str]:
    """Topics marked for deletion. Arms the watch on them."""
    return frozenset(store._records.children(store._connected(), DELETE_TOPICS, watch=True))


def _drop_deletions(store: AdminStore, request: DropDeletions) -> None:
    """Delete deletion marks. Missing ones are ignored."""
    _drop_marks(store, request.names)


def _delete_topics(store: AdminStore, request: DeleteTopics) -> None:
    """Delete topics and their marks."""
    store._write_fenced()
    store._topics.delete(store._connected(), request.names)
    _drop_marks(store, request.names)


def _drop_marks(store: AdminStore, names: Iterable[str]) -> None:
    marked = set(store._records.children(store._connected(), DELETE_TOPICS))
    store._write_fenced(*(Delete(f"{DELETE_TOPICS}/{name}") for name in names if name in marked))


def _read_reassignments(store: AdminStore, request: ReadReassignments) -> Targets | None:
    """The requested reassignments. Arms the watch on the record."""
    data = _watched_record(store, REASSIGN_PARTITIONS)
    return None if data is None else decode_targets(data)


def _write_reassignments(store: AdminStore, request: WriteReassignments) -> None:
    """Replace or delete that record."""
    exists = store._records.exists(store._connected(), REASSIGN_PARTITIONS) is not None
    if len(request.targets):
        make = SetData if exists else Create
        store._write_fenced(make(REASSIGN_PARTITIONS, encode_targets(request.targets)))
    else:
        store._write_fenced(*[Delete(REASSIGN_PARTITIONS)] * exists)


def _read_preferred_election(store: AdminStore, request: ReadPreferredElection) -> tuple[TopicPartition, ...] | None:
    """Partitions that the record names. Arms the watch on the record."""
    data = _watched_record(store, PREFERRED_ELECTION)
    return None if data is None else decode_partitions(data)


def _watched_record(store: AdminStore, path: str) -> bytes | None:
    """The data of a record, None if there is none. Arms the watch on it."""
    session = store._connected()
    if store._records.exists(session, path, watch=True) is None:
        return None
    return store._records.get(session, path)[0]


def _drop_preferred_election(store: AdminStore, request: DropPreferredElection) -> None:
    """Delete the record, if it exists."""
    exists = store._records.exists(store._connected(), PREFERRED_ELECTION) is not None
    store._write_fenced(*[Delete(PREFERRED_ELECTION)] * exists)


def _read_isr_changes(store: AdminStore, request: ReadIsrChanges) -> Notifications[TopicPartition]:
    """Partitions that all notifications name. Arms the watch on them."""
    session = store._connected()
    partitions: list[TopicPartition] = []
    paths = [f"{ISR_CHANGES}/{name}" for name in store._records.children(session, ISR_CHANGES, watch=True)]
    for path in paths:
        partitions += decode_partitions(store._records.get(session, path)[0])
    return Notifications(tuple(paths), tuple(partitions))


def _read_log_dir_events(store: AdminStore, request: ReadLogDirEvents) -> Notifications[int]:
    """Brokers that all notifications name. Arms the watch on them."""
    session = store._connected()
    paths = [f"{LOG_DIR_EVENTS}/{name}" for name in store._records.children(session, LOG_DIR_EVENTS, watch=True)]
    return Notifications(tuple(paths), tuple(int(store._records.get(session, path)[0]) for path in paths))


def _drop_notifications(store: AdminStore, request: DropNotifications) -> None:
    """Delete notifications; missing ones are ignored."""
    session = store._connected()
    store._write_fenced(*(Delete(path) for path in request.paths if store._records.exists(session, path) is not None))


def _allocate_producer_ids(store: AdminStore, request: AllocateProducerIds) -> int:
    """Allocate the next block. Conditional on the version that was read. Not fenced."""
    session = store._connected()
    data, stat = store._records.get(session, PRODUCER_IDS)
    first = int(data or b"0")
    following = str(first + BLOCK_LENGTH).encode()
    store._records.multi(session, [CheckVersion(PRODUCER_IDS, stat.version), SetData(PRODUCER_IDS, following)])
    return first


#: How the store handles these requests.
ADMIN_HANDLERS: Final = (
    ReadTopicNames.handled_by(read_topic_names),
    ReadTopics.handled_by(_read_topics),
    AssignTopicIds.handled_by(_assign_topic_ids),
    CreateTopics.handled_by(_create_topics),
    WriteAssignments.handled_by(_write_assignments),
    ReadTopicSettings.handled_by(_read_topic_settings),
    ReadConfigs.handled_by(_read_configs),
    WriteConfigs.handled_by(_write_configs),
    QueueDeletions.handled_by(_queue_deletions),
    ReadDeletions.handled_by(_read_deletions),
    DropDeletions.handled_by(_drop_deletions),
    DeleteTopics.handled_by(_delete_topics),
    ReadReassignments.handled_by(_read_reassignments),
    WriteReassignments.handled_by(_write_reassignments),
    ReadPreferredElection.handled_by(_read_preferred_election),
    DropPreferredElection.handled_by(_drop_preferred_election),
    ReadIsrChanges.handled_by(_read_isr_changes),
    ReadLogDirEvents.handled_by(_read_log_dir_events),
    DropNotifications.handled_by(_drop_notifications),
    AllocateProducerIds.handled_by(_allocate_producer_ids),
)


def _write_code(version: int, expected: int) -> WriteCode:
    """The result of a conditional write to a record of this version."""
    if version == NO_VERSION:
        return WriteCode.MISSING
    return WriteCode.OK if version == expected else WriteCode.STALE


def config_entity(topic: str | None) -> bytes:
    """The entity that a config change notification names."""
    return b"brokers/<default>" if topic is None else f"topics/{topic}".encode()


def encode_targets(targets: Targets) -> bytes:
    """Encode a reassignment record. Only this process reads it, so the JSON is not Kafka's."""
    return msgspec.json.encode(
        [
            (targets.names[targets.topic[i]], int(targets.partition[i]), targets.replicas[i].tolist())
            for i in range(len(targets))
        ]
    )


def decode_targets(data: bytes) -> Targets:
    """Decode the result of ``encode_targets``."""
    targets = msgspec.json.decode(data, type=list[tuple[str, int, list[int]]])
    return Targets.of([((topic, partition), replicas) for topic, partition, replicas in targets])


def encode_partitions(partitions: tuple[TopicPartition, ...]) -> bytes:
    """Encode a list of partitions."""
    return msgspec.json.encode(partitions)


def decode_partitions(data: bytes) -> tuple[TopicPartition, ...]:
    """Decode the result of ``encode_partitions``."""
    return tuple(msgspec.json.decode(data, type=list[tuple[str, int]]))
