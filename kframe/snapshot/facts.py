"""The tables of a snapshot: the known state of a cluster at one point in time.

Rows have a canonical order: topics by name, partitions by number from 0. The counts therefore replace a topic and a
partition column; only a part of a cluster (a range of row groups) stores its partition numbers. Lists and leaders hold
broker *ids*. A column that the source lacks is None and never filled in. A partition that is known to have no
leadership state yet has ``partition_epoch`` NO_STATE.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final

import numpy as np
from numpy.typing import NDArray

from kframe.model.arrays import Bool, Int32, Ragged, UInt8, positions_within, ragged_positions
from kframe.model.brokers import Endpoint
from kframe.model.kraft.brokers import BrokerRegistration
from kframe.model.kraft.directory_ids import LOST, MIGRATING, UNASSIGNED
from kframe.model.kraft.records import DirectoryIds, MetadataRecord

UNCLEAN_CONFIG: Final = "unclean.leader.election.enable"
MIN_INSYNC_CONFIG: Final = "min.insync.replicas"

#: Partition columns of one number a row that a source may lack, by the names that the files use. In ZooKeeper
#: mode ``partition_epoch`` is the version of the state znode.
NUMBER_COLUMNS: Final = ("leader", "leader_epoch", "controller_epoch", "partition_epoch", "leader_recovery_state")
#: Partition columns of one list of broker ids a row that a source may lack.
LIST_COLUMNS: Final = ("isr", "adding_replicas", "removing_replicas", "elr", "last_known_elr")
#: The provenance of observers.
OBSERVERS_NOTE: Final = (
    "Confluent's observers do not count as under-replicated; Kafka's rules take them for replicas that may join the ISR"
)
#: Columns that a source may lack, in the order in which their notes are listed.
_COLUMNS: Final = (
    *(f"brokers.{name}" for name in ("registered", "rack", "endpoints", "broker_epoch")),
    *(f"topics.{name}" for name in ("topic_id", "deleting", "configs")),
    "partitions.leader",
    "partitions.isr",
    *(f"partitions.{name}" for name in (*NUMBER_COLUMNS[1:], "adding_replicas", "removing_replicas")),
    *(f"cluster.{name}" for name in ("cluster_id", "controller_id", "controller_epoch")),
)
#: The eligible leader replicas, which only KRaft clusters have. Their members may be brokers that hold no replica.
ELR_COLUMNS: Final = ("elr", "last_known_elr")
#: Most partitions of a part of a cluster, unless one topic has more.
_BLOCK_ROWS: Final = 1 << 16


def absent_columns(note: str, *known: str) -> dict[str, str]:
    """The provenance of a source that has only the ``known`` columns: this note for each other column."""
    return dict.fromkeys((column for column in _COLUMNS if column not in known), note)


@dataclass(frozen=True, slots=True)
class Source:
    """Where a snapshot was captured from: a format of ``kframe.snapshot.FORMATS`` or a maker, and a file's name."""

    format: str
    name: str


@dataclass(frozen=True, slots=True)
class CaptureFacts:
    """How a snapshot was read from a live cluster.

    If ``consistent``, all values were stored at the same instant. If not, ``moved`` (at most a thousand of
    ``moved_count``) are the paths, or the partitions, that changed between the last two of ``passes`` readings; the
    last reading counts. ``quarantined`` maps each unreadable path, which is left out, to the reason. ``zxid`` is the
    last transaction of ZooKeeper that was seen, None for a capture through brokers.
    """

    passes: int
    consistent: bool
    zxid: int | None
    moved_count: int = 0
    moved: tuple[str, ...] = ()
    quarantined: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class KraftFacts:
    """The metadata of a KRaft cluster that no table has; None is not known.

    ``features`` are the finalized levels. ``records`` are all further metadata as records: configurations of resources
    other than existing topics and all brokers, controllers, quotas, ACLs, SCRAM credentials, delegation tokens, the
    next producer id. ``directory_ids`` are those that ``PartitionFacts.directories`` refers to. ``offset`` is that of
    the last record that the snapshot includes. ``voters`` are the node ids of the quorum's controllers, ascending.
    """

    features: Mapping[str, int] | None = None
    records: tuple[MetadataRecord, ...] | None = None
    directory_ids: DirectoryIds = (MIGRATING, UNASSIGNED, LOST)
    offset: int | None = None
    voters: tuple[int, ...] | None = None


