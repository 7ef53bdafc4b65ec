"""Read rows of a fleet's tables from its source files, in pieces that tasks share.

A piece is a file or, for the partitions of a snapshot directory, a range of its Parquet row groups.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import pyarrow as pa
from pyarrow import parquet

from kframe.errors import SnapshotError
from kframe.snapshot import Snapshot, read_snapshot
from kframe.snapshot.directory import read_row_groups
from kframe.snapshot.faults import FaultNotes
from kframe.snapshot.manifest import file_of
from kframe.spark.pushdown import Condition, cluster_may_match, filter_batch, groups_to_read
from kframe.spark.rows import partition_rows, rows_of
from kframe.spark.schema import PARTITIONS, QUARANTINE, FleetTable
from kframe.spark.sources import SnapshotSource

#: Row groups of a piece: half a million partitions of a directory that kframe wrote.
GROUPS_OF_PIECE: Final = 4


@dataclass(frozen=True, slots=True)
class Piece:
    """What one task reads: a source, or the given row groups of its partitions."""

    source: SnapshotSource
    groups: tuple[int, ...] | None = None


@dataclass(frozen=True, slots=True)
class ReadRequest:
    """The requested rows. ``tolerant``: faults are skipped, because the quarantine table has them."""

    table: FleetTable
    conditions: tuple[Condition, ...] = ()
    tolerant: bool = False


def pieces(
    sources: Iterable[SnapshotSource], request: ReadRequest, groups_of_piece: int = GROUPS_OF_PIECE
) -> list[Piece]:
    """The pieces to read; finds them by the footers of Parquet files only.

    A tolerant read takes a snapshot directory as one piece: a fault in one row group may affect a topic of the next.
    """
    result: list[Piece] = []
    for source in sources:
        if not cluster_may_match(request.conditions, source.cluster):
            continue
        groups = None
        if request.table == PARTITIONS and not request.tolerant and source.is_directory:
            groups = _groups(source, request.conditions)
        if groups is None:
            result.append(Piece(source))
        else:
            starts = range(0, len(groups), groups_of_piece)
            result += [Piece(source, tuple(groups[start : start + groups_of_piece])) for start in starts]
    return result


def read_piece(piece: Piece, request: ReadRequest) -> Iterator[pa.RecordBatch]:
    """The requested rows. Raises SnapshotError, which names file and reason, unless tolerant."""
    for batch in _batches(piece, request):
        rows = filter_batch(batch, request.conditions)
        if rows.num_rows:
            yield rows


def read_tolerantly(source: SnapshotSource) -> tuple[Snapshot | None, pa.Table]:
    """The valid part of a source, None if it is rejected, and the faults as rows of QUARANTINE."""
    notes = FaultNotes()
    try:
        snapshot = read_snapshot(source.path, faults=notes)
    except SnapshotError as fault:
        return None, quarantine_rows(source, FaultNotes(), fault)
    return snapshot, quarantine_rows(source, notes)


def quarantine_rows(source: SnapshotSource, notes: FaultNotes, rejected: SnapshotError | None = None) -> pa.Table:
    """Rows of QUARANTINE. ``rejected`` is why nothing of the source was ingested."""
    counted: set[str] = set()
    rows = []
    for noted in notes.noted:
        first = noted.topic is not None and noted.topic not in counted
        partitions = notes.partitions.get(noted.topic or "", 0) if first else noted.partitions
        counted |= {noted.topic} if noted.topic is not None else set()
        rows.append(_row(source, noted.fault, noted.topic, partitions))
    if rejected is not None:
        rows.append(_row(source, rejected, None, None))
    return pa.Table.from_pylist(rows, QUARANTINE.schema)


def _row(source: SnapshotSource, fault: SnapshotError, topic: str | None, partitions: int | None) -> dict[str, object]:
    return {
        "cluster": source.cluster,
        "source": source.path,
        "location": fault.where,
        "actual": fault.actual,
        "expected": fault.expected,
        "topic": topic,
        "partitions": partitions,
    }


def _batches(piece: Piece, request: ReadRequest) -> Iterator[pa.RecordBatch]:
    source = piece.source
    if piece.groups is not None:
        part = read_row_groups(Path(source.path), piece.groups)
        yield from partition_rows(source.cluster, part.topics, part.partitions, part.positions)
    elif request.table == QUARANTINE:
        yield from read_tolerantly(source)[1].to_batches()
    else:
        snapshot = read_tolerantly(source)[0] if request.tolerant else read_snapshot(source.path)
        if snapshot is None:
            return
        yield from rows_of(snapshot, source.cluster, request.table)


def _groups(source: SnapshotSource, conditions: Sequence[Condition]) -> list[int] | None:
    """Row groups worth reading. None where the file cannot say, and the reader will say why."""
    try:
        metadata = parquet.read_metadata(os.path.join(source.path, file_of("partitions")))
        return groups_to_read(metadata, [condition for condition in conditions if condition.column != "cluster"])
    except (pa.ArrowException, OSError):
        return None
