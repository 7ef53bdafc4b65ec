"""Snapshots read and written: each format that kframe reads, made from the same cluster."""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from pathlib import Path
from tempfile import mkdtemp
from weakref import finalize

from kframe.bench.clusters import whole_snapshot
from kframe.bench.texts import TEXTS
from kframe.bench.work import PieceWork, Timed
from kframe.snapshot import Snapshot, read_snapshot, write_snapshot


@dataclass(frozen=True, slots=True, weakref_slot=True, eq=False)
class Kept:
    """A snapshot, and where it stands in some format for as long as this is held."""

    path: Path
    snapshot: Snapshot


def loading(source_format: str) -> PieceWork:
    """A file of a format is read and checked."""
    return PieceWork(
        lambda partitions, brokers: _kept(source_format, partitions, brokers),
        lambda kept: lambda: read_snapshot(kept.path, source_format),
        _answer,
        lambda snapshot: {"brokers_read": len(snapshot.brokers), "partitions_read": len(snapshot)},
    )


def saving() -> PieceWork:
    """A snapshot directory is written over an earlier one."""
    return PieceWork(
        lambda partitions, brokers: _kept("kframe", partitions, brokers), _save, _answer_of_saved,
        lambda path: {"bytes_written": sum(file.stat().st_size for file in path.iterdir())},
    )  # fmt: skip


def _kept(source_format: str, partitions: int, brokers: int) -> Kept:
    folder = Path(mkdtemp(prefix="kframe-bench-"))
    kept = Kept(folder / "cluster", whole_snapshot(partitions, brokers))
    finalize(kept, shutil.rmtree, folder, ignore_errors=True)
    if source_format == "kframe":
        write_snapshot(kept.snapshot, kept.path)
    else:
        with kept.path.open("w", encoding="utf-8") as file:
            file.writelines(TEXTS[source_format](kept.snapshot))
    return kept


def _save(kept: Kept) -> Timed:
    def save() -> Path:
        write_snapshot(kept.snapshot, kept.path, force=True)
        return kept.path

    return save


def _answer(snapshot: Snapshot) -> str:
    return snapshot.digest()[:16]


def _answer_of_saved(path: Path) -> str:
    """Of the facts, not of the files: other versions of Arrow write other bytes."""
    return _answer(read_snapshot(path))
