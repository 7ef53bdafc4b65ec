"""Store calls for topics: assignments, ids, settings, deletion."""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from dataclasses import replace
from typing import Final

import numpy as np

from kframe.plugin import StoreError, counted
from kframe.plugin.cluster import UNSET, TopicSettings, TopicTable
from kframe.plugin.store import (
    AssignTopicIds,
    CreateTopics,
    DeleteTopics,
    ReadConfigs,
    ReadTopicNames,
    ReadTopics,
    ReadTopicSettings,
    WriteAssignments,
    WriteCode,
    WriteConfigs,
)
from kframe_zookeeper.bulk.writes import Writes, require, write_all
from kframe_zookeeper.loading.memory import CachedTopic, Memory
from kframe_zookeeper.loading.settings import begin_settings, config_of, settings_in
from kframe_zookeeper.loading.topics import read_table
from kframe_zookeeper.role.connection import Connection
from kframe_zookeeper.session.requests import BAD_VERSION, NO_NODE, NODE_EXISTS, SEQUENTIAL, delete, set_data
from kframe_zookeeper.session.watches import Watched
from kframe_zookeeper.store.state import StoreState
from kframe_zookeeper.znodes import paths
from kframe_zookeeper.znodes.configs import ConfigNotification, encode_config, encode_config_change
from kframe_zookeeper.znodes.strict import NO_EXTRA
from kframe_zookeeper.znodes.topics import encode_topics

ANY_VERSION: Final = -1
#: Attempts to store topic ids before concurrent writes count as an error.
TRIES_MAX: Final = 16
_NO_SETTINGS: Final = TopicSettings(UNSET, UNSET)


class TopicCalls(StoreState):
    """Part of ZooKeeperStore."""

    def _read_topic_names(self, request: ReadTopicNames) -> frozenset[str]:
        """Names of all topics. Arms the child watch."""
        return frozenset(self._connected().watched_children(paths.TOPICS))

    def _read_topics(self, request: ReadTopics) -> TopicTable:
        """Ids and assignments. Arms a watch on each."""
        connection = self._connected()
        zxid = connection.watches.last_zxid()
        table, existing_paths = read_table(connection, self._memory, request.names)
        connection.watches.arm(existing_paths, Watched.DATA, zxid)
        return table

    def _assign_topic_ids(self, request: AssignTopicIds) -> tuple[bytes, ...]:
        """Store a new random id for each topic by compare-and-set. Deleted topics are skipped."""
        connection, memory, names = self._connected(), self._memory, request.names
        ids, remaining = {name: _new_id() for name in names}, names
        with memory.writing_topics:
            for _ in range(TRIES_MAX):
                table, _ = read_table(connection, memory, remaining)
                new_ids = tuple(ids[name] for name in table.names)
                table = replace(table, topic_ids=new_ids)
                codes = _write(connection, memory, table)
                remaining = tuple(
                    name for name, code in zip(table.names, codes, strict=True) if code == WriteCode.STALE
                )
                if not remaining:
                    return tuple(ids[name] for name in names)
        raise StoreError(
            f"{counted(len(remaining), 'topic')} got no id in {TRIES_MAX} attempts because of concurrent writes"
        )

    def _create_topics(self, request: CreateTopics) -> tuple[WriteCode, ...]:
        """Store new topics, each with its settings in a single multi. Existing topics get WriteCode.EXISTS."""
        connection, table = self._connected(), request.table
        if request.with_ids:
            table = replace(table, topic_ids=tuple(topic_id or _new_id() for topic_id in table.topic_ids))
        config_paths = [paths.config_path("topics", name) for name in table.names]
        old = connection.nodes(config_paths)
        writes = []
        for i, data in enumerate(encode_topics(table)):
            config, path = encode_config(request.configs[i]), config_paths[i]
            has_config = old[i] is not None
            settings = set_data(connection.root + path, config) if has_config else connection.create(path, config)
            writes.append([connection.create(paths.topic_path(table.names[i]), data), settings])
        codes = connection.write_unfenced(writes, NODE_EXISTS).code
        return tuple(WriteCode.EXISTS if code else WriteCode.OK for code in codes)

    def _write_assignments(self, request: WriteAssignments) -> tuple[WriteCode, ...]:
        """Compare-and-set by the version that this session has read or written last."""
        with self._memory.writing_topics:
            return _write(self._connected(), self._memory, request.table)

    def _read_topic_settings(self, request: ReadTopicSettings) -> tuple[TopicSettings, ...]:
        """Settings of each topic, unset if missing or malformed. Arms the watch on config changes."""
        connection, memory, names = self._connected(), self._memory, request.names
        memory.note_changes(connection.watched_children(paths.CONFIG_CHANGES))
        settings = dict(settings_in(memory, names, begin_settings(connection, names), frozenset(names)))
        return tuple(settings.get(name, _NO_SETTINGS) for name in names)

    def _read_configs(self, request: ReadConfigs) -> Mapping[str, str]:
        """All settings of a topic, or of all brokers."""
        path = paths.config_path(*_entity(request.topic))
        return config_of(self._memory, path, self._connected().node(path))

    def _write_configs(self, request: WriteConfigs) -> None:
        """Replace them, and create a config change notification. Not fenced, as in Kafka."""
        connection, (kind, name) = self._connected(), _entity(request.topic)
        path, data = paths.config_path(kind, name), encode_config(request.config)
        outcomes = connection.write_unfenced([[set_data(connection.root + path, data)]], NO_NODE)
        if outcomes.code[0]:
            connection.create_missing([path.rpartition("/")[0]])
            if connection.write_unfenced([[connection.create(path, data)]], NODE_EXISTS).code[0]:
                # Created by a lost request of ours, or by another client.
                connection.write_unfenced([[set_data(connection.root + path, data)]])
        change = encode_config_change(ConfigNotification(kind, name))
        connection.write_unfenced([[connection.create(paths.CONFIG_CHANGE, change, SEQUENTIAL)]])

    def _delete_topics(self, request: DeleteTopics) -> None:
        """Delete topics, then their settings, then their marks, so that an interrupted call can be repeated."""
        connection, names = self._connected(), request.names
        topic_paths = [paths.topic_path(name) for name in names]
        connection.delete_trees(topic_paths)
        connection.writer.forget(tuple(connection.root + path for path in topic_paths))
        for path_of in (lambda name: paths.config_path("topics", name), paths.delete_topic_path):
            connection.write([[delete(connection.root + path_of(name))] for name in names], NO_NODE)
        for name in names:
            self._memory.topics.pop(name, None)


