"""Reference implementation of the kernels in ``_partition_records.pyx`` in plain Python, for tests.

Bytes are read and written by the table-driven codec; only the positions of lists are computed here.
"""

from __future__ import annotations

from typing import Any, Final
from uuid import UUID

import numpy as np
from kframe_kraft.errors import RecordError
from kframe_kraft.records.codec import Codec
from kframe_kraft.records.frames import encode_record
from kframe_kraft.records.primitives import Reader
from numpy.typing import NDArray

from kframe.plugin.columns import Int32, Int64, UInt8
from kframe.plugin.kraft import TABLES, records

#: The lists in the order of the kernel's enum.
LISTS: Final = (
    "replicas",
    "isr",
    "removing_replicas",
    "adding_replicas",
    "eligible_leader_replicas",
    "last_known_elr",
    "directories",
)
_DIRECTORIES: Final = 6
_PARTITION: Final = TABLES[records.PartitionRecord]
_CHANGE: Final = TABLES[records.PartitionChangeRecord]


def parse_partitions(
    payload: UInt8,
    body_start: Int64,
    body_end: Int64,
    version: Int32,
    partition: Int32,
    topic_id: UInt8,
    leader: Int32,
    recovery: NDArray[Any],
    leader_epoch: Int32,
    partition_epoch: Int32,
    list_start: Int64,
    list_count: Int32,
) -> int:
    """Return -1, or the number of the first malformed PartitionRecord."""
    for i in range(len(body_start)):
        record = _parse(_PARTITION, payload, i, body_start, body_end, version, list_start, list_count)
        if record is None:
            return i
        _set_key(record, i, partition, topic_id)
        leader[i], recovery[i] = record.leader, record.leader_recovery_state
        leader_epoch[i], partition_epoch[i] = record.leader_epoch, record.partition_epoch
    return -1


def parse_changes(
    payload: UInt8,
    body_start: Int64,
    body_end: Int64,
    version: Int32,
    partition: Int32,
    topic_id: UInt8,
    leader: Int32,
    recovery: NDArray[Any],
    list_start: Int64,
    list_count: Int32,
) -> int:
    """Return -1, or the number of the first malformed PartitionChangeRecord."""
    for i in range(len(body_start)):
        record = _parse(_CHANGE, payload, i, body_start, body_end, version, list_start, list_count)
        if record is None:
            return i
        _set_key(record, i, partition, topic_id)
        leader[i], recovery[i] = record.leader, record.leader_recovery_state
    return -1


def copy_ids(payload: UInt8, starts: Int64, offsets: Int32, out: Int32) -> int:
    """Return the ids copied, or -1 if a list is outside ``payload`` or ``out``."""
    return _copy(payload, starts, offsets, out, 4)


def copy_directories(payload: UInt8, starts: Int64, offsets: Int32, out: UInt8) -> int:
    """Return the ids copied, or -1 if a list is outside ``payload`` or ``out``."""
    return _copy(payload, starts, offsets, out, 16)


def _copy(payload: UInt8, starts: Int64, offsets: Int32, out: NDArray[Any], size: int) -> int:
    """Copy lists of ids of ``size`` bytes."""
    for start, first, end in zip(starts.tolist(), offsets[:-1].tolist(), offsets[1:].tolist(), strict=True):
        if first == end:
            continue
        count = end - first
        if count < 0 or not 0 <= first <= len(out) - count or not 0 <= start <= len(payload) - size * count:
            return -1
        values = payload[start : start + size * count].tobytes()
        out[first:end] = np.frombuffer(values, ">i4") if size == 4 else np.frombuffer(values, np.uint8).reshape(-1, 16)
    return int(offsets[-1])


