"""Reading and writing snapshots: each format that kframe reads, from the same cluster."""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from pathlib import Path
from tempfile import mkdtemp
from weakref import finalize

from kframe.bench.clusters import whole_snapshot
from kframe.bench.texts import TEXTS, topics_of
from kframe.bench.workload import Action, FunctionWorkload
from kframe.snapshot import Snapshot, read_snapshot, write_snapshot


@dataclass(frozen=True, slots=True, weakref_slot=True, eq=False)
class SavedSnapshot:
    """A snapshot and its file. The file is deleted with the last reference to this object."""

    path: Path
    snapshot: Snapshot


def loading(source_format: str) -> FunctionWorkload:
    """Read and check a file of a format."""
    return FunctionWorkload(
        lambda partitions, brokers: _save_snapshot(source_format, partitions, brokers),
        lambda saved: lambda: read_snapshot(saved.path, source_format),
        _answer,
        lambda snapshot: {"brokers_read": len(snapshot.brokers), "partitions_read": len(snapshot)},
    )


def saving() -> FunctionWorkload:
    """Write a snapshot directory over an earlier one."""
    return FunctionWorkload(
        lambda partitions, brokers: _save_snapshot("kframe", partitions, brokers),
        _save,
        _answer_of_saved,
        lambda path: {"bytes_written": sum(file.stat().st_size for file in path.iterdir())},
    )


def _save_snapshot(source_format: str, partitions: int, brokers: int) -> SavedSnapshot:
    folder = Path(mkdtemp(prefix="kframe-bench-"))
    saved = SavedSnapshot(folder / "cluster", whole_snapshot(partitions, brokers))
    finalize(saved, shutil.rmtree, folder, ignore_errors=True)
    if source_format == "kframe":
        write_snapshot(saved.snapshot, saved.path)
    else:
        with saved.path.open("w", encoding="utf-8") as file:
            file.writelines(TEXTS[source_format](topics_of(saved.snapshot), range(brokers), {}))
    return saved


def _save(saved: SavedSnapshot) -> Action:
    def save() -> Path:
        write_snapshot(saved.snapshot, saved.path, force=True)
        return saved.path

    return save


def _answer(snapshot: Snapshot) -> str:
    return snapshot.digest()[:16]


def _answer_of_saved(path: Path) -> str:
    """The digest of the content. Versions of Arrow write different bytes."""
    return _answer(read_snapshot(path))
