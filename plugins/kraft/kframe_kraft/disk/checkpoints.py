"""Snapshots of the metadata log (Kafka ``RecordsSnapshotWriter``): header, data batches, footer.

A file without footer is torn. Offsets within a snapshot count from 0 and say nothing about the log.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Self

import numpy as np

from kframe.plugin.columns import Int64, UInt8
from kframe.plugin.kraft import RecordAndVersion, control
from kframe_kraft.batches import BatchPosition, RecordBatch, encode_control_batch, encode_values, join_values
from kframe_kraft.disk.atomic import sync_directory
from kframe_kraft.disk.batch_files import BatchFile
from kframe_kraft.disk.names import SnapshotId
from kframe_kraft.errors import LogError

#: Bytes of values in a batch of a written snapshot; with the records' headers, a batch stays below the limit.
_VALUES_MAX: Final = 4 * 1024 * 1024
_RECORDS_MAX: Final = 100_000


@dataclass(frozen=True, slots=True, eq=False)
class Checkpoint:
    """A complete snapshot. ``timestamp`` is that of the last record of the log that it contains, in milliseconds.

    ``voters`` is None unless the snapshot has a VotersRecord; ``kraft_version`` is then at least 1. ``batches`` are the
    data batches, which may be read from the file in each iteration. ``epoch`` is that of the last one, 0 without any.
    """

    timestamp: int
    kraft_version: int
    voters: control.VotersRecord | None
    batches: Iterable[RecordBatch]
    epoch: int = 0

    def records(self) -> list[RecordAndVersion]:
        """All data records. Raises RecordError for the first malformed one."""
        return [record for batch in self.batches for record in batch.records()]


def read_checkpoint(path: Path) -> Checkpoint:
    """Return a snapshot. Raises LogError if it is torn or malformed, FileNotFoundError if it does not exist."""
    return checkpoint_of(BatchFile(path))


def checkpoint_of(file: BatchFile) -> Checkpoint:
    """Return the snapshot in a file. All batches are checked. Raises LogError if it is torn or malformed."""
    name, controls, epoch = file.name, list[control.ControlRecord](), 0
    first = last = None
    for batch in file.batches():
        first, last = first or batch.header, batch.header
        if batch.header.is_control:
            controls += batch.control_records()
        else:
            epoch = batch.header.leader_epoch
    if not controls or not isinstance(controls[0], control.SnapshotHeaderRecord) or not first or not first.is_control:
        raise LogError(name, "no header", "a snapshot that begins with a header")
    if not isinstance(controls[-1], control.SnapshotFooterRecord) or not last or not last.is_control:
        raise LogError(name, "no footer: the file is torn", "a snapshot that ends with a footer")
    kinds = [type(record) for record in controls]
    if kinds.count(control.SnapshotHeaderRecord) != 1 or kinds.count(control.SnapshotFooterRecord) != 1:
        raise LogError(name, "several headers or footers", "one of each")
    levels = [record.k_raft_version for record in controls if isinstance(record, control.KRaftVersionRecord)]
    voters = [record for record in controls if isinstance(record, control.VotersRecord)]
    timestamp = controls[0].last_contained_log_timestamp
    return Checkpoint(timestamp, levels[-1] if levels else 0, voters[-1] if voters else None, _DataBatches(file), epoch)


class _DataBatches:
    """The data batches of a snapshot, which are read anew in each iteration."""

    def __init__(self, file: BatchFile) -> None:
        self._file = file

    def __iter__(self) -> Iterator[RecordBatch]:
        return (batch for batch in self._file.batches() if not batch.header.is_control)


class CheckpointWriter:
    """Writes a snapshot: a temporary file, which ``finish`` syncs, makes read-only and renames.

    ``timestamp`` is that of the last record of the log in it, ``now`` that of the batches, both in milliseconds. As a
    context manager it removes the temporary file unless ``finish`` was called.
    """

    def __init__(
        self,
        path: Path,
        snapshot_id: SnapshotId,
        *,
        timestamp: int,
        now: int,
        kraft_version: int = 0,
        voters: control.VotersRecord | None = None,
    ) -> None:
        if voters is not None and kraft_version < 1:
            raise LogError(path.name, "voters with kraft.version 0", "kraft.version 1")
        self._path, self._epoch, self._now, self._offset = path, snapshot_id.epoch, now, 0
        self._temporary = path.with_name(path.name + ".part")
        self._file = self._temporary.open("wb")
        records: list[control.ControlRecord] = [control.SnapshotHeaderRecord(last_contained_log_timestamp=timestamp)]
        if kraft_version:
            records.append(control.KRaftVersionRecord(k_raft_version=kraft_version))
        if voters is not None:
            records.append(voters)
        self._append_control(records)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()
        self._temporary.unlink(missing_ok=True)

    def add_records(self, versioned: Sequence[RecordAndVersion]) -> None:
        """Append records. Raises RecordError if a version cannot carry its content."""
        self.add_values(*join_values(versioned))

    def add_values(self, values: UInt8, value_start: Int64) -> None:
        """Append encoded records ``values[value_start[i]:value_start[i + 1]]``, in as many batches as needed."""
        first, count = 0, len(value_start) - 1
        while first < count:
            last = int(np.searchsorted(value_start, value_start[first] + _VALUES_MAX, side="right")) - 1
            last = max(min(last, first + _RECORDS_MAX), first + 1)
            begin, end = int(value_start[first]), int(value_start[last])
            position = BatchPosition(self._offset, self._epoch, self._now)
            self._file.write(encode_values(values[begin:end], value_start[first : last + 1] - begin, position))
            self._offset += last - first
            first = last

    def finish(self) -> Path:
        """Write the footer and give the file its name. Returns the path; the snapshot is durable."""
        self._append_control([control.SnapshotFooterRecord()])
        self._file.flush()
        os.fchmod(self._file.fileno(), 0o444)
        os.fsync(self._file.fileno())
        self._file.close()
        self._temporary.replace(self._path)
        sync_directory(self._path.parent)
        return self._path

    def _append_control(self, records: Sequence[control.ControlRecord]) -> None:
        self._file.write(encode_control_batch(records, BatchPosition(self._offset, self._epoch, self._now)))
        self._offset += len(records)
