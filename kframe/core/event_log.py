"""Log entries of the current event, as data. The runtime takes and writes them after each step."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from kframe.model.arrays import Int32, Ragged
from kframe.model.cluster import ClusterState
from kframe.model.ids import NO_EPOCH, ReplicaFlag
from kframe.model.log_entries import LogEntry, Message, PartitionNames, PartitionSample

#: Partitions, topics or brokers that one line names.
NAMES_LOGGED: Final = 100
_REASSIGNING: Final = np.uint8(ReplicaFlag.ADDING | ReplicaFlag.REMOVING)


class EventLog:
    """Entries of the current event, in order. The next event drops entries that were not taken."""

    def __init__(self) -> None:
        self.partitions_max = 0
        """Partitions of one bulk change that are sampled for the state-change log. 0 without that log."""
        self.failures_max = 0
        """Partitions of a failed bulk change that are sampled."""
        self.controller_epoch = NO_EPOCH
        self._entries: list[LogEntry] = []

    def add(self, message: Message, **values: object) -> None:
        """Add an entry with these values."""
        self._entries.append(LogEntry(message, self.controller_epoch, values))

    def add_partitions(self, message: Message, cluster: ClusterState, rows: NDArray[Any], **values: object) -> None:
        """Add a bulk change of ``rows`` with a sample of their present columns, taken before their state changes."""
        if len(rows) and self.partitions_max:
            self.add(message, sample=sample_of(cluster, rows, self.partitions_max), **values)

    def add_failed(self, message: Message, cluster: ClusterState, rows: NDArray[Any], **values: object) -> None:
        """Add a failed change of ``rows``."""
        if len(rows) and self.failures_max:
            self.add(message, sample=sample_of(cluster, rows, self.failures_max), **values)

    def take(self) -> list[LogEntry]:
        """The entries since the last call."""
        entries, self._entries = self._entries, []
        return entries


def names_of(cluster: ClusterState, rows: NDArray[Any], limit: int = NAMES_LOGGED) -> PartitionNames:
    """The names of at most ``limit`` of ``rows``, evenly spaced."""
    return _names(cluster, rows[spaced(len(rows), limit)], len(rows))


def spaced(count: int, limit: int) -> slice | NDArray[np.int64]:
    """At most ``limit`` evenly spaced positions of ``count``, the first among them."""
    return slice(count) if count <= limit else np.arange(limit, dtype=np.int64) * count // limit


def sample_of(cluster: ClusterState, rows: NDArray[Any], limit: int) -> PartitionSample:
    """The columns of at most ``limit`` of ``rows``, evenly spaced."""
    p, ids = cluster.partitions, cluster.brokers.ids
    chosen: Int32 = rows[spaced(len(rows), limit)]
    leader = p.leader[chosen]
    isr, replicas = p.lists("isr", chosen), p.lists("replica", chosen)
    return PartitionSample(
        names=_names(cluster, chosen, len(rows)),
        before=p.states_of(chosen),
        leader=np.where(leader >= 0, np.append(ids, -1)[leader], leader).astype(np.int32),
        leader_epoch=p.leader_epoch[chosen],
        controller_epoch=p.controller_epochs_of(chosen),
        partition_epoch=p.partition_epoch[chosen],
        recovery=p.recovery_of(chosen),
        isr=Ragged(isr.offsets, ids[isr.values]),
        replicas=Ragged(replicas.offsets, ids[replicas.values]),
        flags=p.replica_status[p.slots_of(chosen)] & _REASSIGNING,
    )


def _names(cluster: ClusterState, chosen: NDArray[Any], count: int) -> PartitionNames:
    p = cluster.partitions
    return PartitionNames(count, cluster.topics.names, p.topic[chosen], p.partition[chosen])