#: How the store handles these requests.
TOPIC_HANDLERS: Final = (
    ReadTopicNames.handled_by(TopicCalls._read_topic_names),
    ReadTopics.handled_by(TopicCalls._read_topics),
    AssignTopicIds.handled_by(TopicCalls._assign_topic_ids),
    CreateTopics.handled_by(TopicCalls._create_topics),
    WriteAssignments.handled_by(TopicCalls._write_assignments),
    ReadTopicSettings.handled_by(TopicCalls._read_topic_settings),
    ReadConfigs.handled_by(TopicCalls._read_configs),
    WriteConfigs.handled_by(TopicCalls._write_configs),
    DeleteTopics.handled_by(TopicCalls._delete_topics),
)


def _write(connection: Connection, memory: Memory, table: TopicTable) -> tuple[WriteCode, ...]:
    """Replace topics by compare-and-set with the remembered versions, and remember the new ones.

    A write that succeeded although its response was lost is recognised by its bytes. Raises ControllerFenced and
    StoreError.
    """
    never = CachedTopic(ANY_VERSION, NO_EXTRA)
    cached_topics = [memory.topics.get(name, never) for name in table.names]
    datas = list(encode_topics(table, [topic.extra for topic in cached_topics]))
    topic_paths = [paths.topic_path(name) for name in table.names]
    writes = [
        [set_data(connection.root + path, data, topic.version)]
        for path, data, topic in zip(topic_paths, datas, cached_topics, strict=True)
    ]
    outcomes, unverified = write_all(connection.session, connection.guard, Writes.of(writes or [()]))
    require(outcomes, BAD_VERSION, NO_NODE)
    suspects = np.flatnonzero(unverified & (outcomes.code == BAD_VERSION)).tolist()
    for i, node in zip(suspects, connection.nodes([topic_paths[i] for i in suspects]), strict=True):
        if node is not None and node.data == datas[i] and node.version == cached_topics[i].version + 1:
            outcomes.code[i], outcomes.version[i] = 0, node.version
    codes = []
    for i, name in enumerate(table.names):
        code = int(outcomes.code[i])
        if code == 0:
            memory.topics[name] = CachedTopic(int(outcomes.version[i]), cached_topics[i].extra)
        elif code == NO_NODE:
            memory.topics.pop(name, None)
        codes.append({0: WriteCode.OK, BAD_VERSION: WriteCode.STALE}.get(code, WriteCode.MISSING))
    return tuple(codes)


def _entity(topic: str | None) -> tuple[str, str]:
    """Kind and name of a topic, or of the defaults of brokers."""
    return ("brokers", paths.DEFAULT_ENTITY) if topic is None else ("topics", topic)


def _new_id() -> bytes:
    """A random topic id. Its text does not begin with a dash (Kafka 3.9 ``Uuid.randomUuid``)."""
    while True:
        topic_id = uuid.uuid4().bytes
        # The first of the 22 characters is the first six bits; 62 is the dash.
        if topic_id[0] >> 2 != 62:
            return topic_id
