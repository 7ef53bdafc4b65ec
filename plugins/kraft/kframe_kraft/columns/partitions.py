"""Partition and PartitionChange records of a batch as columns: the kernels' arrays with names.

A record is a row. Fixed fields are arrays with an element a row; replicas and the like are lists (``Ragged``) with a
mask of the rows that have them, because an absent list and an empty one differ in a change.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any, Final
from uuid import UUID

import numpy as np
from numpy.typing import NDArray

from kframe.plugin.columns import Bool, Int32, Int64, Ragged, UInt8, offsets_of
from kframe.plugin.kraft import ClusterMetadata, records
from kframe_kraft.batches.reading import Frames, RecordBytes
from kframe_kraft.errors import RecordError
from kframe_kraft.kernels._partition_records import (
    copy_directories,
    copy_ids,
    parse_changes,
    parse_partitions,
    write_changes,
    write_partitions,
)
from kframe_kraft.records import decode_record

#: The types of the records in a frame.
PARTITION: Final = 3
PARTITION_CHANGE: Final = 5
#: The lists in the kernels' order, without directories, which are last.
ID_LISTS: Final = (
    "replicas",
    "isr",
    "removing_replicas",
    "adding_replicas",
    "eligible_leader_replicas",
    "last_known_elr",
)
_DIRECTORIES: Final = len(ID_LISTS)
#: More than the bytes of a record's frame, fixed fields, tags and list lengths.
_FIXED_BYTES_MAX: Final = 160


@dataclass(frozen=True, slots=True, eq=False)
class IdLists:
    """Broker ids of each row. A row without ``present`` has an empty list."""

    lists: Ragged
    present: Bool

    def section(self, first: int, last: int) -> IdLists:
        """The rows from ``first`` to before ``last``."""
        return IdLists(self.lists.part(first, last), self.present[first:last])


@dataclass(frozen=True, slots=True, eq=False)
class DirectoryLists:
    """Directory ids of each row as 16 bytes: list ``i`` is ``values[offsets[i]:offsets[i + 1]]``, shape (k, 16)."""

    offsets: Int32
    values: UInt8
    present: Bool

    def section(self, first: int, last: int) -> DirectoryLists:
        """The rows from ``first`` to before ``last``."""
        offsets = self.offsets[first : last + 1]
        return DirectoryLists(offsets - offsets[0], self.values[offsets[0] : offsets[-1]], self.present[first:last])


@dataclass(frozen=True, slots=True, eq=False)
class PartitionColumns:
    """Rows of PartitionRecord, or of PartitionChangeRecord where the epochs are None.

    ``topic_id`` has shape (n, 16). In a change, ``leader`` -2 and ``leader_recovery_state`` -1 keep the value, as does
    an absent list. ``ids`` has the lists of ID_LISTS.
    """

    partition_id: Int32
    topic_id: UInt8
    leader: Int32
    leader_recovery_state: NDArray[np.int8]
    leader_epoch: Int32 | None
    partition_epoch: Int32 | None
    ids: dict[str, IdLists]
    directories: DirectoryLists

    def __len__(self) -> int:
        return len(self.partition_id)

    def section(self, first: int, last: int) -> PartitionColumns:
        """The rows from ``first`` to before ``last``."""
        rows = slice(first, last)
        return PartitionColumns(
            self.partition_id[rows],
            self.topic_id[rows],
            self.leader[rows],
            self.leader_recovery_state[rows],
            None if self.leader_epoch is None else self.leader_epoch[rows],
            None if self.partition_epoch is None else self.partition_epoch[rows],
            {name: lists.section(first, last) for name, lists in self.ids.items()},
            self.directories.section(first, last),
        )


def decode_rows(batch: RecordBytes, frames: Frames, rows: NDArray[Any]) -> PartitionColumns:
    """Return the records numbered ``rows``: all of type PARTITION, or all of type PARTITION_CHANGE.

    Raises RecordError for the first malformed one.
    """
    count = len(rows)
    is_change = bool(count) and int(frames.api_key[rows[0]]) == PARTITION_CHANGE
    partition_id, leader, leader_epoch, partition_epoch = np.empty((4, count), np.int32)
    recovery = np.empty(count, np.int8)
    topic_id = np.empty((count, 16), np.uint8)
    list_start = np.zeros((_DIRECTORIES + 1, count), np.int64)
    list_count = np.empty((_DIRECTORIES + 1, count), np.int32)
    bodies = batch.payload, frames.body_start[rows], frames.body_end[rows], frames.version[rows]
    if is_change:
        malformed = parse_changes(*bodies, partition_id, topic_id, leader, recovery, list_start, list_count)
    else:
        epochs = leader_epoch, partition_epoch
        malformed = parse_partitions(*bodies, partition_id, topic_id, leader, recovery, *epochs, list_start, list_count)
    if malformed >= 0:
        row = int(rows[malformed])
        decode_record(batch.value(row), batch.name(row))
        raise RecordError(batch.name(row), "a record that only the kernel refuses", "agreement of both decoders")
    lists = {
        name: _id_lists(batch.payload, list_start[number], list_count[number]) for number, name in enumerate(ID_LISTS)
    }
    directories = _directory_lists(batch.payload, list_start[_DIRECTORIES], list_count[_DIRECTORIES])
    return PartitionColumns(
        partition_id,
        topic_id,
        leader,
        recovery,
        None if is_change else leader_epoch,
        None if is_change else partition_epoch,
        lists,
        directories,
    )


def partition_columns(new: Sequence[records.PartitionRecord]) -> PartitionColumns:
    """The records as columns. Raises OverflowError for a number that does not fit."""
    count = len(new)
    return PartitionColumns(
        np.fromiter([record.partition_id for record in new], np.int32, count),
        _uuid_rows([record.topic_id for record in new]),
        np.fromiter([record.leader for record in new], np.int32, count),
        np.fromiter([record.leader_recovery_state for record in new], np.int8, count),
        np.fromiter([record.leader_epoch for record in new], np.int32, count),
        np.fromiter([record.partition_epoch for record in new], np.int32, count),
        {name: _packed([getattr(record, name) for record in new]) for name in ID_LISTS},
        DirectoryLists(
            offsets_of([len(record.directories) for record in new]),
            _uuid_rows([directory for record in new for directory in record.directories]),
            np.ones(count, np.bool_),
        ),
    )


def _packed(lists: Sequence[Sequence[int] | None]) -> IdLists:
    offsets = offsets_of([0 if each is None else len(each) for each in lists])
    values = np.fromiter(chain.from_iterable(each or () for each in lists), np.int32, int(offsets[-1]))
    return IdLists(Ragged(offsets, values), np.fromiter([each is not None for each in lists], np.bool_, len(lists)))


def _uuid_rows(ids: Sequence[UUID]) -> UInt8:
    """The ids as 16 bytes each. Most occur often."""
    content = {each: each.bytes for each in set(ids)}
    return np.frombuffer(b"".join([content[each] for each in ids]), np.uint8).reshape(-1, 16)


def encode_rows(columns: PartitionColumns, version: int) -> tuple[UInt8, Int64]:
    """Return the values of the records, and where each begins, with the end of the last.

    Raises RecordError if the version cannot carry a list.
    """
    count = len(columns)
    check_version(columns, version)
    parts = [columns.ids[name].lists for name in ID_LISTS]
    ids = np.concatenate([part.values for part in parts])
    list_start = np.zeros((_DIRECTORIES + 1, count), np.int64)
    list_count = np.empty((_DIRECTORIES + 1, count), np.int32)
    first = 0
    for number, (name, part) in enumerate(zip(ID_LISTS, parts, strict=True)):
        present = columns.ids[name].present
        if present.any():
            list_start[number] = first + part.offsets[:-1]
            list_count[number] = np.where(present, part.counts, -1)
        else:
            list_count[number] = -1
        first += len(part.values)
    directories = columns.directories
    list_start[_DIRECTORIES] = directories.offsets[:-1]
    list_count[_DIRECTORIES] = np.where(directories.present, np.diff(directories.offsets), -1)
    value_start = np.empty(count + 1, np.int64)
    out = np.empty(count * _FIXED_BYTES_MAX + 4 * len(ids) + 16 * len(directories.values), np.uint8)
    key = version, columns.partition_id, columns.topic_id, columns.leader, columns.leader_recovery_state
    lists = ids, directories.values, list_start, list_count
    if columns.leader_epoch is None or columns.partition_epoch is None:
        size = write_changes(*key, *lists, value_start, out)
    else:
        size = write_partitions(*key, columns.leader_epoch, columns.partition_epoch, *lists, value_start, out)
    if size < 0:
        raise RecordError("partition columns", "lists outside their arrays", "offsets within the values")
    return out[:size], value_start


def directory_id_bytes(metadata: ClusterMetadata) -> UInt8:
    """The ids of all log directories, shape (d, 16)."""
    return np.frombuffer(b"".join(known.bytes for known in metadata.directories.ids), np.uint8).reshape(-1, 16)


def check_version(columns: PartitionColumns, version: int) -> None:
    """Raise RecordError if the version of a record cannot carry a list."""
    if not 0 <= version <= 2:
        raise RecordError("partition columns", f"version {version}", "0 to 2")
    has_elr = any(columns.ids[name].present.any() for name in ("eligible_leader_replicas", "last_known_elr"))
    if has_elr and version < 2:
        raise RecordError("partition columns", f"ELR in version {version}", "at least 2")
    if version < 1 and (
        len(columns.directories.values) or (columns.leader_epoch is None and columns.directories.present.any())
    ):
        raise RecordError("partition columns", f"directories in version {version}", "at least 1")
    if columns.leader_epoch is not None:
        required = [columns.ids[name].present for name in ID_LISTS[:4]]
        if version >= 1:
            required.append(columns.directories.present)
        if not all(present.all() for present in required):
            raise RecordError("partition columns", "an absent list", "all lists but ELR and last-known ELR")


def _id_lists(payload: UInt8, starts: Int64, count: Int32) -> IdLists:
    present = count >= 0
    offsets = offsets_of(np.where(present, count, 0))
    values = np.empty(int(offsets[-1]), np.int32)
    copied = copy_ids(payload, starts, offsets, values)
    assert copied == len(values)
    return IdLists(Ragged(offsets, values), present)


def _directory_lists(payload: UInt8, starts: Int64, count: Int32) -> DirectoryLists:
    present = count >= 0
    offsets = offsets_of(np.where(present, count, 0))
    values = np.empty((int(offsets[-1]), 16), np.uint8)
    copied = copy_directories(payload, starts, offsets, values)
    assert copied == len(values)
    return DirectoryLists(offsets, values, present)
