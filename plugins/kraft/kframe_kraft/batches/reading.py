"""Reads record batches: header, CRC, decompression, and the positions of keys and values."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, Protocol

import numpy as np
from crc32c import crc32c

from kframe.plugin import counted
from kframe.plugin.columns import Int32, Int64, UInt8
from kframe.plugin.kraft import RecordAndVersion, control
from kframe_kraft.batches.compression import decompress
from kframe_kraft.batches.header import CHECKED_START, COMPRESSION_MASK, HEADER_BYTES, BatchHeader, read_header
from kframe_kraft.errors import BatchError, RecordError
from kframe_kraft.kernels._record_batches import read_frames, split_records
from kframe_kraft.records import decode_control, decode_record

#: Smallest record: one byte each for length, attributes, deltas, key and value length, header count.
_RECORD_BYTES_MIN: Final = 7


@dataclass(frozen=True, slots=True, eq=False)
class Frames:
    """The frames of a data batch's values. They are the type, the version, and the body as
    ``payload[body_start:body_end]``."""

    api_key: Int32
    version: Int32
    body_start: Int64
    body_end: Int64


@dataclass(frozen=True, slots=True, eq=False)
class RecordBatch:
    """A batch: its header, the records as bytes, and where the key and value of each record are in them.

    ``payload`` is a view of ``buffer`` from ``payload_start`` on. The buffer is that of the file or a part of it,
    unless the batch is compressed. ``content`` is the whole batch as the file has it.
    """

    header: BatchHeader
    content: UInt8
    buffer: UInt8
    payload_start: int
    payload: UInt8
    key_start: Int64
    key_length: Int32
    value_start: Int64
    value_length: Int32
    where: str

    def value(self, index: int) -> bytes:
        """The value of a record."""
        return self.payload[self.value_start[index] : self.value_start[index] + self.value_length[index]].tobytes()

    def key(self, index: int) -> bytes:
        """The key of a record. Empty if it is null."""
        return self.payload[self.key_start[index] : self.key_start[index] + max(self.key_length[index], 0)].tobytes()

    def offset(self, index: int) -> int:
        """The offset of a record."""
        return self.header.base_offset + index

    def name(self, index: int) -> str:
        """The name of a record in error messages."""
        return f"{self.where}, offset {self.offset(index)}"

    def records(self) -> list[RecordAndVersion]:
        """The records of a data batch. Raises RecordError for the first malformed one."""
        return [decode_record(self.value(i), self.name(i)) for i in range(len(self.value_start))]

    def control_records(self) -> list[control.ControlRecord]:
        """The records of a control batch. Raises RecordError for the first malformed one."""
        return [decode_control(self.key(i), self.value(i), self.name(i)) for i in range(len(self.value_start))]

    def frames(self) -> Frames:
        """The frames of a data batch. Raises RecordError for the first malformed one."""
        return frames_of(self, self.value_start, self.value_length)


class RecordBytes(Protocol):
    """A batch or block. It has its bytes, and the value and name of each record."""

    @property
    def payload(self) -> UInt8:
        """The bytes that positions are in."""

    def value(self, index: int, /) -> bytes:
        """The value of a record."""

    def name(self, index: int, /) -> str:
        """The name of a record in error messages."""


def frames_of(batch: RecordBytes, value_start: Int64, value_length: Int32) -> Frames:
    """The frames of the values at these positions. Raises RecordError for the first malformed one."""
    count = len(value_start)
    frames = Frames(
        np.empty(count, np.int32), np.empty(count, np.int32), np.empty(count, np.int64), value_start + value_length
    )
    malformed = read_frames(batch.payload, value_start, value_length, frames.api_key, frames.version, frames.body_start)
    if malformed >= 0:
        decode_record(batch.value(malformed), batch.name(malformed))
        raise RecordError(batch.name(malformed), "a malformed frame", "a frame of version 1")
    return frames


def read_batch(
    data: bytes | memoryview | UInt8, position: int = 0, where: str = "batch", start: int = 0, size: int | None = None
) -> RecordBatch:
    """Return the batch at ``position``. Raises BatchError if it is truncated or malformed, or its CRC differs.

    Batches that are read from the same array share it as their ``buffer``. ``data`` may be a part of a file of ``size``
    bytes that begins at byte ``start`` and has the whole batch, or all that is left of the file.
    """
    buffer = data if isinstance(data, np.ndarray) else np.frombuffer(data, np.uint8)
    where = f"{where}, byte {start + position}"
    remaining = None if size is None else size - start - position
    header = read_header(view := buffer.data, position, where, remaining)
    content = buffer[position : position + header.size]
    checked = view[position + CHECKED_START : position + header.size]
    if (computed := crc32c(checked)) != header.crc:
        raise BatchError(where, f"CRC {header.crc:#010x} of bytes with {computed:#010x}", "equal CRCs")
    payload_start, codec = position + HEADER_BYTES, header.attributes & COMPRESSION_MASK
    if codec:
        raw = bytes(checked[HEADER_BYTES - CHECKED_START :])
        payload_start, buffer = 0, np.frombuffer(decompress(codec, raw, where), np.uint8)
        payload = buffer
    else:
        payload = buffer[payload_start : position + header.size]
    count = header.record_count
    if count * _RECORD_BYTES_MIN > len(payload):
        raise BatchError(
            where,
            f"{counted(count, 'record')} in {counted(len(payload), 'byte')}",
            f"{_RECORD_BYTES_MIN} bytes a record",
        )
    batch = RecordBatch(
        header,
        content,
        buffer,
        payload_start,
        payload,
        np.empty(count, np.int64),
        np.empty(count, np.int32),
        np.empty(count, np.int64),
        np.empty(count, np.int32),
        where,
    )
    malformed = split_records(payload, batch.key_start, batch.key_length, batch.value_start, batch.value_length)
    if malformed >= 0:
        raise BatchError(
            where, f"record {malformed} malformed", f"{counted(count, 'record')} without headers, and nothing after"
        )
    _check_keys(batch)
    return batch


def read_batches(data: bytes | memoryview, position: int = 0, where: str = "batches") -> Iterator[RecordBatch]:
    """Yield the batches from ``position`` to the end of ``data``. Raises BatchError at the first malformed one."""
    buffer = np.frombuffer(data, np.uint8)
    while position < len(buffer):
        batch = read_batch(buffer, position, where)
        yield batch
        position += batch.header.size


def _check_keys(batch: RecordBatch) -> None:
    """Data records have no key, control records a key; both have a value (Kafka ``RecordsIterator``)."""
    wrong_key = batch.key_length <= 0 if batch.header.is_control else batch.key_length >= 0
    wrong = np.flatnonzero(wrong_key | (batch.value_length <= 0))
    if len(wrong):
        kind = "a key and a value" if batch.header.is_control else "a value without key"
        raise BatchError(batch.name(int(wrong[0])), "another key or value", kind)
