"""Write rows of partitions as snapshot directories, one for each cluster, that every other command of kframe reads.

Tasks write their rows by cluster beside the target. The commit builds the directories there and then renames all of
them. A failure leaves nothing behind.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from kframe.errors import EXISTS, InputError
from kframe.snapshot import write_snapshot
from kframe.snapshot.manifest import MANIFEST_FILE
from kframe.spark.fleet import read_part
from kframe.spark.inputs import ClusterRows
from kframe.spark.schema import BROKERS, CLUSTERS, PARTITIONS, TOPICS
from kframe.spark.sources import check_cluster_name


@dataclass(frozen=True, slots=True)
class OutputTarget:
    """The target of the directories, whether they may replace others, and the fleet that describes brokers and topics.

    ``staged`` is a path on the same file system that no other process uses.
    """

    path: str
    staged: str
    overwrite: bool
    fleet: str | None = None


def stage(target: OutputTarget, task: str, batches: Iterable[pa.RecordBatch]) -> None:
    """Stage rows of PARTITIONS by cluster under the task's name. Columns may be in any order, and their names in any
    case.

    Raises InputError for a null cluster.
    """
    directory = Path(target.staged) / "rows"
    writers: dict[str, Any] = {}
    try:
        for batch in map(_in_order, batches):
            for cluster in pc.unique(batch["cluster"]).to_pylist():
                if cluster not in writers:
                    check_cluster_name(cluster or "", "column cluster")
                    (directory / cluster).mkdir(parents=True, exist_ok=True)
                    writers[cluster] = pa.ipc.new_file(str(directory / cluster / f"{task}.arrow"), PARTITIONS.schema)
                rows_of_cluster = batch.filter(pc.equal(batch["cluster"], cluster))
                writers[cluster].write_batch(rows_of_cluster)
    finally:
        for writer in writers.values():
            writer.close()


def _in_order(batch: pa.RecordBatch) -> pa.RecordBatch:
    """A batch of the table's columns in the table's order and types."""
    return (
        batch.rename_columns([name.lower() for name in batch.schema.names])
        .select(PARTITIONS.schema.names)
        .cast(PARTITIONS.schema)
    )


def commit(target: OutputTarget, tasks: Iterable[str]) -> None:
    """Make a directory of each cluster, and move all into place. Holds one cluster at a time.

    Rows of other tasks than ``tasks`` are of failed attempts and are ignored. Raises InputError if a cluster is
    incomplete or its target exists; then nothing has changed.
    """
    task_names = frozenset(tasks)
    try:
        committed = [_make(target, rows, task_names) for rows in sorted((Path(target.staged) / "rows").glob("*"))]
        names = [name for name in committed if name is not None]
        for name in names:
            _check_target(target, name)
        _move(target, names)
    finally:
        discard(target)


def discard(target: OutputTarget) -> None:
    """Delete the staged files."""
    shutil.rmtree(target.staged, ignore_errors=True)


def _make(target: OutputTarget, rows: Path, tasks: frozenset[str]) -> str | None:
    """Write the directory of one cluster. Return its name, or None if all its rows are of other tasks.

    A fleet on disk supplies further facts, otherwise the partitions do. Raises SnapshotError if the partitions are not
    whole or contradict themselves, or the fleet does not know the cluster.
    """
    files = [file for file in sorted(rows.iterdir()) if file.stem in tasks]
    if not files:
        return None
    tables = [pa.ipc.open_file(pa.memory_map(str(file))).read_all() for file in files]
    snapshot_path = Path(target.staged) / "made" / rows.name
    snapshot_path.parent.mkdir(exist_ok=True)
    contents = {PARTITIONS.name: pa.concat_tables(tables)}
    if target.fleet is not None:
        contents |= {
            table.name: read_part(Path(target.fleet), table, rows.name) for table in (CLUSTERS, BROKERS, TOPICS)
        }
    write_snapshot(ClusterRows(rows.name, contents).snapshot(), snapshot_path)
    return rows.name


def _check_target(target: OutputTarget, name: str) -> None:
    path = Path(target.path) / name
    if path.exists() and not target.overwrite:
        raise InputError(str(path), EXISTS, "mode overwrite to replace a snapshot")
    if path.exists() and not (path / MANIFEST_FILE).is_file():
        raise InputError(str(path), "something that is no snapshot", "a snapshot to replace, or nothing")


def _move(target: OutputTarget, names: Iterable[str]) -> None:
    """Rename all into place. If one rename fails, the earlier ones are undone."""
    renamed: list[tuple[Path, Path]] = []
    replaced = Path(target.staged) / "old"
    replaced.mkdir(parents=True, exist_ok=True)
    try:
        os.makedirs(target.path, exist_ok=True)
        for source, target_path in _renames(target, names, replaced):
            source.rename(target_path)
            renamed.append((source, target_path))
    except OSError:
        for source, target_path in reversed(renamed):
            target_path.rename(source)
        raise


def _renames(target: OutputTarget, names: Iterable[str], replaced: Path) -> Iterator[tuple[Path, Path]]:
    for name in names:
        target_path = Path(target.path) / name
        if target_path.exists():
            yield target_path, replaced / name
        yield Path(target.staged) / "made" / name, target_path
