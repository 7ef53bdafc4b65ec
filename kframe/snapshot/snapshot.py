"""A snapshot: the state of a cluster at one point in time, as a source describes it, and what the source omits."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, fields, replace
from typing import Any, Final

import msgspec
import numpy as np
from numpy.typing import NDArray

from kframe.errors import InputError, ParameterError, SnapshotError
from kframe.model.arrays import Int32
from kframe.model.brokers import Endpoint
from kframe.model.cluster import ClusterState
from kframe.model.kraft.metadata import ClusterMetadata
from kframe.pages.parts import FactsPart, Heading, NotesPart, Part, TablePart
from kframe.pages.shown import Tabular
from kframe.snapshot.content import Mode, SnapshotContent, brokers_text
from kframe.snapshot.controllers import with_controllers, without_assumption
from kframe.snapshot.convert import cluster_of, snapshot_of
from kframe.snapshot.facts import KraftFacts, Source
from kframe.snapshot.kraft_assumptions import kraft_assumptions
from kframe.snapshot.tables import partitions_table

#: What ``to_cluster`` assumes where the snapshot has no value.
_ASSUMED_VALUES: Final[Mapping[str, str]] = {
    "brokers.rack": "taken as no rack",
    "topics.topic_id": "topics have no ids",
    "topics.deleting": "no topic is being deleted",
    "topics.configs": "broker defaults apply to every topic",
    "partitions.leader": "partitions have no leadership state yet, as if just created",
    "partitions.leader_epoch": "taken as 0",
    "partitions.controller_epoch": "taken as 0",
    "partitions.partition_epoch": "taken as 0",
    "partitions.leader_recovery_state": "taken as RECOVERED",
    "partitions.adding_replicas": "nothing is being reassigned",
}
#: Facts about the cluster as a whole that a controller context does not hold.
_NULLABLE: Final = frozenset({"cluster.cluster_id", "cluster.controller_id", "cluster.controller_epoch"})
#: Most brokers that a page lists.
_SHOWN: Final = 20
#: Formats that only a cluster in one mode has.
_MODES: Final[Mapping[str, Mode]] = {"zookeeper": "zookeeper"}
#: Columns that cannot matter where the leader is unknown.
_LEADERSHIP: Final = frozenset(
    f"partitions.{name}" for name in ("leader_epoch", "controller_epoch", "partition_epoch", "leader_recovery_state")
)


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Snapshot(SnapshotContent, Tabular):
    """The state of a cluster at one point in time. Treat its arrays as read-only: tables may share them.

    ``brokers`` ascend by id and name every broker that anything else names. ``provenance`` says, by
    ``table.column``, why a column is unknown or how it was inferred. ``broker_default_configs`` are the cluster-wide
    dynamic broker configs (``/config/brokers/<default>``).
    """

    @staticmethod
    def from_cluster(
        cluster: ClusterState,
        *,
        cluster_id: str | None = None,
        controller_id: int | None = None,
        controller_epoch: int | None = None,
    ) -> Snapshot:
        """What storage would hold of ``cluster``. A controller's own states and flags are not part of a snapshot."""
        return _snapshot(
            snapshot_of(cluster), cluster_id=cluster_id, controller_id=controller_id, controller_epoch=controller_epoch
        )

    @staticmethod
    def from_metadata(
        metadata: ClusterMetadata,
        *,
        source: Source,
        cluster_id: str | None = None,
        controller_id: int | None = None,
        controller_epoch: int | None = None,
        offset: int | None = None,
        voters: tuple[int, ...] | None = None,
    ) -> Snapshot:
        """All of ``metadata``, the image of a KRaft cluster.

        ``controller_epoch`` is the epoch of the quorum's leader, ``offset`` that of the last record in the image.
        ``voters`` are the controllers of the quorum.
        """
        from kframe.snapshot.kraft_metadata import snapshot_of_metadata

        return _snapshot(
            snapshot_of_metadata(metadata, source, offset, voters),
            cluster_id=cluster_id,
            controller_id=controller_id,
            controller_epoch=controller_epoch,
        )

    def to_metadata(self) -> ClusterMetadata:
        """The metadata of a KRaft cluster with this state; ``assumptions`` lists what it assumes.

        Raises InputError for a cluster in ZooKeeper mode.
        """
        if not self.is_kraft:
            raise InputError("mode", "zookeeper", "a snapshot of a KRaft cluster")
        from kframe.snapshot.kraft_metadata import metadata_of

        return metadata_of(self)

    def with_mode(self, mode: Mode) -> Snapshot:
        """The snapshot with the mode that a user states for a text that does not show it.

        Raises InputError if the snapshot shows another mode.
        """
        if mode == self.mode and (mode == "zookeeper" or self.kraft is not None):
            return self
        if mode == "zookeeper" or self.controllers or _MODES.get(self.source.format, mode) != mode:
            raise ParameterError("mode", mode, f"{self.mode}, the mode that the snapshot shows")
        topics, partitions = replace(self.topics, deleting=None), replace(self.partitions, controller_epoch=None)
        provenance = without_assumption(self)  # Brokers of a KRaft cluster name any broker as the controller.
        return replace(
            self, topics=topics, partitions=partitions, kraft=self.kraft or KraftFacts(), provenance=provenance
        )

    def with_controllers(self, controller_ids: Iterable[int]) -> Snapshot:
        """The snapshot with the ids of instances of kframe, which are no brokers, that a user states.

        Raises InputError for a KRaft cluster, and for a node that leads a partition or is in an ISR.
        """
        return with_controllers(self, controller_ids)

    def to_arrow(self) -> Any:
        """The partitions as a ``pyarrow.Table``: the columns of ``partitions.parquet``."""
        return partitions_table(self.topics, self.partitions)

    def heading(self) -> Heading:
        """See ``Shown``."""
        facts = (("partitions", len(self)), ("topics", len(self.topics)), ("brokers", len(self.brokers)))
        return Heading(f"{self.source.format} {self.source.name}".rstrip(), FactsPart(facts))

    def parts(self) -> Sequence[Part]:
        """See ``Shown``."""
        brokers = [asdict(facts) for facts in self.brokers[:_SHOWN]]
        table = TablePart("brokers", ("broker_id", "rack", "registered"), brokers, len(self.brokers))
        return [table, NotesPart(self.assumptions)]

    def known_leaders(self) -> Int32:
        """(n,) the leaders of partitions. Raises SnapshotError if the snapshot does not say who leads."""
        leader = self.partitions.leader
        if leader is None:
            raise SnapshotError(self.source.name, "nothing about who leads", "a snapshot that has leaders and ISRs")
        return leader

    def to_cluster(self) -> ClusterState:
        """A controller context with this state. ``assumptions`` lists what it assumes.

        Partition and replica states are left fresh, as in a controller that has read storage but not started its
        state machines. Brokers that are not known to be registered are not registered.
        """
        return cluster_of(self)

    @property
    def assumptions(self) -> tuple[str, ...]:
        """The assumptions of ``to_cluster``, or of ``to_metadata`` in KRaft mode, a sentence each."""
        return tuple(kraft_assumptions(self) if self.is_kraft else self._assumptions())

    def _assumptions(self) -> Iterator[str]:
        unknown = set(self.unknown) | self._unknown_broker_columns()
        explained = set()
        for column, assumed_value, broker_ids in self._unknown_broker_entries():
            if broker_ids:
                explained.add(column)
                yield f"{column} unknown of {brokers_text(broker_ids)}{self._unknown_reason(column)}: {assumed_value}"
        irrelevant = _LEADERSHIP if self.partitions.leader is None else frozenset()
        for column, assumed_value in _ASSUMED_VALUES.items():
            if column in unknown - irrelevant:
                yield f"{column} unknown{self._unknown_reason(column)}: {assumed_value}"
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
            "taken as unregistered",
            [facts.broker_id for facts in self.brokers if facts.registered is None],
        )
        yield "brokers.broker_epoch", "taken as 0", [facts.broker_id for facts in live if facts.broker_epoch is None]
        yield "brokers.endpoints", "taken as none", [facts.broker_id for facts in live if facts.endpoints is None]

    def _unknown_reason(self, column: str) -> str:
        note = self.provenance.get(column)
        return f" ({note})" if note else ""

    def digest(self) -> str:
        """SHA-256 over every fact, in hex: equal on every platform for equal facts, wherever they came from."""
        import hashlib  # It loads OpenSSL.

        sha = hashlib.sha256()
        topics, partitions = self.topics, self.partitions
        configs = None if topics.configs is None else [topics.configs.get(index) for index in range(len(topics))]
        brokers = [
            _DigestedBroker(facts.broker_id, facts.registered, facts.broker_epoch, facts.endpoints, facts.rack)
            for facts in self.brokers
        ]
        plain: list[Any] = [
            self.cluster_id,
            self.controller_id,
            self.controller_epoch,
            self.broker_default_configs,
            brokers,
            topics.names,
            configs,
            self.unknown,
        ]
        if self.controllers:
            plain.append(self.controllers)
        if self.is_kraft:
            records = None if self.kraft is None else self.kraft.records
            types = None if records is None else [record.api_key for record in records]
            plain += [self.kraft, types, [facts.registration for facts in self.brokers]]
        sha.update(msgspec.json.encode(plain, order="deterministic"))
        arrays: list[NDArray[Any] | None] = [topics.partition_counts, topics.topic_ids, topics.deleting]
        arrays.append(topics.partitions)
        arrays += partitions.numbers().values()
        known = [partitions.replicas, *partitions.lists().values(), partitions.directories, partitions.observers]
        for ragged in known:
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


def _snapshot(content: SnapshotContent, **changes: Any) -> Snapshot:
    """The snapshot with this content, apart from ``changes``."""
    return Snapshot(**{field.name: getattr(content, field.name) for field in fields(content)} | changes)