def write_partitions(
    version: int,
    partition: Int32,
    topic_id: UInt8,
    leader: Int32,
    recovery: NDArray[Any],
    leader_epoch: Int32,
    partition_epoch: Int32,
    ids: Int32,
    directories: UInt8,
    list_start: Int64,
    list_count: Int32,
    value_start: Int64,
    out: UInt8,
) -> int:
    """Return the bytes of the PartitionRecords, or -1 if ``out`` is too short or a list is outside its array."""
    written = bytearray()
    for i in range(len(partition)):
        lists = _lists(i, ids, directories, list_start, list_count)
        if lists is None:
            return -1
        if version < 1:
            lists["directories"] = ()
        record = records.PartitionRecord(
            partition_id=int(partition[i]),
            topic_id=UUID(bytes=topic_id[i].tobytes()),
            leader=int(leader[i]),
            leader_recovery_state=int(recovery[i]),
            leader_epoch=int(leader_epoch[i]),
            partition_epoch=int(partition_epoch[i]),
            **lists,
        )
        value_start[i] = len(written)
        written += encode_record(record, version)
    return _finish(written, value_start, out)


def write_changes(
    version: int,
    partition: Int32,
    topic_id: UInt8,
    leader: Int32,
    recovery: NDArray[Any],
    ids: Int32,
    directories: UInt8,
    list_start: Int64,
    list_count: Int32,
    value_start: Int64,
    out: UInt8,
) -> int:
    """Return the bytes of the PartitionChangeRecords, or -1 if ``out`` is too short or a list is outside its array."""
    written = bytearray()
    for i in range(len(partition)):
        lists = _lists(i, ids, directories, list_start, list_count)
        if lists is None:
            return -1
        record = records.PartitionChangeRecord(
            partition_id=int(partition[i]),
            topic_id=UUID(bytes=topic_id[i].tobytes()),
            leader=int(leader[i]),
            leader_recovery_state=int(recovery[i]),
            **lists,
        )
        value_start[i] = len(written)
        written += encode_record(record, version)
    return _finish(written, value_start, out)


class _Positions(Reader):
    """Notes where each array of the record begins."""

    def __init__(self, data: bytes, where: str) -> None:
        super().__init__(data, where)
        self.starts: list[int] = []

    def length(self, item_size: int = 1) -> int:
        length = super().length(item_size)
        if length >= 0:
            self.starts.append(self.position)
        return length


def _parse(
    table: Any,
    payload: UInt8,
    i: int,
    body_start: Int64,
    body_end: Int64,
    version: Int32,
    list_start: Int64,
    list_count: Int32,
) -> Any:
    start, end = int(body_start[i]), int(body_end[i])
    if not 0 <= start <= end <= len(payload) or not 0 <= version[i] <= table.latest:
        return None
    reader = _Positions(payload[start:end].tobytes(), "record")
    try:
        record = Codec(table, int(version[i])).read(reader)
    except RecordError:
        return None
    if reader.remaining:
        return None
    list_count[:, i] = -1
    # The codec reads arrays in the order of the schema and of tags; those that are null have no position.
    present = [field for field in table.fields if field.array and field.since <= version[i]]
    in_order = [field.name for field in present if field.tag is None]
    in_order += [field.name for field in sorted(present, key=lambda field: field.tag or 0) if field.tag is not None]
    starts = iter(reader.starts)
    for name in in_order:
        values = getattr(record, name)
        if values is None:
            continue
        list_count[LISTS.index(name), i], list_start[LISTS.index(name), i] = len(values), start + next(starts)
    return record


def _set_key(record: Any, i: int, partition: Int32, topic_id: UInt8) -> None:
    partition[i], topic_id[i] = record.partition_id, np.frombuffer(record.topic_id.bytes, np.uint8)


def _lists(i: int, ids: Int32, directories: UInt8, list_start: Int64, list_count: Int32) -> dict[str, Any] | None:
    lists: dict[str, Any] = {}
    for number, name in enumerate(LISTS):
        start, count = int(list_start[number, i]), int(list_count[number, i])
        values = directories if number == _DIRECTORIES else ids
        if count > 0 and not 0 <= start <= len(values) - count:
            return None
        rows = values[start : start + count] if count > 0 else values[:0]
        if count < 0:
            lists[name] = None
        elif number == _DIRECTORIES:
            lists[name] = tuple(UUID(bytes=row.tobytes()) for row in rows)
        else:
            lists[name] = tuple(rows.tolist())
    return lists


def _finish(written: bytearray, value_start: Int64, out: UInt8) -> int:
    value_start[-1] = len(written)
    if len(written) > len(out):
        return -1
    out[: len(written)] = np.frombuffer(written, np.uint8)
    return len(written)
