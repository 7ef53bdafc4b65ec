"""Ingest raw exports of clusters into a fleet's tables, and invalid input into its quarantine. Each cluster is atomic.

A rerun does only what has changed: a cluster whose input has the size and hash that its record names is left alone.
The same input gives the same files.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from kframe.errors import InputError, SnapshotError
from kframe.snapshot import Snapshot
from kframe.snapshot.content import Mode
from kframe.snapshot.faults import FaultNotes
from kframe.snapshot.manifest import FileEntry
from kframe.snapshot.rack_map import FleetRackMap
from kframe.spark.fleet import ClusterRecord, check_fleet_root, finish, inputs_of, put_cluster, record_of
from kframe.spark.reading import quarantine_rows, read_tolerantly
from kframe.spark.row_types import IngestRow
from kframe.spark.rows import rows_of
from kframe.spark.schema import BROKERS, CLUSTERS, PARTITIONS, QUARANTINE, TOPICS, FleetTable, columns_of
from kframe.spark.sources import SnapshotSource
from kframe.spark.tasks import map_inputs

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

#: A row a source: ``status`` is ``ingested``, ``rejected`` (``reason`` says why) or ``unchanged``. Then what the
#: cluster holds, how many rows of the quarantine are its own, and the rules of which mode apply.
INGESTED: Final = FleetTable("ingested", columns_of(IngestRow), ("cluster",))


def ingest_source(
    source: SnapshotSource,
    root: Path,
    *,
    force: bool = False,
    mode: Mode | None = None,
    controllers: tuple[int, ...] = (),
    rack_map: FleetRackMap | None = None,
) -> pa.RecordBatch:
    """Put the cluster of one source into the fleet at ``root``; one row of INGESTED. Raises OSError if
    the fleet cannot be written.

    ``mode``, ``controllers`` and ``rack_map`` apply to a source that does not show them. An entry of the map for a
    cluster that contradicts its source rejects the source. A rejected source has only quarantine rows; the cluster of
    an earlier ingest is removed.
    """
    racks = {} if rack_map is None else rack_map.of(source.cluster)
    try:
        inputs = inputs_of(source.path)
    except SnapshotError as unreadable:
        return _put(source, root, {}, None, quarantine_rows(source, FaultNotes(), unreadable))
    previous = None if force else record_of(root, source.cluster)
    stated = inputs, source.path, mode, controllers, racks
    if previous is not None and stated == (
        previous.inputs,
        previous.source,
        previous.stated_mode,
        previous.stated_controllers,
        previous.stated_racks,
    ):
        return _row(previous, "unchanged")
    snapshot, quarantine = read_tolerantly(source)
    if snapshot is not None:
        snapshot = _as_stated(snapshot, mode, controllers)
        try:
            snapshot = snapshot if rack_map is None else rack_map.complete(snapshot, source.cluster)
        except InputError as fault:
            rejected = SnapshotError(fault.where, fault.actual, fault.expected)
            snapshot, quarantine = None, quarantine_rows(source, FaultNotes(), rejected)
    return _put(source, root, inputs, snapshot, quarantine, mode, controllers, racks)


def _as_stated(snapshot: Snapshot, mode: Mode | None, controllers: tuple[int, ...]) -> Snapshot:
    """The snapshot in this mode and with these instances, unless it shows something else."""
    if mode is not None:
        with suppress(InputError):
            snapshot = snapshot.with_mode(mode)
    for controller_id in controllers:
        with suppress(InputError):
            snapshot = snapshot.with_controllers([controller_id])
    return snapshot


def _put(
    source: SnapshotSource,
    root: Path,
    inputs: dict[str, FileEntry],
    snapshot: Snapshot | None,
    quarantine: pa.Table,
    stated_mode: Mode | None = None,
    stated_controllers: tuple[int, ...] = (),
    stated_racks: Mapping[int, str] | None = None,
) -> pa.RecordBatch:
    """Put what was read of a source into the fleet. One row of INGESTED."""
    tables: dict[FleetTable, Iterable[pa.RecordBatch]] = {QUARANTINE: quarantine.to_batches()}
    if snapshot is not None:
        tables |= {table: rows_of(snapshot, source.cluster, table) for table in (PARTITIONS, BROKERS, TOPICS, CLUSTERS)}
    outputs = put_cluster(root, source.cluster, tables)
    record = ClusterRecord(
        cluster=source.cluster,
        source=source.path,
        inputs=inputs,
        outputs=outputs,
        quarantined=quarantine.num_rows,
        rejected=_reason(quarantine) if snapshot is None else None,
        partitions=0 if snapshot is None else len(snapshot),
        topics=0 if snapshot is None else len(snapshot.topics),
        brokers=0 if snapshot is None else len(snapshot.brokers),
        stated_mode=stated_mode,
        stated_controllers=stated_controllers,
        stated_racks=dict(stated_racks or {}),
        mode="zookeeper" if snapshot is None else snapshot.mode,
    )
    finish(root, record)
    return _row(record, "ingested" if snapshot is not None else "rejected")


def ingest(
    spark: SparkSession,
    sources: Sequence[SnapshotSource],
    root: str,
    *,
    force: bool = False,
    mode: Mode | None = None,
    controllers: tuple[int, ...] = (),
    rack_map: FleetRackMap | None = None,
) -> DataFrame:
    """Put the clusters of all sources (``find_sources``) into the fleet at ``root``. Rows of INGESTED.

    ``mode``, ``controllers`` and ``rack_map`` apply to the sources that do not show them. The work is done when the
    rows are read; when they are read again, they say ``unchanged``. Raises InputError if something else is at ``root``.
    """
    absolute = Path(root).absolute()  # executors work elsewhere
    check_fleet_root(absolute)

    def work(inputs: Iterator[SnapshotSource]) -> Iterator[pa.RecordBatch]:
        for source in inputs:
            yield ingest_source(source, absolute, force=force, mode=mode, controllers=controllers, rack_map=rack_map)

    return map_inputs(spark, tuple(sources), work, INGESTED.ddl)


def _reason(quarantine: pa.Table) -> str:
    (row,) = quarantine.to_pylist()
    return f"{row['location']}: found {row['actual']}, expected {row['expected']}"


def _row(record: ClusterRecord, status: str) -> pa.RecordBatch:
    row: dict[str, Any] = {name: getattr(record, name, None) for name in INGESTED.schema.names}
    mode = None if record.rejected is not None else record.mode
    return pa.RecordBatch.from_pylist(
        [{**row, "status": status, "reason": record.rejected, "mode": mode}], INGESTED.schema
    )
