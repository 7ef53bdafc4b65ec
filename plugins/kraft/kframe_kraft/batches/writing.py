"""Writes record batches as a KRaft leader does: create time, no producer, timestamp deltas of 0."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from crc32c import crc32c

from kframe.plugin.columns import Int64, UInt8
from kframe.plugin.kraft import RecordAndVersion, control, records
from kframe_kraft.batches.header import BATCH_BYTES_MAX, CONTROL, HEADER_BYTES, BatchHeader, pack_checked, pack_header
from kframe_kraft.errors import BatchError
from kframe_kraft.kernels._record_batches import join_records
from kframe_kraft.records import encode_control, encode_record
from kframe_kraft.records.primitives import write_unsigned_varint


@dataclass(frozen=True, slots=True)
class BatchPosition:
    """Where a batch is in the log. ``timestamp`` is in milliseconds since the epoch."""

    base_offset: int
    leader_epoch: int
    timestamp: int


def encode_data_batch(versioned: Sequence[RecordAndVersion], position: BatchPosition) -> bytes:
    """Return a batch of metadata records. Raises BatchError if it is empty or above BATCH_BYTES_MAX."""
    return encode_values(*join_values(versioned), position)


def join_values(versioned: Iterable[tuple[records.MetadataRecord, int]]) -> tuple[UInt8, Int64]:
    """Return the values of the records, and where each begins, with the end of the last."""
    values = [encode_record(*record) for record in versioned]
    value_start: Int64 = np.zeros(len(values) + 1, np.int64)
    np.cumsum([len(value) for value in values], out=value_start[1:])
    return np.frombuffer(b"".join(values), np.uint8), value_start


def encode_values(values: UInt8, value_start: Int64, position: BatchPosition) -> bytes:
    """Return a batch of the values ``values[value_start[i]:value_start[i + 1]]``. Raises as encode_data_batch."""
    count = len(value_start) - 1
    out = np.empty(len(values) + 20 * count, np.uint8)
    size = join_records(values, value_start, np.empty(count + 1, np.int64), out)
    return _batch(out[:size].data, count, position, 0)


def encode_control_batch(records: Sequence[control.ControlRecord], position: BatchPosition) -> bytes:
    """Return a batch of control records. Raises BatchError if it is empty."""
    payload = bytearray()
    for number, record in enumerate(records):
        key, value = encode_control(record)
        body = bytearray(2)
        write_unsigned_varint(body, 2 * number)
        for part in (key, value):
            write_unsigned_varint(body, 2 * len(part))
            body += part
        body.append(0)
        write_unsigned_varint(payload, 2 * len(body))
        payload += body
    return _batch(bytes(payload), len(records), position, CONTROL)


def _batch(payload: bytes | memoryview, count: int, position: BatchPosition, attributes: int) -> bytes:
    if not count:
        raise BatchError("batch", "no records", "at least one")
    size = HEADER_BYTES + len(payload)
    if size > BATCH_BYTES_MAX:
        raise BatchError("batch", f"{size} bytes", f"at most {BATCH_BYTES_MAX}")
    header = BatchHeader(
        position.base_offset,
        size,
        position.leader_epoch,
        0,
        attributes,
        count - 1,
        position.timestamp,
        position.timestamp,
        -1,
        -1,
        -1,
        count,
    )
    crc = crc32c(payload, crc32c(pack_checked(header)))
    return b"".join((pack_header(replace(header, crc=crc)), payload))
