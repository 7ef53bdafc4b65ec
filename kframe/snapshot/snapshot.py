"""A snapshot: the state of a cluster at one point in time, as a source describes it. It also says what the source
omits."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final, Literal, TypeAlias

import msgspec
import numpy as np
from numpy.typing import NDArray

from kframe.errors import InputError
from kframe.model.brokers import Endpoint
from kframe.model.cluster import ClusterState
from kframe.model.columns import Int32, Ragged
from kframe.model.kraft.metadata import ClusterMetadata
from kframe.snapshot.facts import (
    ELR_COLUMNS,
    BrokerFacts,
    CaptureFacts,
    KraftFacts,
    PartitionFacts,
    Source,
    TopicFacts,
)
from kframe.snapshot.faults import Faults
from kframe.snapshot.frames import Tabular
from kframe.snapshot.kraft_assumptions import kraft_assumptions

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
#: Columns that only a KRaft cluster has, and columns that it does not have.
_KRAFT_ONLY: Final = frozenset({"partitions.directories", *(f"partitions.{name}" for name in ELR_COLUMNS)})
_ZOOKEEPER_ONLY: Final = frozenset({"topics.deleting", "partitions.controller_epoch"})
#: The mode of a cluster.
Mode: TypeAlias = Literal["zookeeper", "kraft"]
#: Formats that only a cluster in one mode has.
_MODES: Final[Mapping[str, Mode]] = {"zookeeper": "zookeeper"}
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
    kraft: KraftFacts | None = None
    """Further metadata of a KRaft cluster. None: the cluster is in ZooKeeper mode, or its source has ELRs alone."""

    def __len__(self) -> int:
        return len(self.partitions)

    @staticmethod
    def from_cluster(
        cluster: ClusterState, *, cluster_id: str | None = None, controller_id: int | None = None,
        controller_epoch: int | None = None,
    ) -> Snapshot:  # fmt: skip
        """What storage would hold of ``cluster``. A controller's own states and flags are not part of a snapshot."""
        from kframe.snapshot.convert import snapshot_of

        bare = snapshot_of(cluster)
        return replace(bare, cluster_id=cluster_id, controller_id=controller_id, controller_epoch=controller_epoch)

    @staticmethod
    def from_metadata(
        metadata: ClusterMetadata, *, source: Source, cluster_id: str | None = None, controller_id: int | None = None,
        controller_epoch: int | None = None, offset: int | None = None,
    ) -> Snapshot:  # fmt: skip
        """All of ``metadata``, the image of a KRaft cluster.

        ``controller_epoch`` is the epoch of the quorum's leader, ``offset`` that of the last record in the image.
        """
        from kframe.snapshot.kraft_metadata import snapshot_of_metadata

        return snapshot_of_metadata(
            metadata, source=source, cluster_id=cluster_id, controller_id=controller_id,
            controller_epoch=controller_epoch, offset=offset,
        )  # fmt: skip

    def to_metadata(self) -> ClusterMetadata:
        """The metadata of a KRaft cluster with this state; ``assumptions`` lists what it assumes.

        Raises InputError for a cluster in ZooKeeper mode.
        """
        from kframe.snapshot.kraft_metadata import metadata_of

        if not self.is_kraft:
            raise InputError("mode", "zookeeper", "a snapshot of a KRaft cluster")
        return metadata_of(self)

    def with_mode(self, mode: Mode) -> Snapshot:
        """The snapshot with the mode that a user states for a text that does not show it.

        Raises InputError if the snapshot shows another mode.
        """
        if mode == self.mode and (mode == "zookeeper" or self.kraft is not None):
            return self
        if mode == "zookeeper" or _MODES.get(self.source.format, mode) != mode:
            raise InputError("mode", mode, f"{self.mode}, the mode that the snapshot shows")
        topics = replace(self.topics, deleting=None)
        return replace(self, topics=topics, kraft=self.kraft or KraftFacts())

    def to_arrow(self) -> Any:
        """The partitions as a ``pyarrow.Table``: the columns of ``partitions.parquet``."""
        from kframe.snapshot.tables import partitions_table

        return partitions_table(self.topics, self.partitions)

    def _summary(self) -> tuple[str, Mapping[str, object]]:
        title = f"{self.source.format} {self.source.name}".rstrip()
        return title, {"partitions": len(self), "topics": len(self.topics), "brokers": len(self.brokers)}

    def to_cluster(self) -> ClusterState:
        """A controller context with this state. ``assumptions`` lists what it assumes.

        Partition and replica states are left fresh, as in a controller that has read storage but not started its
        state machines. Brokers that are not known to be registered are not registered.
        """
        from kframe.snapshot.convert import cluster_of

        return cluster_of(self)

    def without_topics(self, faults: Faults) -> Snapshot:
        """The snapshot without the topics at fault. ``faults`` receives the number of their partitions."""
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
        """Whether the cluster is known to run KRaft: its source has facts, or ELRs, that no other cluster has."""
        return self.kraft is not None or self.partitions.elr is not None

    @property
    def mode(self) -> Mode:
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

    @property
    def assumptions(self) -> tuple[str, ...]:
        """The assumptions of ``to_cluster``, or of ``to_metadata`` in KRaft mode, a sentence each."""
        return tuple(kraft_assumptions(self) if self.is_kraft else self._assumptions())

    def _assumptions(self) -> Iterator[str]:
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
        brokers = [
            _DigestedBroker(facts.broker_id, facts.registered, facts.broker_epoch, facts.endpoints, facts.rack)
            for facts in self.brokers
        ]
        plain: list[Any] = [self.cluster_id, self.controller_id, self.controller_epoch, self.broker_default_configs,
                            brokers, topics.names, configs, self.unknown]  # fmt: skip
        if self.is_kraft:
            records = None if self.kraft is None else self.kraft.records
            types = None if records is None else [record.api_key for record in records]
            plain += [self.kraft, types, [facts.registration for facts in self.brokers]]
        sha.update(msgspec.json.encode(plain, order="deterministic"))
        arrays: list[NDArray[Any] | None] = [topics.partition_counts, topics.topic_ids, topics.deleting]
        arrays.append(topics.partitions)
        arrays += partitions.numbers().values()
        for ragged in (partitions.replicas, *partitions.lists().values(), partitions.directories):
            arrays += [None, None] if ragged is None else [ragged.counts, ragged.values]
        for array in arrays:
            if array is not None:
                little_endian = np.ascontiguousarray(array, array.dtype.newbyteorder("<"))
                sha.update(len(little_endian).to_bytes(8, "little"))
                sha.update(little_endian.data)
        return sha.hexdigest()


class _DigestedBroker(msgspec.Struct, frozen=True):
    """The facts of a broker that a cluster in any mode has."""

    broker_id: int
    registered: bool | None
    broker_epoch: int | None
    endpoints: tuple[Endpoint, ...] | None
    rack: str | None


def brokers_text(broker_ids: Iterable[int]) -> str:
    """``broker 4`` or ``brokers 4, 7``. Long lists end in how many more there are."""
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
    """Distinct values, ascending. Counting instead of sorting where the ids are small, as they mostly are."""
    if values.size and int(values.min()) >= 0 and int(values.max()) < 1 << 20:
        return np.flatnonzero(np.bincount(values)).astype(np.int32)
    return np.unique(values)
