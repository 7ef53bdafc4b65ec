"""kframe's own snapshot: a directory of a manifest and three Parquet tables.

Writing is atomic: the files are written to a temporary directory that is then renamed. Equal snapshots have equal
manifests, except for bytes that depend on the version of the Parquet library.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Final, Literal

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from kframe.errors import EXISTS, SnapshotError
from kframe.ports.progress import Progress, ignore_progress
from kframe.snapshot.checks import check_brokers_listed, check_snapshot, partition_faults
from kframe.snapshot.controllers import check_controllers
from kframe.snapshot.facts import PartitionFacts, TopicFacts
from kframe.snapshot.faults import REFUSE, Faults
from kframe.snapshot.kraft_tables import kraft_facts, kraft_manifest, read_registrations
from kframe.snapshot.manifest import (
    MANIFEST_FILE,
    RECORDS,
    SCHEMA,
    TABLES,
    KraftManifest,
    Manifest,
    file_entry,
    file_of,
    manifest_bytes,
    read_manifest,
)
from kframe.snapshot.parquet import TableFile, read_brokers, read_directories, read_partitions, read_topics
from kframe.snapshot.replacement import rename_into, temporary_sibling
from kframe.snapshot.snapshot import Snapshot
from kframe.snapshot.tables import (
    arrow,
    brokers_table,
    kraft_brokers_table,
    partitions_table,
    records_table,
    topics_table,
)

ROW_GROUP_ROWS: Final = 131_072
#: A bound on endpoints and configs together, which the manifest does not count.
_SMALL_ENTRIES_MAX: Final = 1 << 24
_OWN_FILES: Final = frozenset({MANIFEST_FILE, *(file_of(table) for table in (*TABLES, RECORDS))})


def read_directory(path: Path, progress: Progress = ignore_progress, faults: Faults = REFUSE) -> Snapshot:
    """Read and check a snapshot directory. Raises SnapshotError, always for files that do not match the manifest."""
    manifest = read_manifest(path)
    unknown = frozenset(manifest.unknown)
    files = {table: _table_file(path, table, manifest) for table in manifest.tables}
    topics = read_topics(files["topics"])
    brokers, partitions = read_brokers(files["brokers"]), read_partitions(files["partitions"], topics)
    if manifest.kraft is not None:
        brokers = read_registrations(files["brokers"], brokers)
        partitions = _with_directories(partitions, files["partitions"], manifest.kraft)
    snapshot = Snapshot(
        brokers,
        topics,
        partitions,
        manifest.source,
        manifest.cluster_id,
        manifest.controller_id,
        manifest.controller_epoch,
        manifest.broker_default_configs,
        manifest.provenance,
        manifest.capture,
        None if manifest.kraft is None else kraft_facts(manifest.kraft, files[RECORDS]),
        manifest.controllers,
    )

    def locate(kind: Literal["topic", "row"], index: int, column: str) -> str:
        table, name = ("topics", topics.names[index]) if kind == "topic" else ("partitions", topics.name_of_row(index))
        return f"{path / file_of(table)} row {index} ({name}) field {column}"

    checked = check_snapshot(snapshot, locate, faults)
    check_controllers(checked, f"{path / MANIFEST_FILE} field controllers")
    check_brokers_listed(checked, str(path / file_of("partitions")))
    if sorted(snapshot.unknown) != sorted(unknown):
        raise SnapshotError(f"{path / MANIFEST_FILE} field unknown", str(manifest.unknown), str(list(snapshot.unknown)))
    arrow().default_memory_pool().release_unused()
    progress(len(snapshot), len(snapshot))
    return checked


class SnapshotRowGroups(Struct, frozen=True, eq=False):
    """All topics of a snapshot directory. Its partitions are those at ``positions`` (ascending)."""

    topics: TopicFacts
    partitions: PartitionFacts
    positions: NDArray[np.int64]


def read_row_groups(path: Path, groups: Sequence[int]) -> SnapshotRowGroups:
    """Read and check the partitions of these row groups (ascending) of a snapshot directory.

    All its files must match the hashes in the manifest. Raises SnapshotError.
    """
    manifest = read_manifest(path)
    topics = read_topics(_table_file(path, "topics", manifest))
    file = _table_file(path, "partitions", manifest, groups)
    partitions = read_partitions(file, topics)
    if manifest.kraft is not None:
        partitions = _with_directories(partitions, file, manifest.kraft)
    for fault in partition_faults(partitions):
        index = int(fault.rows[0])
        row = int(file.positions[index])
        where = f"{file.path} row {row} ({topics.name_of_row(row)}) field {fault.column}"
        raise SnapshotError(where, fault.actual(index), fault.expected(index))
    return SnapshotRowGroups(topics, partitions, file.positions)


def _with_directories(partitions: PartitionFacts, file: TableFile, kraft: KraftManifest) -> PartitionFacts:
    directories = read_directories(file, partitions.replicas, len(kraft.directory_ids))
    return replace(partitions, directories=directories)


def _table_file(path: Path, table: str, manifest: Manifest, groups: Sequence[int] | None = None) -> TableFile:
    entries = manifest.counts["replicas"] if table == "partitions" else _SMALL_ENTRIES_MAX
    return TableFile(
        path / file_of(table),
        table,
        manifest.counts[table],
        entries,
        manifest.null_columns,
        groups,
        kraft=manifest.kraft is not None,
    )


def write_snapshot(
    snapshot: Snapshot, path: Path, *, force: bool = False, progress: Progress = ignore_progress
) -> None:
    """Write a snapshot to a directory that does not exist yet; ``force`` replaces a snapshot (nothing else).

    Raises SnapshotError, and changes nothing, if the path exists or cannot be written.
    """
    try:
        _check_target(path, force)
        with temporary_sibling(path) as building:
            _write_files(snapshot, building, progress)
            rename_into(building, path)
    except OSError as problem:
        raise SnapshotError(str(path), problem.strerror or str(problem), "a writable path") from problem


def _write_files(snapshot: Snapshot, directory: Path, progress: Progress) -> None:
    kraft = snapshot.kraft
    tables = {
        "partitions": partitions_table(snapshot.topics, snapshot.partitions, kraft=kraft is not None),
        "brokers": (brokers_table if kraft is None else kraft_brokers_table)(snapshot.brokers),
        "topics": topics_table(snapshot.topics),
    }
    if kraft is not None:
        tables[RECORDS] = records_table(kraft.records or ())
    from pyarrow import parquet

    for name, table in tables.items():
        with parquet.ParquetWriter(
            directory / file_of(name), table.schema, compression="zstd", store_schema=False
        ) as writer:
            for first in range(0, table.num_rows, ROW_GROUP_ROWS):
                writer.write_table(table.slice(first, ROW_GROUP_ROWS))
                progress(min(first + ROW_GROUP_ROWS, table.num_rows), table.num_rows)
    manifest = Manifest(
        schema=SCHEMA,
        source=snapshot.source,
        counts={
            **{name: table.num_rows for name, table in tables.items()},
            "replicas": len(snapshot.partitions.replicas.values),
        },
        files={file_of(table): file_entry(directory / file_of(table)) for table in tables},
        unknown=list(snapshot.unknown),
        mode=snapshot.mode,
        provenance=dict(snapshot.provenance),
        cluster_id=snapshot.cluster_id,
        controller_id=snapshot.controller_id,
        controller_epoch=snapshot.controller_epoch,
        broker_default_configs=None
        if snapshot.broker_default_configs is None
        else dict(snapshot.broker_default_configs),
        capture=snapshot.capture,
        kraft=None if kraft is None else kraft_manifest(kraft),
        controllers=snapshot.controllers,
    )
    (directory / MANIFEST_FILE).write_bytes(manifest_bytes(manifest))


def _check_target(path: Path, force: bool) -> None:
    if path.is_symlink():
        raise SnapshotError(str(path), "a symbolic link", "a new directory")
    if not path.exists():
        if not path.parent.is_dir():
            raise SnapshotError(str(path.parent), "no such directory", "one to write the snapshot in")
        return
    if not force:
        raise SnapshotError(str(path), EXISTS, "--force to replace a snapshot")
    if not path.is_dir() or not _is_snapshot_or_empty(path):
        raise SnapshotError(str(path), "something that is not a snapshot", "a snapshot, or an empty directory")


def _is_snapshot_or_empty(path: Path) -> bool:
    names = {entry.name for entry in path.iterdir()}
    return names <= _OWN_FILES and (not names or MANIFEST_FILE in names)