@dataclass(frozen=True, slots=True)
class BrokerFacts:
    """One broker. ``registered`` None: the source does not say; other Nones: not known, or (``rack``) none.

    ``registration`` is the whole registration in a KRaft cluster: fenced, in controlled shutdown, log directories,
    cordoned directories, incarnation id, supported features.
    """

    broker_id: int
    registered: bool | None
    broker_epoch: int | None = None
    endpoints: tuple[Endpoint, ...] | None = None
    rack: str | None = None
    registration: BrokerRegistration | None = None


def own_configs(unclean: bool | None, min_insync: int | None) -> dict[str, str]:
    """The settings of a topic that decide elections. None: the topic has none of its own."""
    configs = {} if min_insync is None else {MIN_INSYNC_CONFIG: str(min_insync)}
    return configs if unclean is None else configs | {UNCLEAN_CONFIG: "true" if unclean else "false"}


@dataclass(frozen=True, slots=True, eq=False)
class TopicFacts:
    """Topics, ascending by name.

    ``partition_counts`` is (t,) int32. ``topic_ids`` is (t, 16) uint8, big-endian, zeros where a topic has none.
    ``deleting`` is (t,), 0 or 1. ``configs`` holds the overrides of each topic that has any, by topic index.
    ``partitions`` is the (n,) partition number of each row, ascending in each topic; None where all topics
    are complete.
    """

    names: tuple[str, ...]
    partition_counts: Int32
    topic_ids: UInt8 | None = None
    deleting: UInt8 | None = None
    configs: Mapping[int, Mapping[str, str]] | None = None
    partitions: Int32 | None = None

    def __len__(self) -> int:
        return len(self.names)

    def take(self, indexes: NDArray[np.int64]) -> TopicFacts:
        """The topics of these indexes, which ascend."""
        configs = None
        if self.configs is not None:
            known = self.configs
            configs = {new: known[old] for new, old in enumerate(indexes.tolist()) if old in known}
        return TopicFacts(
            tuple(self.names[index] for index in indexes.tolist()),
            self.partition_counts[indexes],
            None if self.topic_ids is None else self.topic_ids[indexes],
            None if self.deleting is None else self.deleting[indexes],
            configs,
            None if self.partitions is None else self.partitions[self.rows_of(indexes)],
        )

    def rows_of(self, indexes: NDArray[np.int64]) -> NDArray[np.int64]:
        """Rows of the topics of these indexes."""
        return ragged_positions(self.first_rows[indexes], self.partition_counts[indexes])

    @property
    def first_rows(self) -> Int32:
        """(t,) row of each topic's first partition."""
        return (np.cumsum(self.partition_counts) - self.partition_counts).astype(np.int32)

    def blocks(self) -> Iterator[tuple[slice, slice]]:
        """The topics and the rows of parts of the cluster, each as a slice, so that each part fits into the caches."""
        last_rows = np.cumsum(self.partition_counts)
        first_topic = first_row = 0
        while first_topic < len(self):
            last_topic = max(int(np.searchsorted(last_rows, first_row + _BLOCK_ROWS, side="right")), first_topic + 1)
            last_row = int(last_rows[last_topic - 1])
            yield slice(first_topic, last_topic), slice(first_row, last_row)
            first_topic, first_row = last_topic, last_row

    def topic_of_rows(self) -> Int32:
        """Topic index of each partition (n,)."""
        return np.repeat(np.arange(len(self.names), dtype=np.int32), self.partition_counts)

    def partition_of_rows(self) -> Int32:
        """(n,) partition number of each partition."""
        if self.partitions is not None:
            return self.partitions
        return positions_within(self.partition_counts)

    def name_of_row(self, row: int) -> str:
        """``topic-partition`` of a row."""
        topic = int(np.searchsorted(np.cumsum(self.partition_counts), row, side="right"))
        return f"{self.names[topic]}-{int(self.partition_of_rows()[row])}"

    def unclean(self, topic: int) -> bool | None:
        """A topic's own ``unclean.leader.election.enable``. None where it has none or configs are unknown."""
        value = (self.configs or {}).get(topic, {}).get(UNCLEAN_CONFIG)
        return None if value is None else value.strip().lower() == "true"

    def min_insync(self, topic: int) -> int | None:
        """A topic's own ``min.insync.replicas``. None where it has none or configs are unknown."""
        value = (self.configs or {}).get(topic, {}).get(MIN_INSYNC_CONFIG)
        return None if value is None else int(value)


