"""A snapshot: the state of a cluster at one point in time as a source describes it, and what the source omits."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final, Literal

import msgspec
import numpy as np
from numpy.typing import NDArray

from kframe.model.cluster import ClusterState
from kframe.model.columns import Int32, Ragged
from kframe.snapshot.facts import ELR_COLUMNS, BrokerFacts, CaptureFacts, PartitionFacts, Source, TopicFacts
from kframe.snapshot.faults import Faults
from kframe.snapshot.frames import Tabular

#: What ``to_cluster`` assumes where the snapshot has no value.
_TAKEN_AS: Final[Mapping[str, str]] = {
    "brokers.rack": "taken as no rack",
    "topics.topic_id": "topics have no ids",
    "topics.deleting": "no topic is being deleted",
    "topics.configs": "broker defaults apply to every topic",
    "partitions.leader": "partitions have no leadership state yet, as if just created",
    "partitions.leader_epoch": "taken as 0",
    "partitions.controller_epoch": "taken as 0",
    "partitions.zk_version": "taken as 0",
    "partitions.leader_recovery_state": "taken as RECOVERED",
    "partitions.adding_replicas": "nothing is being reassigned",
}
#: Facts about the cluster as a whole that a controller context does not hold.
_NULLABLE: Final = frozenset({"cluster.cluster_id", "cluster.controller_id", "cluster.controller_epoch"})
#: Columns that cannot matter where the leader is unknown.
_LEADERSHIP: Final = frozenset(
    f"partitions.{name}" for name in ("leader_epoch", "controller_epoch", "zk_version", "leader_recovery_state")
)


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Snapshot(Tabular):
    """One moment of a cluster. Treat its arrays as read-only: tables may share them.

    ``brokers`` ascend by id and name every broker that anything else names. ``provenance`` says, by
    ``table.column``, why a column is unknown or how it was inferred. ``broker_default_configs`` are the cluster-wide
    dynamic broker configs (``/config/brokers/<default>``).
    """

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

    def __len__(self) -> int:
        return len(self.partitions)

    @staticmethod
    def from_cluster(
        cluster: ClusterState, *, cluster_id: str | None = None, controller_id: int | None = None,
        controller_epoch: int | None = None,
    ) -> Snapshot:  # fmt: skip
        """What storage would hold of ``cluster``; a controller's own states and flags are not part of a snapshot."""
        from kframe.snapshot.convert import snapshot_of

        bare = snapshot_of(cluster)
        return replace(bare, cluster_id=cluster_id, controller_id=controller_id, controller_epoch=controller_epoch)

    def to_arrow(self) -> Any:
        """The partitions as a ``pyarrow.Table``: the columns of ``partitions.parquet``."""
        from kframe.snapshot.tables import partitions_table

        return partitions_table(self.topics, self.partitions)

    def _summary(self) -> tuple[str, Mapping[str, object]]:
        title = f"{self.source.format} {self.source.name}".rstrip()
        return title, {"partitions": len(self), "topics": len(self.topics), "brokers": len(self.brokers)}

    def to_cluster(self) -> ClusterState:
        """A controller context with this state; ``assumptions`` lists what it assumes.

        Partition and replica states are left fresh, as in a controller that has read storage but not started its
        state machines. Brokers that are not known to be registered are not registered.
        """
        from kframe.snapshot.convert import cluster_of

        return cluster_of(self)

    def without_topics(self, faults: Faults) -> Snapshot:
        """The snapshot without the topics at fault; ``faults`` receives the number of their partitions."""
        topics = self.topics
        retained = np.array([name not in faults.topics for name in topics.names], bool)
        for index in np.flatnonzero(~retained).tolist():
            faults.left_out(topics.names[index], int(topics.partition_counts[index]))
        return replace(
            self,
            topics=topics.take(np.flatnonzero(retained)),
            partitions=self.partitions.take(retained[topics.topic_of_rows()]),
        )

    @property
    def is_kraft(self) -> bool:
        """Whether the cluster is known to run KRaft: its source has eligible leader replicas (ELR)."""
        return self.partitions.elr is not None

    @property
    def mode(self) -> Literal["zookeeper", "kraft"]:
        """The mode of the cluster, as far as the source shows it."""
        return "kraft" if self.is_kraft else "zookeeper"

    @property
    def elr_partitions(self) -> int:
        """How many partitions have members in the ELR or the last-known ELR."""
        lists = (self.partitions.elr, self.partitions.last_known_elr)
        members = [column.counts > 0 for column in lists if column is not None]
        return int(np.logical_or.reduce(members).sum()) if members else 0

    @property
    def unknown(self) -> tuple[str, ...]:
        """``table.column`` of every whole column that the source lacks, ELR columns apart: other clusters have none."""
        topics = (
            ("topic_id", self.topics.topic_ids),
            ("deleting", self.topics.deleting),
            ("configs", self.topics.configs),
        )
        partitions = (*self.partitions.numbers().items(), *self.partitions.lists().items())
        return (
            *(f"topics.{name}" for name, column in topics if column is None),
            *(f"partitions.{name}" for name, column in partitions if column is None and name not in ELR_COLUMNS),
        )

    @property
    def assumptions(self) -> tuple[str, ...]:
        """The assumptions of ``to_cluster``, a sentence each."""
        return tuple(self._assumptions())

    def _assumptions(self) -> Iterator[str]:
        if self.is_kraft:
            members = f"ELR members of {self.elr_partitions} partitions are not elected"
            yield f"partitions.elr: the rules of ZooKeeper mode decide; {members}"
        unknown = set(self.unknown) | self._unknown_broker_columns()
        explained = set()
        for column, taken_as, broker_ids in self._unknown_broker_entries():
            if broker_ids:
                explained.add(column)
                yield f"{column} unknown of {brokers_text(broker_ids)}{self._why(column)}: {taken_as}"
        moot = _LEADERSHIP if self.partitions.leader is None else frozenset()
        for column, taken_as in _TAKEN_AS.items():
            if column in unknown - moot:
                yield f"{column} unknown{self._why(column)}: {taken_as}"
        for column, note in self.provenance.items():
            if column not in explained | unknown | _NULLABLE:
                yield f"{column}: {note}"

    def _unknown_broker_columns(self) -> set[str]:
        """Empty broker columns whose absence the source explains."""
        columns = ("registered", "broker_epoch", "endpoints", "rack")
        empty = {f"brokers.{name}" for name in columns if all(getattr(facts, name) is None for facts in self.brokers)}
        return empty & set(self.provenance)

    def _unknown_broker_entries(self) -> Iterator[tuple[str, str, list[int]]]:
        """Per broker column: what an unknown entry is taken as, and the brokers that have one."""
        live = [facts for facts in self.brokers if facts.registered]
        yield (
            "brokers.registered",
            "taken as gone",
            [facts.broker_id for facts in self.brokers if facts.registered is None],
        )
        yield "brokers.broker_epoch", "taken as 0", [facts.broker_id for facts in live if facts.broker_epoch is None]
        yield "brokers.endpoints", "taken as none", [facts.broker_id for facts in live if facts.endpoints is None]

    def _why(self, column: str) -> str:
        note = self.provenance.get(column)
        return f" ({note})" if note else ""

    def digest(self) -> str:
        """SHA-256 over every fact, in hex: equal on every platform for equal facts, wherever they came from."""
        sha = hashlib.sha256()
        topics, partitions = self.topics, self.partitions
        configs = None if topics.configs is None else [topics.configs.get(index) for index in range(len(topics))]
        plain = [self.cluster_id, self.controller_id, self.controller_epoch, self.broker_default_configs, self.brokers,
                 topics.names, configs, self.unknown]  # fmt: skip
        sha.update(msgspec.json.encode(plain, order="deterministic"))
        arrays: list[NDArray[Any] | None] = [topics.partition_counts, topics.topic_ids, topics.deleting]
        arrays.append(topics.partitions)
        arrays += partitions.numbers().values()
        for ragged in (partitions.replicas, *partitions.lists().values()):
            arrays += [None, None] if ragged is None else [ragged.counts, ragged.values]
        for array in arrays:
            if array is not None:
                little_endian = np.ascontiguousarray(array, array.dtype.newbyteorder("<"))
                sha.update(len(little_endian).to_bytes(8, "little"))
                sha.update(little_endian.data)
        return sha.hexdigest()


def brokers_text(broker_ids: Iterable[int]) -> str:
    """``broker 4`` or ``brokers 4, 7``; long lists end in how many more there are."""
    ids = list(broker_ids)
    shown = ", ".join(str(broker_id) for broker_id in ids[:10])
    more = f" and {len(ids) - 10} more" if len(ids) > 10 else ""
    return f"broker{'s' if len(ids) > 1 else ''} {shown}{more}"


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
    return np.unique(np.concatenate(ids)).astype(np.int32)


def distinct_ids(values: Int32) -> Int32:
    """Distinct values, ascending; counting instead of sorting where the ids are small, as they mostly are."""
    if values.size and int(values.min()) >= 0 and int(values.max()) < 1 << 20:
        return np.flatnonzero(np.bincount(values)).astype(np.int32)
    return np.unique(values)
