"""The controller context: all that a controller stores about its cluster (Kafka 3.9 ``ControllerContext``)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from kframe.model.arrays import Bool, Int32, Int64, Ragged, positions_within, ragged_positions
from kframe.model.brokers import Brokers
from kframe.model.columns import Partitions
from kframe.model.ids import (
    NO_STATE,
    STATE_SHIFT,
    PartitionFlag,
    PartitionState,
    RecoveryState,
    ReplicaFlag,
    ReplicaState,
)
from kframe.model.row_views import block_of, values_at
from kframe.model.tables import RequestedPartitions, TopicTable
from kframe.model.topics import Topics

#: Later than any transaction.
UNKNOWN_ZXID: Final = 2**63 - 1


@dataclass(frozen=True, slots=True)
class PartitionView:
    """One partition as an object, for display and tests; bulk code never uses it. Brokers are ids."""

    topic: str
    partition: int
    replicas: tuple[int, ...]
    adding_replicas: tuple[int, ...]
    removing_replicas: tuple[int, ...]
    leader: int | None
    isr: tuple[int, ...]
    leader_epoch: int
    controller_epoch: int
    partition_epoch: int
    recovery: RecoveryState
    state: PartitionState
    replica_states: tuple[ReplicaState, ...]


class ClusterState:
    """Brokers, topics and partitions in columns. Only the controller core writes to the cluster that it controls."""

    def __init__(self) -> None:
        self.brokers = Brokers()
        self.topics = Topics()
        self.partitions = Partitions()
        self.state_zxid: Int64 | None = None
        """The transaction (zxid) that last wrote the state of each row, comparable with broker epochs. UNKNOWN_ZXID
        where it is unknown. Set only from a load to the end of the failover, and only if the store provides it."""

    def __len__(self) -> int:
        return len(self.partitions)

    def __getitem__(self, key: tuple[str, int]) -> PartitionView:
        row = self.row(*key)
        if row is None:
            raise KeyError(f"{key[0]}-{key[1]}")
        return self.view(row)

    def __iter__(self) -> Iterator[PartitionView]:
        return (self.view(int(row)) for row in np.flatnonzero(self.partitions.topic >= 0))

    def row(self, topic: str, partition: int) -> int | None:
        """Row of a partition, or None."""
        index = self.topics.find(topic)
        return None if index is None else self.topics.row_of(index, partition)

    def name(self, row: int) -> str:
        """``topic-partition`` of a row."""
        partitions = self.partitions
        return f"{self.topics.names[partitions.topic[row]]}-{int(partitions.partition[row])}"

    def requested(self, rows: NDArray[Any]) -> RequestedPartitions:
        """``rows`` as a request names them: each topic once, by name."""
        topics, topic = np.unique(self.partitions.topic[rows], return_inverse=True)
        names = tuple(self.topics.names[index] for index in topics.tolist())
        return RequestedPartitions(names, topic.astype(np.int32), self.partitions.partition[rows])

    def is_deleting(self, rows: NDArray[Any]) -> Bool:
        """Which of ``rows`` belong to topics that are queued for deletion."""
        deleting = self.topics.deleting
        if not deleting.any():  # usually so: then no topic lookup is necessary
            return np.zeros(len(rows), np.bool_)
        is_deleting: Bool = deleting[self.partitions.topic[rows]] != 0
        return is_deleting

    def view(self, row: int) -> PartitionView:
        """One row as an object."""
        p, ids = self.partitions, self.brokers.ids_of
        stored, status = int(p.partition_epoch[row]) != NO_STATE, int(p.status[row])
        start = int(p.slot_start[row])
        states = p.replica_states(slice(start, start + int(p.replica_count[row])))
        return PartitionView(
            topic=self.topics.names[p.topic[row]],
            partition=int(p.partition[row]),
            replicas=tuple(ids(p.replicas_of(row))),
            adding_replicas=tuple(ids(p.flagged_replicas(row, ReplicaFlag.ADDING))),
            removing_replicas=tuple(ids(p.flagged_replicas(row, ReplicaFlag.REMOVING))),
            leader=ids([int(p.leader[row])])[0] if stored else None,
            isr=tuple(ids(p.isr_of(row))),
            leader_epoch=int(p.leader_epoch[row]),
            controller_epoch=int(p.controller_epochs_of(np.array([row]))[0]),
            partition_epoch=int(p.partition_epoch[row]),
            recovery=RecoveryState(status & PartitionFlag.RECOVERING),
            state=PartitionState(status >> STATE_SHIFT),
            replica_states=tuple(ReplicaState(int(state)) for state in states),
        )

    def add_topics(
        self,
        names: Sequence[str],
        counts: NDArray[Any],
        replicas: Ragged,
        isr: Ragged | None = None,
        values: Mapping[str, NDArray[Any]] | None = None,
        ids: Sequence[bytes | None] | None = None,
        partitions: Int32 | None = None,
    ) -> Int32:
        """Add new topics with ``counts[i]`` partitions each. Return the new rows.

        ``replicas``, ``isr`` (broker indexes) and ``values`` (row columns) are ordered by topic, then by partition.
        ``partitions`` has the partition numbers, ascending in each topic; the default is ``0 .. counts[i] - 1``.
        """
        topics = self.topics.add(names, ids)
        counts = np.asarray(counts, np.int32)
        topic = np.repeat(topics, counts).astype(np.int32, copy=False)
        from_zero = positions_within(counts)
        rows = self.partitions.append(topic, from_zero if partitions is None else partitions, replicas, isr, values)
        first_row = int(rows[0]) if len(rows) else len(self.partitions)
        first_rows = (first_row + np.cumsum(counts) - counts).astype(np.int32)
        if partitions is None:
            self.topics.note_blocks(topics, first_rows, counts)
            return rows
        parted = np.zeros(len(topics), np.bool_)
        parted[topic[partitions != from_zero] - topics[0] if len(rows) else topic] = True
        self.topics.note_blocks(topics[~parted], first_rows[~parted], counts[~parted])
        within = np.repeat(parted, counts)
        self.topics.note_scattered(topics[parted], counts[parted], partitions[within], rows[within])
        return rows

    def add_table(self, table: TopicTable) -> Int32:
        """Add the topics of a table without leadership state; return the new rows. Brokers in the table are ids."""
        replicas = Ragged(table.replicas.offsets, self.brokers.index_of(table.replicas.values))
        rows = self.add_topics(table.names, table.partition_counts, replicas, ids=table.topic_ids)
        if len(table.flags):  # the new rows own the last slots, and no others
            self.partitions.replica_status[-len(table.flags) :] |= table.flags
        return rows

    def grow_topic(self, topic: int, replicas: Ragged) -> Int32:
        """Append partitions with these replicas (broker ids) to a topic. Return the new rows."""
        count, first = len(replicas), int(self.topics.partition_count[topic])
        indexes = Ragged(replicas.offsets, self.brokers.index_of(replicas.values))
        numbers = np.arange(first, first + count, dtype=np.int32)
        rows = self.partitions.append(np.full(count, topic, np.int32), numbers, indexes)
        self.topics.note_rows(topic, first, int(rows[0]), count)
        return rows

    def shrink_topic(self, topic: int, count: int) -> None:
        """Remove the partitions of a topic from number ``count`` on."""
        self._empty(self.topics.rows_of(topic)[count:])
        self.topics.cut_rows(topic, count)

    def drop_topics(self, topics: Int32) -> None:
        """Remove topics and their partitions. Their rows become empty and are never reused."""
        self._empty(self.topics.rows_of_all(topics))
        self.topics.drop(topics)

    def _empty(self, rows: Int32) -> None:
        p = self.partitions
        p.own("topic", "replica_count")
        p.set_replica_states(_slot_range(p, rows), ReplicaState.NON_EXISTENT)
        block = block_of(rows)
        p.topic[block] = p.leader[block] = p.partition_epoch[block] = -1
        p.set_states(rows, PartitionState.NON_EXISTENT)
        p.set_reassigning(rows, False)
        p.replica_count[block] = p.isr_count[block] = 0

    def replica_ids(self, rows: Int32, flag: ReplicaFlag | None = None) -> Ragged:
        """Broker ids of the replicas of each row, or only of the replicas with ``flag``."""
        p = self.partitions
        replicas = p.lists("replica", rows)
        if flag is not None:
            replicas = replicas.keep(p.are_flagged(p.slots_of(rows), flag))
        return Ragged(replicas.offsets, self.brokers.ids[replicas.values])

    def flag_replicas(self, row: int, broker_indexes: NDArray[Any], flag: ReplicaFlag) -> None:
        """Set ``flag`` on the replicas of a row on ``broker_indexes``."""
        slots = self.partitions.slots_of(np.array([row]))
        hit = np.isin(self.partitions.replica[slots], broker_indexes)
        self.partitions.replica_status[slots[hit]] |= np.uint8(flag)

    def copy(self) -> ClusterState:
        """An independent copy."""
        copied = ClusterState()
        copied.brokers, copied.topics = self.brokers.copy(), self.topics.copy()
        copied.partitions = self.partitions.copy()
        return copied


def _slot_range(p: Partitions, rows: NDArray[Any]) -> slice | Int64:
    """``p.slots_of(rows)``, as a slice if the slots are consecutive, as those of rows that were added together are."""
    starts, counts = values_at(p.slot_start, rows), values_at(p.replica_count, rows)
    if len(rows) and bool((starts[1:] == starts[:-1] + counts[:-1]).all()):
        return slice(int(starts[0]), int(starts[-1]) + int(counts[-1]))
    return ragged_positions(starts, counts)
