"""The calls of the embedded store for topics, requests that operators write to storage, and notifications."""

from __future__ import annotations

from collections.abc import Mapping
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

#: Number of producer ids in a block.
BLOCK_LENGTH: Final = 1000


class AdminStore(Protocol):
    """The parts of the store that these calls use."""

    _records: RecordTree
    _topics: StoredTopics
    _read_versions: dict[str, int]

    def _connected(self) -> int: ...

    def _write_fenced(self, *operations: Operation) -> None: ...


class AdminCalls:
    """Part of MemoryStore. ``ports.Store`` documents each call."""

    def read_topic_names(self: AdminStore) -> frozenset[str]:
        """Names of all topics. Arms the watch on them."""
        return frozenset(self._records.children(self._connected(), TOPICS, watch=True))

    def read_topics(self: AdminStore, names: tuple[str, ...]) -> TopicTable:
        """Ids and assignments. Arms a watch on each."""
        table = self._topics.read(names)
        for name in table.names:
            _, stat = self._records.get(self._connected(), topic_path(name), watch=True)
            self._read_versions[name] = stat.version
        return table

    def assign_topic_ids(self: AdminStore, names: tuple[str, ...]) -> tuple[bytes, ...]:
        """Store a new id for each topic."""
        self._write_fenced()
        return self._topics.give_ids(names)

    def create_topics(
        self: AdminStore, table: TopicTable, configs: tuple[Mapping[str, str], ...], *, with_ids: bool = True
    ) -> tuple[WriteCode, ...]:
        """Store new topics. Existing ones are refused."""
        exists = [self._records.exists(self._connected(), topic_path(name)) is not None for name in table.names]
        fresh = np.flatnonzero(~np.array(exists, np.bool_))
        self._topics.create(self._connected(), table.take(fresh), tuple(configs[i] for i in fresh), with_ids)
        return tuple(WriteCode.EXISTS if known else WriteCode.OK for known in exists)

    def write_assignments(self: AdminStore, table: TopicTable) -> tuple[WriteCode, ...]:
        """Compare-and-set by the version that this session last read or wrote."""
        paths, read = [topic_path(name) for name in table.names], self._read_versions
        versions = self._records.versions(self._connected(), paths)
        codes = [
            _write_code(version, read.get(name, version)) for name, version in zip(table.names, versions, strict=True)
        ]
        accepted = [index for index, code in enumerate(codes) if code is WriteCode.OK]
        before = {name: read[name] for index in accepted if (name := table.names[index]) in read}
        read.update((table.names[index], versions[index] + 1) for index in accepted)
        try:
            self._write_fenced(*(SetData(paths[index], b"") for index in accepted))
        except KframeError:
            for index in accepted:
                del read[table.names[index]]
            read.update(before)
            raise
        self._topics.assign(table.take(np.array(accepted, np.int64)))
        return tuple(codes)

    def read_topic_settings(self: AdminStore, names: tuple[str, ...]) -> tuple[TopicSettings, ...]:
        """Settings of each topic. UNSET where it has none."""
        self._records.children(self._connected(), CONFIG_CHANGES, watch=True)
        return tuple(self._topics.settings(name) for name in names)

    def read_configs(self: AdminStore, topic: str | None) -> Mapping[str, str]:
        """All settings of a topic, or of all brokers."""
        self._connected()
        return dict(self._topics.broker_defaults if topic is None else self._topics.configs.get(topic, {}))

    def write_configs(self: AdminStore, topic: str | None, config: Mapping[str, str]) -> None:
        """Replace them, and write a config change notification. Not fenced, as in Kafka."""
        if topic is None:
            self._topics.broker_defaults = dict(config)
        else:
            self._topics.replace_config(topic, config)
        path = f"{CONFIG_CHANGES}/config_change_"
        self._records.create(self._connected(), path, config_entity(topic), sequential=True)

    def queue_deletions(self: AdminStore, names: tuple[str, ...]) -> None:
        """Mark topics; an existing mark remains."""
        paths = [f"{DELETE_TOPICS}/{name}" for name in names]
        session = self._connected()
        self._records.multi(session, [Create(path) for path in paths if not self._records.exists(session, path)])

    def read_deletions(self: AdminStore) -> frozenset[str]:
        """Topics marked for deletion. Arms the watch on them."""
        return frozenset(self._records.children(self._connected(), DELETE_TOPICS, watch=True))

    def drop_deletions(self: AdminStore, names: tuple[str, ...]) -> None:
        """Delete deletion marks. Missing ones are ignored."""
        marked = set(self._records.children(self._connected(), DELETE_TOPICS))
        self._write_fenced(*(Delete(f"{DELETE_TOPICS}/{name}") for name in names if name in marked))

    def delete_topics(self: AdminStore, names: tuple[str, ...]) -> None:
        """Delete topics and their marks."""
        self._write_fenced()
        self._topics.delete(self._connected(), names)
        marked = set(self._records.children(self._connected(), DELETE_TOPICS))
        self._write_fenced(*(Delete(f"{DELETE_TOPICS}/{name}") for name in names if name in marked))

    def read_reassignments(self: AdminStore) -> Targets | None:
        """The requested reassignments. Arms the watch on the record."""
        session = self._connected()
        if self._records.exists(session, REASSIGN_PARTITIONS, watch=True) is None:
            return None
        return decode_targets(self._records.get(session, REASSIGN_PARTITIONS)[0])

    def write_reassignments(self: AdminStore, targets: Targets) -> None:
        """Replace or delete that record."""
        exists = self._records.exists(self._connected(), REASSIGN_PARTITIONS) is not None
        if len(targets):
            make = SetData if exists else Create
            self._write_fenced(make(REASSIGN_PARTITIONS, encode_targets(targets)))
        else:
            self._write_fenced(*[Delete(REASSIGN_PARTITIONS)] * exists)

    def read_preferred_election(self: AdminStore) -> tuple[TopicPartition, ...] | None:
        """Partitions that the record names. Arms the watch on the record."""
        session = self._connected()
        if self._records.exists(session, PREFERRED_ELECTION, watch=True) is None:
            return None
        return decode_partitions(self._records.get(session, PREFERRED_ELECTION)[0])

    def drop_preferred_election(self: AdminStore) -> None:
        """Delete the record, if it exists."""
        exists = self._records.exists(self._connected(), PREFERRED_ELECTION) is not None
        self._write_fenced(*[Delete(PREFERRED_ELECTION)] * exists)

    def read_isr_changes(self: AdminStore) -> Notifications[TopicPartition]:
        """Partitions that all notifications name. Arms the watch on them."""
        session = self._connected()
        partitions: list[TopicPartition] = []
        paths = [f"{ISR_CHANGES}/{name}" for name in self._records.children(session, ISR_CHANGES, watch=True)]
        for path in paths:
            partitions += decode_partitions(self._records.get(session, path)[0])
        return Notifications(tuple(paths), tuple(partitions))

    def read_log_dir_events(self: AdminStore) -> Notifications[int]:
        """Brokers that all notifications name. Arms the watch on them."""
        session = self._connected()
        paths = [f"{LOG_DIR_EVENTS}/{name}" for name in self._records.children(session, LOG_DIR_EVENTS, watch=True)]
        return Notifications(tuple(paths), tuple(int(self._records.get(session, path)[0]) for path in paths))

    def drop_notifications(self: AdminStore, paths: tuple[str, ...]) -> None:
        """Delete notifications; missing ones are ignored."""
        session = self._connected()
        self._write_fenced(*(Delete(path) for path in paths if self._records.exists(session, path) is not None))

    def allocate_producer_ids(self: AdminStore, broker_id: int) -> int:
        """Allocate the next block. Conditional on the version that was read. Not fenced."""
        session = self._connected()
        data, stat = self._records.get(session, PRODUCER_IDS)
        first = int(data or b"0")
        following = str(first + BLOCK_LENGTH).encode()
        self._records.multi(session, [CheckVersion(PRODUCER_IDS, stat.version), SetData(PRODUCER_IDS, following)])
        return first


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
    return msgspec.json.encode([
        (targets.names[targets.topic[i]], int(targets.partition[i]), targets.replicas[i].tolist())
        for i in range(len(targets))
    ])  # fmt: skip


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
