"""The simulated ensemble: the embedded store with a plain copy of every state and a callback for every write."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Protocol

import numpy as np

from kframe.core.topics.replica_assignment import table_of
from kframe.embedded.admin import decode_targets
from kframe.embedded.ensemble import MemoryEnsemble
from kframe.embedded.layout import BROKERS, CONTROLLER, CONTROLLER_EPOCH, REASSIGN_PARTITIONS, broker_path
from kframe.embedded.states import StateColumns
from kframe.embedded.topics import topic_path
from kframe.model.arrays import Int32
from kframe.model.changes import StoredStates
from kframe.model.cluster import ClusterState
from kframe.model.events import TopicPartition
from kframe.model.tables import TopicTable
from kframe.ports.store_requests import StoreRequest, WriteAssignments, WriteStates
from kframe_simulator.replication.control_requests import Row, read_row
from kframe_simulator.simulation.scheduler import Scheduler


class StorageListener(Protocol):
    """What storage and the stores of controllers report. A writer, caller or reader is a controller id. None is another
    client."""

    @property
    def scheduler(self) -> Scheduler: ...

    def state_written(
        self, key: TopicPartition, before: Row | None, after: Row, writer: int | None, cluster: ClusterState | None
    ) -> None: ...
    def topic_written(
        self, name: str, before: Mapping[int, Row], after: Mapping[int, Row], writer: int | None
    ) -> None: ...
    def written(self, writer: int, request: StoreRequest[Any], reply: object) -> None: ...
    def changed_outside(self, change: str) -> None: ...
    def called(self, caller: int, request: StoreRequest[Any]) -> None: ...
    def refused(self, writer: int, key: TopicPartition) -> None: ...
    def elections_read(self, reader: int, partitions: Iterable[TopicPartition]) -> None: ...
    def isr_changes_read(self, reader: int, partitions: Iterable[TopicPartition]) -> None: ...
    def states_read(self, reader: int, cluster: ClusterState, rows: Int32, states: StoredStates) -> None: ...
    def topic_unread(self, reader: int, name: str) -> None: ...
    def raced(self, request: WriteStates | WriteAssignments) -> None: ...
    def storing_assignments(self, table: TopicTable) -> None: ...


class SimEnsemble(MemoryEnsemble):
    """The storage of a simulation, with a plain copy of every state beside the columns."""

    def __init__(self, states: StateColumns, controller_epoch: int = 0) -> None:
        super().__init__(states, controller_epoch)
        self.simulation: StorageListener
        self.rows: dict[TopicPartition, Row] = {}
        """The stored states by partition, for the invariants."""
        self.topic_ids: dict[str, bytes] = {}
        self.broken: dict[str, bytes] = {}
        """Unreadable records, by path."""
        self._unclean_allowed: dict[str, float] = {}
        self.changes = 0
        """The number of writes by all clients."""
        for name in states.cluster.topics.names:
            self.rows.update({row.key: row for row in self.read_topic(name).values()})
            self.topic_ids[name] = self.topic_id(name)

    def read_topic(self, name: str) -> dict[int, Row]:
        """The partitions of a topic in the columns. None if it does not exist."""
        cluster = self.states.cluster
        index = cluster.topics.find(name)
        if index is None:
            return {}
        rows = (read_row(cluster, row) for row in cluster.topics.rows_of(index).tolist())
        return {row.key[1]: row for row in rows}

    def topic_id(self, name: str) -> bytes:
        """The id of a topic. Zeros if it has none."""
        topics = self.states.cluster.topics
        index = topics.find(name)
        return bytes(16) if index is None else topics.ids[index].tobytes()

    def controller_epoch(self) -> int:
        """The stored controller epoch."""
        return int(self.records.get(self._operator, CONTROLLER_EPOCH)[0])

    def controller_id(self) -> int:
        """The stored controller id. -1 if there is none."""
        if not self.has_record(CONTROLLER):
            return -1
        return int(self.records.get(self._operator, CONTROLLER)[0])

    def has_record(self, path: str) -> bool:
        """Whether a record exists at a path."""
        return self.records.exists(self._operator, path) is not None

    def record_names(self, path: str) -> list[str]:
        """The names of the children of a path."""
        return self.records.children(self._operator, path)

    def stored_reassignments(self) -> dict[TopicPartition, tuple[int, ...]]:
        """The target replicas of ``/admin/reassign_partitions``."""
        if not self.has_record(REASSIGN_PARTITIONS):
            return {}
        targets = decode_targets(self.records.get(self._operator, REASSIGN_PARTITIONS)[0])
        return {key: tuple(targets.replicas[index].tolist()) for index, key in enumerate(targets.partitions())}

    def configure_topic(self, name: str, config: Mapping[str, str]) -> None:
        """Change topic settings as an operator."""
        self.unclean_allowed_at(name)
        super().configure_topic(name, config)

    def unclean_allowed_at(self, name: str) -> float | None:
        """When a topic was last known to allow unclean election, in milliseconds; None: never."""
        if self.topics.settings(name).unclean == 1:
            self._unclean_allowed[name] = self.simulation.scheduler.now_ms
        return self._unclean_allowed.get(name)

    def topic_partitions(self, name: str) -> dict[int, Row]:
        """The last known partitions of a topic."""
        return {key[1]: row for key, row in self.rows.items() if key[0] == name}

    # -- Writes of other clients.

    def malform(self, kind: int, pick: int) -> bool:
        """Make a broker's registration or a topic unreadable."""
        if kind % 2:
            names = self.record_names(BROKERS)
            return bool(names) and self._malform(broker_path(int(names[pick % len(names)])))
        moving = {key[0] for key, row in self.rows.items() if row.adding or row.removing}
        topics = sorted(moving or self.topic_ids)
        return bool(topics) and self._malform(topic_path(topics[pick % len(topics)]))

    def malform_topic(self, name: str) -> None:
        """Make the record of a topic unreadable."""
        self._malform(topic_path(name))

    def _malform(self, path: str) -> bool:
        if path in self.broken:
            return False
        self.broken[path], _ = self.records.get(self._operator, path)
        self.records.set(self._operator, path, self.broken[path])
        return True

    def repair(self) -> None:
        """Another client repairs all unreadable records."""
        broken, self.broken = self.broken, {}
        for path, data in broken.items():
            if self.has_record(path):
                self.records.set(self._operator, path, data)

    def readable(self, names: Iterable[str]) -> list[int]:
        """The indexes of the readable topics among these."""
        return [index for index, name in enumerate(names) if topic_path(name) not in self.broken]

    def write_topics(self, table: TopicTable) -> None:
        """Replace assignments as brokers and tools do."""
        for name in table.names:
            self.broken.pop(topic_path(name), None)
        super().write_topics(table)
        self.topics_changed(table.names, None)
        self.simulation.changed_outside("write_topics")

    def forget_topic_id(self, name: str) -> None:
        """A tool without topic ids stores a topic again."""
        self.topics.forget_id(name)
        index = self.states.cluster.topics.find(name)
        self.write_topics(table_of(self.states.cluster, _indexes(index)))

    def write_state(self, topic: str, partition: int, **values: Any) -> int:
        """Write a state as a broker does."""
        version = super().write_state(topic, partition, **values)
        self.state_changed((topic, partition), None, None)
        return version

    # -- Callbacks.

    def state_changed(self, key: TopicPartition, writer: int | None, cluster: ClusterState | None) -> None:
        """Report a state write."""
        row = self.states.cluster.row(*key)
        assert row is not None
        before, after = self.rows.get(key), read_row(self.states.cluster, row)
        self.rows[key] = after
        self.changes += 1
        self.simulation.state_written(key, before, after, writer, cluster)

    def topics_changed(self, names: Iterable[str], writer: int | None) -> None:
        """Report the topics that a write has changed."""
        for name in names:
            before, after = self.topic_partitions(name), self.read_topic(name)
            known, now = self.topic_ids.get(name, bytes(16)), self.topic_id(name)
            for partition in before.keys() - after.keys():
                del self.rows[name, partition]
            self.rows.update({row.key: row for row in after.values()})
            self.topic_ids[name] = now
            if before != after or known != now:
                self.changes += 1
                self.simulation.topic_written(name, before, after, writer)
            if not after:
                del self.topic_ids[name]
                self.broken.pop(topic_path(name), None)


def _indexes(index: int | None) -> Int32:
    return np.array([] if index is None else [index], np.int32)
