"""Encodes decisions of a controller as record batches of the metadata log; changes of partitions stay in columns."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Final, TypeAlias

import numpy as np

from kframe.plugin.cluster import NO_LEADER
from kframe.plugin.columns import Bool, Int32, Int64, Ragged, UInt8
from kframe.plugin.kraft import (
    RECORD_LISTS,
    RECORDS_MAX,
    ControllerResult,
    DecisionPart,
    PartitionChangeBatch,
    RecordAndVersion,
    records,
)
from kframe_kraft.batches import BatchPosition, encode_values, join_values
from kframe_kraft.columns.partitions import (
    DirectoryLists,
    IdLists,
    PartitionColumns,
    check_version,
    directory_id_bytes,
    encode_rows,
    partition_columns,
)

#: Fewer partitions are encoded one by one, because a step in columns costs as much as some of them.
_COLUMNS_MIN: Final = 32
#: The fields of a change record that are lists of broker ids, and the lists of a decision.
_ID_LISTS: Final = {field: name for name, field in RECORD_LISTS.items() if name != "directories"}


@dataclass(frozen=True, slots=True, eq=False)
class _EncodedRecords:
    """The values of records, and where each begins, with the end of the last."""

    all_values: UInt8
    value_start: Int64

    def __len__(self) -> int:
        return len(self.value_start) - 1

    def values(self, first: int, last: int) -> tuple[UInt8, Int64]:
        """The values of the records from ``first`` to before ``last``, and where each begins."""
        bounds = self.value_start[first : last + 1]
        return self.all_values[bounds[0] : bounds[-1]], bounds - bounds[0]


@dataclass(frozen=True, slots=True, eq=False)
class _ColumnRecords:
    """Records of partitions in columns. Only ``values`` encodes them."""

    columns: PartitionColumns
    version: int

    def __len__(self) -> int:
        return len(self.columns)

    def values(self, first: int, last: int) -> tuple[UInt8, Int64]:
        """See ``_EncodedRecords``."""
        return encode_rows(self.columns.section(first, last), self.version)


_Records: TypeAlias = _EncodedRecords | _ColumnRecords


def encode_decision(decided: ControllerResult[object], position: BatchPosition) -> Iterator[bytes]:
    """Yield the decision as record batches of at most RECORDS_MAX records; ``position`` is that of the first.

    Each batch is encoded when it is asked for, so that the ones before it can be written and sent meanwhile. Raises
    RecordError, before the first batch, if the version of a record cannot carry its content.
    """
    offset = position.base_offset
    for parts in _batches(_records(decided.parts)):
        values, value_start = parts[0] if len(parts) == 1 else _joined(parts)
        yield encode_values(values, value_start, BatchPosition(offset, position.leader_epoch, position.timestamp))
        offset += len(value_start) - 1


def _joined(parts: Sequence[tuple[UInt8, Int64]]) -> tuple[UInt8, Int64]:
    """The values of all parts, and where each begins, with the end of the last."""
    lengths = np.concatenate([np.diff(value_start) for _, value_start in parts])
    value_start: Int64 = np.zeros(len(lengths) + 1, np.int64)
    np.cumsum(lengths, out=value_start[1:])
    return np.concatenate([values for values, _ in parts]), value_start


def _records(parts: Sequence[DecisionPart]) -> list[_Records]:
    """The records of the parts. Those that are not in columns are encoded."""
    result: list[_Records] = []
    for kind, group in groupby(parts, key=_kind):
        items = [*group]
        if kind is PartitionChangeBatch:
            changes = [item for item in items if isinstance(item, PartitionChangeBatch)]
            result += [_in_columns(change_columns(item), item.version) for item in changes]
            continue
        versioned = [item for item in items if isinstance(item, RecordAndVersion)]
        versions = {item.version for item in versioned}
        if kind is records.PartitionRecord and len(versions) == 1 and len(versioned) >= _COLUMNS_MIN:
            new = [item.record for item in versioned if isinstance(item.record, records.PartitionRecord)]
            result.append(_in_columns(partition_columns(new), versions.pop()))
        else:
            result.append(_EncodedRecords(*join_values(versioned)))
    return result


def _kind(part: DecisionPart) -> type:
    """Parts of a kind that follow one another are encoded at once."""
    if isinstance(part, PartitionChangeBatch):
        return PartitionChangeBatch
    is_partition = isinstance(part.record, records.PartitionRecord)
    return records.PartitionRecord if is_partition else records.MetadataRecord


def _in_columns(columns: PartitionColumns, version: int) -> _ColumnRecords:
    check_version(columns, version)
    return _ColumnRecords(columns, version)


def _batches(records: Sequence[_Records]) -> Iterator[list[tuple[UInt8, Int64]]]:
    """The values of each batch, as sections of ``records``."""
    sections: list[tuple[UInt8, Int64]] = []
    room = RECORDS_MAX
    for part in records:
        first = 0
        while first < len(part):
            last = min(first + room, len(part))
            sections.append(part.values(first, last))
            room -= last - first
            first = last
            if not room:
                yield sections
                sections, room = [], RECORDS_MAX
    if sections:
        yield sections


def change_columns(batch: PartitionChangeBatch) -> PartitionColumns:
    """The changes as columns of PartitionChange records, a row for each partition that changes."""
    changed, metadata = batch.changed, batch.metadata
    rows, partitions = batch.rows[changed], metadata.partitions
    broker_ids = np.append(metadata.brokers.ids, np.int32(NO_LEADER)).astype(np.int32)
    leader = np.where(batch.writes_leader, broker_ids[batch.leader], np.int32(records.NO_LEADER_CHANGE))
    recovery = np.where(batch.writes_recovery, batch.recovery.astype(np.int8), np.int8(records.NO_RECOVERY_CHANGE))
    return PartitionColumns(
        partitions.partition.take(rows),
        metadata.topics.id_bytes.take(partitions.topic.take(rows), axis=0),
        leader[changed].astype(np.int32),
        recovery[changed],
        None,
        None,
        {field: _id_list(batch, name, changed, broker_ids) for field, name in _ID_LISTS.items()},
        _directory_lists(batch, changed),
    )


def _id_list(batch: PartitionChangeBatch, name: str, changed: Bool, broker_ids: Int32) -> IdLists:
    lists, present = _written(batch, name, changed)
    values = broker_ids[lists.values]
    if name == "elr" and len(values):  # the log has it in ascending order of broker ids
        values = values[np.lexsort((values, lists.owners))]
    return IdLists(Ragged(lists.offsets, values), present)


def _directory_lists(batch: PartitionChangeBatch, changed: Bool) -> DirectoryLists:
    lists, present = _written(batch, "directories", changed)
    if not len(lists.values):
        return DirectoryLists(lists.offsets, np.empty((0, 16), np.uint8), present)
    return DirectoryLists(lists.offsets, directory_id_bytes(batch.metadata)[lists.values], present)


def _written(batch: PartitionChangeBatch, name: str, changed: Bool) -> tuple[Ragged, Bool]:
    """The lists that records write, empty where a record does not, and the mask of those that do."""
    present: Bool = getattr(batch, f"writes_{name}")[changed]
    if not present.any():
        return Ragged.empty(len(present)), present
    lists: Ragged = getattr(batch, name).select(changed)
    return lists if present.all() else lists.keep(present[lists.owners]), present
