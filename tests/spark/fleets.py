"""Small fleets on disk, which tests modify."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

from kframe.snapshot import Snapshot, write_snapshot
from kframe.snapshot.directory import ROW_GROUP_ROWS
from tests.snapshot.samples import DESCRIBE, dump, dump_text, kcat, state

#: Malformed JSON in the data of one state. It invalidates topic ``t`` of the dump, but not ``u``.
BROKEN_STATE = {**state("t", 1, 2, [2, 3]), "data": '{"leader": 2, "isr": [2,'}
U_ASSIGNED = {"path": "/brokers/topics/u", "data": '{"partitions": {"0": [1, 2]}}', "version": 0, "czxid": 1}
U_STATE = state("u", 0, 1, [1, 2])


def two_topics(*changed: dict[str, Any]) -> str:
    """Return a dump of topics ``t`` (two partitions) and ``u`` (one), with changed znodes."""
    return dump_text(dump(U_ASSIGNED, U_STATE, *changed))


def mixed(path: Path) -> Path:
    """Write a fleet of a dump, a gzipped dump, a listing and a kcat output: clusters east, west, north and south."""
    path.mkdir()
    (path / "east.zookeeper.jsonl").write_text(two_topics())
    (path / "west.jsonl.gz").write_bytes(gzip.compress(dump_text(dump()).encode()))
    (path / "north.topics-describe.txt").write_text(DESCRIBE)
    (path / "south.kcat.json").write_text(json.dumps(kcat()))
    return path


def snapshot_directory(path: Path, snapshot: Snapshot, row_group_rows: int = ROW_GROUP_ROWS) -> Path:
    """Write a snapshot directory, optionally with another row group size."""
    write_snapshot(snapshot, path)
    if row_group_rows != ROW_GROUP_ROWS:
        from pyarrow import parquet

        file = path / "partitions.parquet"
        parquet.write_table(parquet.read_table(file), file, row_group_size=row_group_rows, store_schema=False)
        resign(path)
    return path


def resign(path: Path) -> None:
    """Update the manifest of a directory to match its files."""
    from kframe.snapshot.manifest import file_entry

    manifest = json.loads((path / "manifest.json").read_text())
    for name in manifest["files"]:
        entry = file_entry(path / name)
        manifest["files"][name] = {"bytes": entry.bytes, "sha256": entry.sha256}
    (path / "manifest.json").write_text(json.dumps(manifest))


def written_files(folder: Path) -> set[tuple[Path, int]]:
    """Return the Parquet files below a folder with their times. A file that is written again has another time."""
    return {(path, path.stat().st_mtime_ns) for path in folder.rglob("*.parquet")}
