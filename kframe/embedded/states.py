"""Partition states in storage: separate columns, read and written through the rows of any cluster's columns.

A controller numbers topics, brokers and rows in the order in which it first read them; so does storage. Tables map
topics by name and brokers by id; they are built per topic or broker, never per partition. If both sides use the same
numbers, as after a load, no table is necessary.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TypeVar
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from kframe.core.state import stored_states
from kframe.embedded.write_times import WriteTimes
from kframe.errors import InputError
from kframe.model.arrays import Bool, Int32, Ragged
from kframe.model.brokers import Brokers
from kframe.model.changes import StateChange, StoredStates, WriteCode, WriteResult
from kframe.model.cluster import UNKNOWN_ZXID, ClusterState
from kframe.model.ids import (
    FLAGS_MASK,
    NO_BROKER_EPOCH,
    NO_LEADER,
    NO_STATE,
    STATE_SHIFT,
    PartitionState,
    ReplicaFlag,
    ReplicaState,
)
from kframe.model.topics import Topics


class StateColumns:
    """The stored topics, assignments and states of a cluster. Brokers are only ids here, without registrations."""

    def __init__(self, cluster: ClusterState, *, copy: bool = True) -> None:
        """Store a copy of ``cluster`` without the state of its controller. That is partition and replica states,
        offline log directories, registered brokers and brokers shutting down. With ``copy`` False it takes ownership of
        ``cluster``."""
        self.cluster = cluster.copy() if copy else cluster
        """The stored content. Write it only through the methods."""
        self._topic_tables: WeakKeyDictionary[Topics, tuple[tuple[int, int], Int32 | None]] = WeakKeyDictionary()
        partitions, brokers = self.cluster.partitions, self.cluster.brokers
        partitions.status[:] &= FLAGS_MASK
        partitions.status[:] |= PartitionState.NON_EXISTENT << STATE_SHIFT
        partitions.replica_status[:] &= FLAGS_MASK ^ ReplicaFlag.OFFLINE_DIR
        partitions.replica_status[:] |= ReplicaState.NON_EXISTENT << STATE_SHIFT
        brokers.registered[:] = 0
        brokers.shutting_down[:] = 0
        brokers.broker_epoch[:] = NO_BROKER_EPOCH
        brokers.registrations = [None] * len(brokers)
        self._write_times = WriteTimes()

    def copy_cluster(self) -> ClusterState:
        """A copy of the stored content for a new controller."""
        cluster = self.cluster.copy()
        if self._write_times:
            cluster.state_zxid = self._write_times.column(len(cluster)).copy()
        else:  # a view of a single number
            cluster.state_zxid = np.broadcast_to(np.int64(UNKNOWN_ZXID), len(cluster))
        return cluster

    def name_brokers(self, broker_ids: Iterable[int]) -> None:
        """Assign indexes to these broker ids. Later loads then use the same indexes as storage."""
        self.cluster.brokers.index_of(broker_ids)

    def write(self, cluster: ClusterState, change: StateChange, zxid: int = UNKNOWN_ZXID) -> WriteResult:
        """Create or compare-and-set the rows of ``change``, which are rows of ``cluster``, independently of each other.
        ``zxid`` is the last transaction before.

        ``partition_epoch`` of the result is the new version of the state, NO_STATE where the row was refused.
        """
        rows = self._rows(cluster, change.rows)
        versions = self._versions(rows)
        creating = change.expected == NO_STATE
        codes = np.full(len(rows), WriteCode.OK, np.uint8)
        codes[versions != change.expected] = WriteCode.STALE
        codes[creating & (versions != NO_STATE)] = WriteCode.EXISTS
        codes[(~creating & (versions == NO_STATE)) | (rows < 0)] = WriteCode.MISSING
        accepted = codes == WriteCode.OK
        versions = np.where(accepted, versions + 1, np.int32(NO_STATE))
        table = _broker_table(cluster.brokers, self.cluster.brokers)
        translated = StateChange(
            rows,
            _translate(table, change.leader),
            change.leader_epoch,
            change.recovery,
            Ragged(change.isr.offsets, _translate(table, change.isr.values)),
            change.expected,
            change.controller_epoch,
        )
        if accepted.all():
            stored_states.apply(self.cluster, translated, versions)
        else:
            stored_states.apply(self.cluster, translated.take(accepted), versions[accepted])
        self._write_times.note(rows[accepted], zxid, len(self.cluster))
        return WriteResult(codes, versions)

    def read(self, cluster: ClusterState, rows: Int32) -> StoredStates:
        """The states of these rows of ``cluster``. A stored broker that is new to ``cluster`` gets an index there."""
        own_rows = self._rows(cluster, rows)
        versions = self._versions(own_rows)
        exists = versions != NO_STATE
        source, partitions = own_rows[exists], self.cluster.partitions
        isr = partitions.lists("isr", source)
        offsets = np.zeros(len(rows) + 1, np.int32)
        offsets[1:][exists] = isr.counts
        np.cumsum(offsets, out=offsets)
        leader = partitions.leaders_of(source)
        table = _broker_table(self.cluster.brokers, cluster.brokers, (leader, isr.values))
        written_at = (
            self._write_times.column(len(self.cluster))[source]
            if self._write_times
            else np.full(len(source), UNKNOWN_ZXID)
        )
        return StoredStates(
            rows=rows,
            exists=exists,
            leader=_spread(exists, _translate(table, leader), NO_LEADER),
            leader_epoch=_spread(exists, partitions.leader_epoch[source], -1),
            controller_epoch=_spread(exists, partitions.controller_epochs_of(source), -1),
            partition_epoch=versions,
            recovery=_spread(exists, partitions.recovery_of(source), 0),
            isr=Ragged(offsets, _translate(table, isr.values)),
            zxid=_spread(exists, written_at, UNKNOWN_ZXID),
        )

    def overwrite(
        self,
        topic: str,
        partition: int,
        *,
        leader: int | None = None,
        isr: Sequence[int] | None = None,
        leader_epoch: int | None = None,
        controller_epoch: int | None = None,
        recovery: int | None = None,
        zxid: int = UNKNOWN_ZXID,
    ) -> int:
        """Write a state without a check of its version, and return the new version. Brokers are ids.

        Omitted values remain; a new state starts with leader -1, an empty ISR and zeros. Raises InputError if there is
        no such partition.
        """
        row = self.cluster.row(topic, partition)
        if row is None:
            raise InputError(f"{topic}-{partition}", "no such partition", "one that storage knows")
        stored, brokers = self.read(self.cluster, np.array([row], np.int32)), self.cluster.brokers

        def choose(requested: int | None, column: Int32) -> Int32:
            return np.maximum(column, 0) if requested is None else np.array([requested], np.int32)

        change = StateChange(
            rows=stored.rows,
            leader=stored.leader if leader is None else brokers.index_of([leader]) if leader >= 0 else _NO_LEADER_INDEX,
            leader_epoch=choose(leader_epoch, stored.leader_epoch),
            recovery=stored.recovery if recovery is None else np.array([recovery], np.uint8),
            isr=stored.isr if isr is None else Ragged(np.array([0, len(isr)], np.int32), brokers.index_of(isr)),
            expected=stored.partition_epoch,
            controller_epoch=int(choose(controller_epoch, stored.controller_epoch)[0]),
        )
        versions = stored.partition_epoch + 1
        stored_states.apply(self.cluster, change, versions)
        self._write_times.note(np.array([row], np.int32), zxid, len(self.cluster))
        return int(versions[0])

    def _rows(self, cluster: ClusterState, rows: Int32) -> Int32:
        """Our rows of the partitions at ``rows`` of ``cluster``. -1 for unknown partitions."""
        topic, partition = cluster.partitions.topic[rows], cluster.partitions.partition[rows]
        table = self._topic_table(cluster.topics)
        if table is not None:
            topic = table[topic]
        known = topic >= 0
        if known.all():
            return self.cluster.topics.locate(topic, partition)
        return _spread(known, self.cluster.topics.locate(topic[known], partition[known]), -1)

    def _versions(self, rows: Int32) -> Int32:
        """Versions of our rows. NO_STATE where there is no state or no row."""
        known = rows >= 0
        return _spread(known, self.cluster.partitions.partition_epoch[rows[known]], NO_STATE)

    def _topic_table(self, topics: Topics) -> Int32 | None:
        """Our topic index by their topic index, -1 for unknown topics and as the last entry. None if the indexes are
        the same."""
        stored_topics = self.cluster.topics
        sizes = len(topics), len(stored_topics)
        known = self._topic_tables.get(topics)
        if known is not None and known[0] == sizes:
            return known[1]
        table = None
        if topics.names != stored_topics.names:
            indexes = [stored_topics.find(name) for name in topics.names]
            table = np.array([*(-1 if index is None else index for index in indexes), -1], np.int32)
        self._topic_tables[topics] = sizes, table
        return table


_NO_LEADER_INDEX = np.array([NO_LEADER], np.int32)
_Scalar = TypeVar("_Scalar", bound=np.generic)


def _broker_table(source: Brokers, target: Brokers, used: tuple[Int32, ...] | None = None) -> Int32 | None:
    """Index in ``target`` by index in ``source``, with NO_LEADER as the last entry. None if the indexes are the same.

    A broker that is new to ``target`` gets an index there; with ``used``, only if those arrays name it.
    """
    if np.array_equal(source.ids, target.ids):
        return None
    if used is None:
        return np.append(target.index_of(source.ids), np.int32(NO_LEADER))
    named = np.zeros(len(source) + 1, np.bool_)
    for indexes in used:
        named[indexes] = True
    used_indexes = np.flatnonzero(named[:-1])
    table = np.full(len(source) + 1, NO_LEADER, np.int32)
    table[used_indexes] = target.index_of(source.ids[used_indexes])
    return table


def _translate(table: Int32 | None, indexes: Int32) -> Int32:
    """Translate indexes with a broker table; NO_LEADER is -1 and selects the last entry."""
    return indexes if table is None else table[indexes]


def _spread(chosen: Bool, values: NDArray[_Scalar], fill: int) -> NDArray[_Scalar]:
    """``values`` where the mask ``chosen`` is set, ``fill`` elsewhere."""
    if len(values) == len(chosen):
        return values
    spread = np.full(len(chosen), fill, values.dtype)
    spread[chosen] = values
    return spread