@dataclass(frozen=True, slots=True, eq=False)
class PartitionFacts:
    """Partitions, topic by topic by number. Every column (n,) int32 or n lists of broker ids.

    ``leader`` is NO_LEADER where there is none; ``leader`` and ``isr`` are known together or not at all.
    """

    replicas: Ragged
    leader: Int32 | None = None
    isr: Ragged | None = None
    leader_epoch: Int32 | None = None
    controller_epoch: Int32 | None = None
    partition_epoch: Int32 | None = None
    leader_recovery_state: Int32 | None = None
    adding_replicas: Ragged | None = None
    removing_replicas: Ragged | None = None
    elr: Ragged | None = None
    last_known_elr: Ragged | None = None
    directories: Ragged | None = None
    """The log directory of each replica of a KRaft cluster: positions in ``KraftFacts.directory_ids``."""
    observers: Ragged | None = None
    """Confluent's observers: the replicas that are out of the ISR by their placement. None: the source shows none."""

    def __len__(self) -> int:
        return len(self.replicas)

    def take(self, mask: Bool) -> PartitionFacts:
        """The rows that a mask selects."""
        rows = np.flatnonzero(mask)
        numbers = {name: None if column is None else column[rows] for name, column in self.numbers().items()}
        lists = {name: None if column is None else column.take(rows) for name, column in self.lists().items()}
        directories = None if self.directories is None else self.directories.take(rows)
        observers = None if self.observers is None else self.observers.take(rows)
        replicas = self.replicas.take(rows)
        return PartitionFacts(replicas, **numbers, **lists, directories=directories, observers=observers)  # type: ignore[arg-type]

    def part(self, first: int, last: int) -> PartitionFacts:
        """The rows from ``first`` up to ``last``; their values are views."""
        numbers = {name: None if column is None else column[first:last] for name, column in self.numbers().items()}
        ragged = {name: None if column is None else column.part(first, last) for name, column in self.lists().items()}
        directories = None if self.directories is None else self.directories.part(first, last)
        observers = None if self.observers is None else self.observers.part(first, last)
        replicas = self.replicas.part(first, last)
        return PartitionFacts(replicas, **numbers, **ragged, directories=directories, observers=observers)  # type: ignore[arg-type]

    @property
    def slot_count(self) -> int:
        """How many slots the replicas and ISRs of all partitions take beside each other."""
        counts = self.replicas.counts
        return int((counts if self.isr is None else np.maximum(counts, self.isr.counts)).sum())

    @property
    def nbytes(self) -> int:
        """Bytes of all columns; an array that columns share counts once."""
        ragged = (self.replicas, *self.lists().values(), self.directories, self.observers)
        arrays = [*self.numbers().values()]
        arrays += [array for lists in ragged if lists is not None for array in (lists.offsets, lists.values)]
        return sum({id(array): array.nbytes for array in arrays if array is not None}.values())

    def numbers(self) -> dict[str, Int32 | None]:
        """The columns of NUMBER_COLUMNS by name."""
        return {name: getattr(self, name) for name in NUMBER_COLUMNS}

    def lists(self) -> dict[str, Ragged | None]:
        """The columns of LIST_COLUMNS by name."""
        return {name: getattr(self, name) for name in LIST_COLUMNS}
