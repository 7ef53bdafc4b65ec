"""An example of a store: a cluster in one SQLite file.

The store extends kframe's in-memory store, with its rules of versions, watches and fences. It writes every topic that a
call has changed to the file before the call returns. Only one process may use a file at a time.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable
from typing import Any

import numpy as np

from kframe.plugin import Ragged, StoreSpec, hookimpl
from kframe.plugin.cluster import NO_LEADER, ClusterState, ReplicaFlag
from kframe.plugin.memory import MemoryEnsemble, MemoryStore, StateColumns
from kframe.plugin.store import (
    AssignTopicIds,
    Claim,
    CreateTopics,
    DeleteTopics,
    DropDeletions,
    QueueDeletions,
    Reply,
    StoreRequest,
    WriteAssignments,
    WriteStates,
)

#: With this journal a write survives the end of the process. If the machine fails, the last writes may be lost.
SCHEMA = """
PRAGMA journal_mode = WAL;
PRAGMA synchronous = NORMAL;
CREATE TABLE IF NOT EXISTS topics (name TEXT PRIMARY KEY, document TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS partitions (
    topic TEXT, partition INTEGER, document TEXT NOT NULL, PRIMARY KEY (topic, partition)
);
CREATE TABLE IF NOT EXISTS controller_epoch (one INTEGER PRIMARY KEY CHECK (one = 1), value INTEGER NOT NULL);
"""
STATE = ("leader_epoch", "controller_epoch", "partition_epoch", "recovery")


class SqliteEnsemble(MemoryEnsemble):
    """Storage that the controllers of one process share."""

    def __init__(self, path: str, cluster: ClusterState | None = None) -> None:
        """Load the cluster from the file at ``path``, or save ``cluster`` to a new file."""
        self.file = sqlite3.connect(path, check_same_thread=False)  # only the controller's thread writes
        self.file.executescript(SCHEMA)
        topics = self._read()
        last = self.file.execute("SELECT value FROM controller_epoch").fetchone()
        stored = cluster if cluster is not None else _cluster(topics)
        super().__init__(StateColumns(stored), controller_epoch=last[0] if last else 0)
        for name, document in topics:
            self.topics.configure(name, document["config"])
        if cluster is not None:
            registered = np.flatnonzero(cluster.brokers.registered).tolist()
            self.register_brokers(
                registration
                for index in registered
                if (registration := cluster.brokers.registrations[index]) is not None
            )
            self.save(cluster.topics.names)

    def connect(self) -> MemoryStore:
        """Return a new session for one controller. It is not open yet."""
        return SqliteStore(self)

    def close(self) -> None:
        """Close the file. Its stores may not be used afterwards."""
        self.file.close()

    def write_state(self, topic: str, partition: int, **state: Any) -> int:
        """Write a state without the fence of a controller."""
        version = super().write_state(topic, partition, **state)
        self.save([topic])
        return version

    def save(self, names: Iterable[str]) -> None:
        """Write these topics with their partitions to the file. Delete topics that no longer exist."""
        cluster = self.states.cluster
        with self.file:
            for name in names:
                self.file.execute("DELETE FROM topics WHERE name = ?", (name,))
                self.file.execute("DELETE FROM partitions WHERE topic = ?", (name,))
                index = cluster.topics.find(name)
                if index is not None:
                    document = json.dumps(self._topic(name, index))
                    self.file.execute("INSERT INTO topics VALUES (?, ?)", (name, document))
                    self._save_rows(cluster.topics.rows_of(index).tolist())

    def save_partitions(self, partitions: Iterable[tuple[str, int]]) -> None:
        """Write these partitions to the file."""
        rows = (self.states.cluster.row(*partition) for partition in partitions)
        with self.file:
            self._save_rows(row for row in rows if row is not None)

    def save_controller_epoch(self, controller_epoch: int) -> None:
        """Save the controller epoch."""
        with self.file:
            self.file.execute("INSERT OR REPLACE INTO controller_epoch VALUES (1, ?)", (controller_epoch,))

    def _save_rows(self, rows: Iterable[int]) -> None:
        cluster = self.states.cluster
        documents = ((cluster.view(row), json.dumps(self._partition(row))) for row in rows)
        entries = [(view.topic, view.partition, document) for view, document in documents]
        self.file.executemany("INSERT OR REPLACE INTO partitions VALUES (?, ?, ?)", entries)

    def _partition(self, row: int) -> dict[str, Any]:
        view = self.states.cluster.view(row)
        p, ids = self.states.cluster.partitions, self.states.cluster.brokers.ids_of
        return {
            "replicas": ids(p.replicas_of(row)),
            "adding_replicas": ids(p.flagged_replicas(row, ReplicaFlag.ADDING)),
            "removing_replicas": ids(p.flagged_replicas(row, ReplicaFlag.REMOVING)),
            "leader": ids([p.leader[row]])[0],
            "isr": ids(p.isr_of(row)),
            **{name: int(getattr(view, name)) for name in STATE},
        }

    def _topic(self, name: str, index: int) -> dict[str, Any]:
        return {
            "topic_id": self.states.cluster.topics.ids[index].tobytes().hex(),
            "config": self.topics.configs.get(name, {}),
            "deleting": self.marked(name),
        }

    def _read(self) -> list[tuple[str, dict[str, Any]]]:
        """Return every topic of the file, with its partitions."""
        topics = [(name, json.loads(document)) for name, document in self.file.execute("SELECT * FROM topics")]
        query = "SELECT document FROM partitions WHERE topic = ? ORDER BY partition"
        for name, topic in topics:
            topic["partitions"] = [json.loads(document) for (document,) in self.file.execute(query, (name,))]
        return topics

    def marked(self, name: str) -> bool:
        """Return whether a topic is marked for deletion."""
        return self.records.exists(self._operator, f"/admin/delete_topics/{name}") is not None


class SqliteStore(MemoryStore):
    """A controller's session with an SqliteEnsemble."""

    def __init__(self, ensemble: SqliteEnsemble, *, alone: bool = False) -> None:
        """With ``alone`` this is the only session, and ``close`` closes the file too."""
        super().__init__(ensemble.records, ensemble.states, ensemble.topics)
        self.ensemble = ensemble
        self.alone = alone

    def close(self) -> None:
        """Disconnect."""
        super().close()
        if self.alone:
            self.ensemble.close()

    def perform(self, request: StoreRequest[Reply]) -> Reply:
        """Perform a request in memory, then save what it has changed."""
        reply = super().perform(request)
        match request:
            case Claim() if isinstance(reply, int):
                self.ensemble.save_controller_epoch(reply)
            case WriteStates(cluster=cluster, change=change):
                topic, partition = cluster.partitions.topic[change.rows], cluster.partitions.partition[change.rows]
                self.ensemble.save_partitions(
                    (cluster.topics.names[t], p) for t, p in zip(topic, partition.tolist(), strict=True)
                )
            case CreateTopics(table=table) | WriteAssignments(table=table):
                self.ensemble.save(table.names)
            case AssignTopicIds(names=names) | QueueDeletions(names=names):
                self.ensemble.save(names)
            case DropDeletions(names=names) | DeleteTopics(names=names):
                self.ensemble.save(names)
        return reply


@hookimpl
def kframe_stores() -> list[StoreSpec]:
    """Register the store for URLs such as ``sqlite:cluster.db``."""
    return [StoreSpec("sqlite", _open, "One SQLite file.")]


def _open(url: str) -> SqliteStore:
    return SqliteStore(SqliteEnsemble(url.partition(":")[2]), alone=True)


def _cluster(documents: list[tuple[str, dict[str, Any]]]) -> ClusterState:
    """Convert the topics of the file to columns."""
    cluster = ClusterState()
    index_of = cluster.brokers.index_of
    for name, document in documents:
        partitions = document["partitions"]
        values = {name: np.array([partition[name] for partition in partitions], np.int32) for name in STATE}
        leaders = [partition["leader"] for partition in partitions]
        values["leader"] = np.array(
            [NO_LEADER if leader < 0 else index_of([leader])[0] for leader in leaders], np.int32
        )
        rows = cluster.add_topics(
            [name],
            np.array([len(partitions)]),
            Ragged.of([index_of(partition["replicas"]).tolist() for partition in partitions]),
            Ragged.of([index_of(partition["isr"]).tolist() for partition in partitions]),
            values,
            [bytes.fromhex(document["topic_id"])],
        )
        cluster.topics.deleting[-1] = document["deleting"]
        for row, partition in zip(rows.tolist(), partitions, strict=True):
            cluster.flag_replicas(row, index_of(partition["adding_replicas"]), ReplicaFlag.ADDING)
            cluster.flag_replicas(row, index_of(partition["removing_replicas"]), ReplicaFlag.REMOVING)
    return cluster
