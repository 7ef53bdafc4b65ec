"""The inputs of clusters as plain data. Any process can read a whole cluster from one, without a Spark job.

A path names the same file for the driver and for all executors.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
from pyarrow import parquet

from kframe.snapshot import Snapshot, read_snapshot
from kframe.snapshot.content import Mode
from kframe.snapshot.manifest import file_of, read_mode
from kframe.snapshot.rack_map import FleetRackMap
from kframe.spark.fleet import ClusterRecord, read_part
from kframe.spark.rows import rows_of, snapshot_of, table_of
from kframe.spark.schema import BROKERS, CLUSTER_TABLES, TEXT
from kframe.spark.sources import SnapshotSource


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
