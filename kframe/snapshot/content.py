"""The content of a snapshot: the facts that a source has of a cluster, and those that it omits."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Final, Literal, Self, TypeAlias

import numpy as np

from kframe.model.arrays import Int32, Int64, Ragged
from kframe.model.lists import distinct_values
from kframe.snapshot.facts import ELR_COLUMNS, BrokerFacts, CaptureFacts, KraftFacts, PartitionFacts, Source, TopicFacts
from kframe.snapshot.faults import Faults

#: Columns that only a KRaft cluster has, and columns that it does not have.
_KRAFT_ONLY: Final = frozenset({"partitions.directories", *(f"partitions.{name}" for name in ELR_COLUMNS)})
_ZOOKEEPER_ONLY: Final = frozenset({"topics.deleting", "partitions.controller_epoch"})
#: Values that are counted at a time.
_CHUNK_VALUES: Final = 1 << 16
#: The mode of a cluster.
Mode: TypeAlias = Literal["zookeeper", "kraft"]


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class SnapshotContent:
    """The facts of a snapshot. ``Snapshot`` documents them."""

    brokers: tuple[BrokerFacts, ...]
    topics: TopicFacts
    partitions: PartitionFacts
    source: Source
    cluster_id: str | None = None
    controller_id: int | None = None
    controller_epoch: int | None = None
    broker_default_configs: Mapping[str, str] | None = None
    provenance: Mapping[str, str] = field(default_factory=dict)
    capture: CaptureFacts | None = None
    """How it was read from a live cluster, if it was. ``digest`` ignores it, since it is no fact of the cluster."""
    kraft: KraftFacts | None = None
    """Further metadata of a KRaft cluster. None: the cluster is in ZooKeeper mode, or its source has ELRs alone."""
    controllers: tuple[int, ...] = ()
    """Ids of nodes that are controllers and no brokers, ascending: instances of kframe that the source shows.
    ``brokers`` has none of them, unless a partition names it: then as an unregistered broker."""

    def __len__(self) -> int:
        return len(self.partitions)

    @property
    def is_kraft(self) -> bool:
        """Whether the cluster is known to run KRaft: its source has facts, or ELRs, that no other cluster has."""
        return self.kraft is not None or self.partitions.elr is not None

    @property
    def mode(self) -> Mode:
        """The mode of the cluster, if the source shows it."""
        return "kraft" if self.is_kraft else "zookeeper"

    @property
    def elr_partitions(self) -> int:
        """How many partitions have members in the ELR or the last-known ELR."""
        lists = (self.partitions.elr, self.partitions.last_known_elr)
        members = [column.counts > 0 for column in lists if column is not None]
        return int(np.logical_or.reduce(members).sum()) if members else 0

    @property
    def unknown(self) -> tuple[str, ...]:
        """``table.column`` of every whole column that the source lacks and that a cluster in this mode has."""
        topics = (
            ("topic_id", self.topics.topic_ids),
            ("deleting", self.topics.deleting),
            ("configs", self.topics.configs),
        )
        partitions = (*self.partitions.numbers().items(), *self.partitions.lists().items())
        columns = (
            *(f"topics.{name}" for name, column in topics if column is None),
            *(f"partitions.{name}" for name, column in partitions if column is None),
            *(("partitions.directories",) if self.partitions.directories is None else ()),
        )
        absent = _ZOOKEEPER_ONLY if self.is_kraft else _KRAFT_ONLY
        return tuple(column for column in columns if column not in absent)

    def without_partitions(self) -> Self:
        """The snapshot with the number of its partitions, and no column of them. The mode stays."""
        none = Ragged(np.broadcast_to(np.int32(0), len(self) + 1), np.empty(0, np.int32))
        return replace(self, partitions=PartitionFacts(none, elr=None if self.partitions.elr is None else none))

    def without_topics(self, faults: Faults) -> Self:
        """The snapshot without the topics at fault. ``faults`` receives the number of their partitions."""
        topics = self.topics
        retained = np.array([name not in faults.topics for name in topics.names], bool)
        for index in np.flatnonzero(~retained).tolist():
            faults.count_excluded(topics.names[index], int(topics.partition_counts[index]))
        return self.of_topics(np.flatnonzero(retained))

    def of_topics(self, indexes: Int64) -> Self:
        """The snapshot with the topics of these indexes, which ascend, and no others."""
        retained = np.zeros(len(self), bool)
        retained[self.topics.rows_of(indexes)] = True
        return replace(self, topics=self.topics.take(indexes), partitions=self.partitions.take(retained))


def brokers_text(broker_ids: Iterable[int]) -> str:
    """``broker 4`` or ``brokers 4, 7``. Long lists end with the number of omitted ids."""
    ids = list(broker_ids)
    text = ", ".join(str(broker_id) for broker_id in ids[:10])
    suffix = f" and {len(ids) - 10} more" if len(ids) > 10 else ""
    return f"broker{'s' if len(ids) > 1 else ''} {text}{suffix}"


def named_brokers(partitions: PartitionFacts) -> Int32:
    """Ids of every broker that leads or is in a list, ascending."""
    lists: list[Ragged] = [
        partitions.replicas,
        *(lists_of_column for lists_of_column in partitions.lists().values() if lists_of_column is not None),
    ]
    ids = [distinct_ids(lists_of_column.values) for lists_of_column in lists]
    if partitions.leader is not None:
        leaders = distinct_ids(partitions.leader)
        ids.append(leaders[leaders >= 0])
    return distinct_values(np.concatenate(ids)).astype(np.int32)


def distinct_ids(values: Int32) -> Int32:
    """Distinct values, ascending. Counting instead of sorting where the ids are small, as they mostly are."""
    if values.size and int(values.min()) >= 0 and (max_id := int(values.max())) < 1 << 20:
        seen = np.zeros(max_id + 1, np.bool_)
        for first in range(0, len(values), max(_CHUNK_VALUES, max_id)):  # bincount copies its input to 8 bytes a value
            counts = np.bincount(values[first : first + max(_CHUNK_VALUES, max_id)])
            seen[: len(counts)] |= counts > 0
        return np.flatnonzero(seen).astype(np.int32)
    return distinct_values(values)
