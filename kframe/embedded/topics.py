"""Topics in the embedded storage: assignments in columns, and a record per topic for version and watches."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import replace
from typing import Final

import numpy as np

from kframe.core.topics.replica_assignment import Assignments, assign, reassigns, table_of
from kframe.embedded.records import ANY_VERSION, Create, Delete, RecordTree
from kframe.embedded.states import StateColumns
from kframe.model.arrays import Ragged, ragged_positions
from kframe.model.tables import TopicSettings, TopicTable
from kframe.model.topics import UNSET

TOPICS: Final = "/brokers/topics"
UNCLEAN: Final = "unclean.leader.election.enable"
MIN_INSYNC: Final = "min.insync.replicas"
_TRUTH: Final = {"true": 1, "false": 0}


def topic_path(name: str) -> str:
    """Path of a topic's record."""
    return f"{TOPICS}/{name}"


class StoredTopics:
    """The topics of one ensemble. Writes fire the watches of every session that armed them."""

    def __init__(self, records: RecordTree, states: StateColumns, session: int) -> None:
        """Create a record for every topic of ``states``. ``session`` is the ensemble's own."""
        self._records = records
        self._states = states
        self._created = 0
        self.configs = _configs_of(states)
        """Settings by topic."""
        self.broker_defaults: dict[str, str] = {}
        records.ensure(session, TOPICS)
        records.create_children(session, TOPICS, states.cluster.topics.names)

    def read(self, names: tuple[str, ...]) -> TopicTable:
        """Ids and assignments of those of ``names`` that exist."""
        topics = self._states.cluster.topics
        indexes = [index for name in names if (index := topics.find(name)) is not None]
        return table_of(self._states.cluster, np.array(indexes, np.int32))

    def settings(self, name: str) -> TopicSettings:
        """The settings of a topic that a controller uses. Invalid values count as unset."""
        config = self.configs.get(name, {})
        minimum = config.get(MIN_INSYNC, "")
        return TopicSettings(
            _TRUTH.get(config.get(UNCLEAN, "").lower(), UNSET), int(minimum) if minimum.isdigit() else UNSET
        )

    def configure(self, name: str, config: Mapping[str, str]) -> None:
        """Change settings of a topic."""
        self.configs.setdefault(name, {}).update(config)
        topics, settings = self._states.cluster.topics, self.settings(name)
        index = topics.find(name)
        if index is not None:
            topics.unclean[index], topics.min_insync[index] = settings.unclean, settings.min_insync

    def replace_config(self, name: str, config: Mapping[str, str]) -> None:
        """Replace all settings of a topic."""
        self.configs[name] = {}
        self.configure(name, config)

    def create(self, session: int, table: TopicTable, configs: tuple[Mapping[str, str], ...], with_ids: bool) -> None:
        """Store new topics. ``with_ids`` gives each its own id."""
        if with_ids:
            named = zip(table.names, table.topic_ids, strict=True)
            table = replace(table, topic_ids=tuple(topic_id or self.new_id(name) for name, topic_id in named))
        self._states.cluster.add_table(table)
        for name, config in zip(table.names, configs, strict=True):
            self.configure(name, config)
        self._records.multi(session, [Create(topic_path(name)) for name in table.names])

    def new_id(self, name: str) -> bytes:
        """A topic id that no topic ever had: a hash of the name and a count, so that runs are reproducible."""
        self._created += 1
        return hashlib.sha256(f"{self._created} {name}".encode()).digest()[:16]

    def give_ids(self, names: tuple[str, ...]) -> tuple[bytes, ...]:
        """Store a new id for each of these topics."""
        topics, ids = self._states.cluster.topics, tuple(self.new_id(name) for name in names)
        for name, topic_id in zip(names, ids, strict=True):
            index = topics.find(name)
            if index is not None:
                topics.set_id(index, topic_id)
        return ids

    def assign(self, table: TopicTable) -> None:
        """Replace the assignments of existing topics: missing partitions are added, surplus ones removed. Given ids are
        stored too."""
        cluster = self._states.cluster
        indexes = [cluster.topics.find(name) for name in table.names]
        for index, topic_id in zip(indexes, table.topic_ids, strict=True):
            if index is not None and topic_id is not None:
                cluster.topics.set_id(index, topic_id)
        topics = np.array([-1 if index is None else index for index in indexes], np.int32)
        stored_counts = np.append(cluster.topics.partition_count, 0)[topics]
        known = np.minimum(stored_counts, table.partition_counts)
        starts = np.cumsum(table.partition_counts) - table.partition_counts
        replicas = Ragged(table.replicas.offsets, cluster.brokers.index_of(table.replicas.values))
        assignments = Assignments(replicas, table.flags)
        if bool((stored_counts == table.partition_counts).all()):
            rows = cluster.topics.rows_of_all(topics)
        else:
            rows = cluster.topics.locate(np.repeat(topics, known), ragged_positions(np.zeros_like(known), known))
            assignments = assignments.take(ragged_positions(starts, known))
        changed = reassigns(cluster.partitions, rows, assignments)
        assign(cluster.partitions, rows[changed], assignments.take(changed))
        for position in np.flatnonzero((table.partition_counts > known) & (topics >= 0)).tolist():
            added = np.arange(starts[position] + known[position], starts[position] + table.partition_counts[position])
            cluster.grow_topic(int(topics[position]), table.replicas.take(added))
        for position in np.flatnonzero((stored_counts > table.partition_counts) & (topics >= 0)).tolist():
            cluster.shrink_topic(int(topics[position]), int(table.partition_counts[position]))

    def forget_id(self, name: str) -> None:
        """Remove the id of a topic, as a client without support for topic ids does when it writes the topic. Raises
        KeyError if there is no such topic."""
        index = self._states.cluster.topics.find(name)
        if index is None:
            raise KeyError(name)
        self._states.cluster.topics.clear_id(index)

    def delete(self, session: int, names: tuple[str, ...]) -> None:
        """Delete topics with their states and configs; missing topics are ignored."""
        cluster = self._states.cluster
        existing = {name: topic for name in names if (topic := cluster.topics.find(name)) is not None}
        cluster.drop_topics(np.array(list(existing.values()), np.int32))
        for name in existing:
            self.configs.pop(name, None)
            self._records.multi(session, [Delete(topic_path(name), ANY_VERSION)])


def _configs_of(states: StateColumns) -> dict[str, dict[str, str]]:
    """The settings in the columns, of topics that have any."""
    topics = states.cluster.topics
    configs: dict[str, dict[str, str]] = {}
    for index in np.flatnonzero((topics.unclean != UNSET) | (topics.min_insync != UNSET)).tolist():
        config = configs[topics.names[index]] = {}
        if topics.unclean[index] != UNSET:
            config[UNCLEAN] = "true" if topics.unclean[index] else "false"
        if topics.min_insync[index] != UNSET:
            config[MIN_INSYNC] = str(int(topics.min_insync[index]))
    return configs
