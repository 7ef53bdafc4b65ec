"""Encodes decisions of a controller as record batches of the metadata log; changes of partitions stay in columns."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import numpy as np

from kframe.plugin.cluster import NO_LEADER
from kframe.plugin.columns import Bool, Int32, Int64, Ragged, UInt8
from kframe.plugin.kraft import (
    RECORD_LISTS,
    RECORDS_MAX,
    ControllerResult,
    DecisionPart,
    PartitionChangeBatch,
    records,
)
from kframe_kraft.batches import BatchPosition, encode_values, join_values
from kframe_kraft.columns.partitions import (
    DirectoryLists,
    IdLists,
    PartitionColumns,
    directory_id_bytes,
    encode_rows,
)

#: The fields of a change record that are lists of broker ids, and the lists of a decision.
_ID_LISTS: Final = {field: name for name, field in RECORD_LISTS.items() if name != "directories"}


def encode_decision(decided: ControllerResult[object], position: BatchPosition) -> Iterator[bytes]:
    """Yield the decision as record batches of at most RECORDS_MAX records; ``position`` is that of the first.

    Raises RecordError if the version of a record cannot carry its content.
    """
    parts = [_values(item) for item in decided.parts]
    values = np.concatenate([np.empty(0, np.uint8), *(part for part, _ in parts)])
    lengths = np.concatenate([np.empty(0, np.int64), *(np.diff(value_start) for _, value_start in parts)])
    value_start: Int64 = np.zeros(len(lengths) + 1, np.int64)
    np.cumsum(lengths, out=value_start[1:])
    for first in range(0, len(lengths), RECORDS_MAX):
        bounds = value_start[first : first + RECORDS_MAX + 1]
        batch_position = BatchPosition(position.base_offset + first, position.leader_epoch, position.timestamp)
        yield encode_values(values[bounds[0] : bounds[-1]], bounds - bounds[0], batch_position)


def change_columns(batch: PartitionChangeBatch) -> PartitionColumns:
    """The changes as columns of PartitionChange records, a row for each partition that changes."""
    changed, metadata = batch.changed, batch.metadata
    rows, partitions = batch.rows[changed], metadata.partitions
    broker_ids = np.append(metadata.brokers.ids, np.int32(NO_LEADER)).astype(np.int32)
    leader = np.where(batch.writes_leader, broker_ids[batch.leader], np.int32(records.NO_LEADER_CHANGE))
    recovery = np.where(batch.writes_recovery, batch.recovery.astype(np.int8), np.int8(records.NO_RECOVERY_CHANGE))
    return PartitionColumns(
        partitions.partition[rows],
        metadata.topics.id_bytes[partitions.topic[rows]],
        leader[changed].astype(np.int32),
        recovery[changed],
        None,
        None,
        {field: _id_list(batch, name, changed, broker_ids) for field, name in _ID_LISTS.items()},
        _directory_lists(batch, changed),
    )


def _values(item: DecisionPart) -> tuple[UInt8, Int64]:
    """The values of the records of a part of a decision, and where each begins, with the end of the last."""
    if isinstance(item, PartitionChangeBatch):
        return encode_rows(change_columns(item), item.version)
    return join_values([item])


def _id_list(batch: PartitionChangeBatch, name: str, changed: Bool, broker_ids: Int32) -> IdLists:
    lists, present = _written(batch, name, changed)
    values = broker_ids[lists.values]
    if name == "elr":  # the log has it in ascending order of broker ids
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
