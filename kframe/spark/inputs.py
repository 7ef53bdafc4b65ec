"""The clusters of a fleet as plain data, with fingerprints. Any process can read a whole cluster from it.

A path names the same file for the driver and for all executors.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

import msgspec
import pyarrow as pa
from pyarrow import parquet

from kframe.errors import SnapshotError
from kframe.model.texts import counted
from kframe.snapshot import Snapshot, read_snapshot
from kframe.snapshot.content import Mode
from kframe.snapshot.manifest import file_of, read_mode
from kframe.snapshot.rack_map import FleetRackMap
from kframe.spark.fleet import ClusterRecord, fingerprint, inputs_of, is_fleet, read_part, records
from kframe.spark.inferred import completed
from kframe.spark.rows import rows_of, snapshot_of, table_of
from kframe.spark.schema import BROKERS, CLUSTER_TABLES, CLUSTERS, TEXT, FleetTable
from kframe.spark.sources import SnapshotSource, find_sources
from kframe.spark.tasks import PARTITIONS_OF_UNIT, rows_of_inputs

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

#: The fingerprint of the input of each cluster.
FINGERPRINTS: Final = FleetTable("fingerprints", pa.schema([("cluster", TEXT), ("fingerprint", TEXT)]), ("cluster",))


@dataclass(frozen=True, slots=True)
class ClusterInput:
    """One cluster and where it is: in a fleet that ``ingest`` wrote, or in a source of its own.

    ``partitions`` is their number, None if only a read of the whole source shows it. ``mode`` is zookeeper, too, if
    only a read shows it. ``racks`` are those of its brokers without a rack.
    """

    cluster: str
    path: str
    ingested: bool
    partitions: int | None = None
    mode: Mode = "zookeeper"
    racks: FleetRackMap | None = None

    @staticmethod
    def of_record(root: Path, record: ClusterRecord) -> ClusterInput:
        """A cluster of the fleet at ``root``."""
        return ClusterInput(record.cluster, str(root.absolute()), True, record.partitions, record.mode)

    @staticmethod
    def of_source(source: SnapshotSource) -> ClusterInput:
        """The cluster of a snapshot file or directory. Only the manifest and the footer of a Parquet file
        are read."""
        rows = None
        if source.is_directory:
            try:
                rows = parquet.read_metadata(os.path.join(source.path, file_of("partitions"))).num_rows
            except (pa.ArrowException, OSError):
                rows = None  # Reading the path reports the error.
        mode = read_mode(Path(source.path)) if source.is_directory else None
        return ClusterInput(source.cluster, source.path, False, rows, mode or "zookeeper")

    def snapshot(self) -> Snapshot:
        """The whole cluster. Raises SnapshotError, which names the place and the reason, and InputError for an entry
        of ``racks`` that contradicts it."""
        tables = self._read_tables() if self.ingested else {}
        snapshot = (
            snapshot_of(*(tables[table.name] for table in CLUSTER_TABLES)) if tables else read_snapshot(self.path)
        )
        return snapshot if self.racks is None else self.racks.complete(snapshot, self.cluster)

    def tables(self) -> dict[str, pa.Table]:
        """The tables of the cluster by name, without validation. Raises SnapshotError as ``snapshot`` does if the
        cluster is not ingested, and InputError."""
        tables = self._read_tables()
        if self.racks is not None:
            tables[BROKERS.name] = with_mapped_racks(tables[BROKERS.name], self.racks)
        return tables

    def brokers(self) -> pa.Table:
        """The rows of BROKERS alone: some dozens of rows. Raises as ``tables``."""
        if not self.ingested:
            return self.tables()[BROKERS.name]
        rows = read_part(Path(self.path), BROKERS, self.cluster)
        return rows if self.racks is None else with_mapped_racks(rows, self.racks)

    def _read_tables(self) -> dict[str, pa.Table]:
        if self.ingested:
            return {table.name: read_part(Path(self.path), table, self.cluster) for table in CLUSTER_TABLES}
        snapshot = read_snapshot(self.path)
        return {table.name: table_of(rows_of(snapshot, self.cluster, table), table) for table in CLUSTER_TABLES}


def with_mapped_racks(brokers: pa.Table, racks: FleetRackMap) -> pa.Table:
    """Rows of BROKERS with the racks of a map. Raises InputError for an entry that contradicts a row."""
    columns = (brokers[name].to_pylist() for name in ("cluster", "broker_id", "rack"))
    mapped = [racks.rack(*row) for row in zip(*columns, strict=True)]
    return brokers.set_column(brokers.schema.get_field_index("rack"), "rack", pa.array(mapped, TEXT))


@dataclass(frozen=True, slots=True)
class ClusterRows:
    """The rows of one cluster in the tables of a caller. ``mode`` is that of clusters without a row in ``clusters``."""

    cluster: str | None
    contents: Mapping[str, pa.Table]
    mode: Mode | None = None
    ingested: bool = field(default=True, init=False)
    """An error in it is a problem of this cluster alone."""

    def snapshot(self) -> Snapshot:
        """The cluster, with what its partitions show where the caller has no table. Raises SnapshotError."""
        if self.cluster is None:
            raise SnapshotError("rows without a cluster", "null", "the name of a cluster")
        clusters = self.contents.get(CLUSTERS.name)
        where = f"cluster {self.cluster} table clusters"
        if clusters is not None and clusters.num_rows != 1:
            raise SnapshotError(where, counted(clusters.num_rows, "row"), "one row of each cluster")
        if not any(table.num_rows for table in self.contents.values()):
            raise SnapshotError(f"cluster {self.cluster}", "no row of it", "a cluster of the tables")
        tables = completed(self.cluster, self.contents, self.mode)
        return snapshot_of(*(tables[table.name] for table in CLUSTER_TABLES))

    def tables(self) -> dict[str, pa.Table]:
        """The rows as they are."""
        return {table.name: self.contents.get(table.name, table.schema.empty_table()) for table in CLUSTER_TABLES}


@dataclass(frozen=True, slots=True)
class Fleet:
    """The clusters of a fleet by name, where one task can read each, and the requested fingerprints of their inputs."""

    clusters: Mapping[str, ClusterInput]
    inputs: Mapping[str, str] = field(default_factory=dict)
    rejected: Mapping[str, str] = field(default_factory=dict)
    """Why clusters were rejected when they were ingested, by name. They have no rows."""

    def names(self) -> set[str]:
        """The names of all clusters, without the rejected ones."""
        return set(self.clusters)

    def brokers(self, session: SparkSession | None) -> pa.Table:
        """The rows of BROKERS of all clusters. A Spark job is run, with a session, only for what was not ingested."""
        clusters = list(self.clusters.values())

        def work(inputs: Iterator[ClusterInput]) -> Iterator[pa.RecordBatch]:
            for cluster in inputs:
                yield from cluster.brokers().to_batches()

        in_driver = all(cluster.ingested for cluster in clusters)
        rows = rows_of_inputs(None if in_driver else session, clusters, work, BROKERS)
        return table_of(rows.to_batches(), BROKERS)

    def cost(self, scenarios: Sequence[str | None] = (None,)) -> int | None:
        """The partitions that scenarios play, and what they cost besides, in partitions. ``scenarios`` has the cluster
        of each, None for all clusters. Returns None if a cluster must be read to know its size."""
        sizes: dict[str | None, int] = {}
        for name, cluster in self.clusters.items():
            if cluster.partitions is None:
                return None
            sizes[name] = PARTITIONS_OF_UNIT + cluster.partitions
        sizes[None] = sum(sizes.values())
        return sum(sizes.get(name, 0) for name in scenarios)

    def with_fingerprints(self, session: SparkSession | None, racks: FleetRackMap | None) -> Fleet:
        """The fleet with fingerprints of all inputs, for which each source is read. Raises SnapshotError."""
        others = [cluster for name, cluster in self.clusters.items() if name not in self.inputs]
        inputs = {**self.inputs, **_fingerprints(session, others)}
        if racks is not None:
            mapped = {name: msgspec.json.encode(sorted(racks.of(name).items())) for name in inputs}
            inputs = {name: hashlib.sha256(text.encode() + mapped[name]).hexdigest() for name, text in inputs.items()}
        return replace(self, inputs=inputs)


def open_fleet(root: str, racks: FleetRackMap | None = None) -> Fleet:
    """The clusters of a fleet that ``ingest`` wrote, or of snapshot files and directories. No source is read.

    Brokers without a rack have that of ``racks``. ``inputs`` has what ``ingest`` recorded. Raises InputError.
    """
    rejected = {}
    if is_fleet(Path(root)):
        complete = records(Path(root))
        clusters = [ClusterInput.of_record(Path(root), record) for record in complete if record.rejected is None]
        inputs = {record.cluster: fingerprint(record.outputs) for record in complete}
        rejected = {record.cluster: record.rejected for record in complete if record.rejected is not None}
    else:
        clusters, inputs = list(map(ClusterInput.of_source, find_sources([root]))), {}
    if racks is not None:
        clusters = [replace(cluster, racks=racks.only(cluster.cluster)) for cluster in clusters]
    return Fleet({cluster.cluster: cluster for cluster in clusters}, inputs, rejected)


def _fingerprints(session: SparkSession | None, sources: Sequence[ClusterInput]) -> dict[str, str]:
    """The fingerprint of each source, by its cluster. Tasks compute them, because every byte is read."""

    def work(inputs: Iterator[ClusterInput]) -> Iterator[pa.RecordBatch]:
        for source in inputs:
            digest = fingerprint(inputs_of(source.path))
            yield pa.RecordBatch.from_pydict({"cluster": [source.cluster], "fingerprint": [digest]})

    fingerprints = rows_of_inputs(session, sources, work, FINGERPRINTS)
    return dict(zip(fingerprints["cluster"].to_pylist(), fingerprints["fingerprint"].to_pylist(), strict=True))
