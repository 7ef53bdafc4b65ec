"""Reference implementation of the kernels in ``_record_batches.pyx`` in plain Python, for tests."""

from __future__ import annotations

from kframe_kraft.errors import RecordError
from kframe_kraft.records.primitives import Reader, write_unsigned_varint

from kframe.plugin.columns import Int32, Int64, UInt8


def split_records(payload: UInt8, key_start: Int64, key_length: Int32, value_start: Int64, value_length: Int32) -> int:
    """Return -1, or the number of the first malformed record. N if bytes follow the last one."""
    reader = Reader(payload.tobytes(), "batch")
    for i in range(len(key_start)):
        try:
            size = _signed(reader)
            if size < 0:
                return i
            batch_end, reader.end = reader.end, reader.position + size
            if reader.end > batch_end:
                return i
            reader.skip(1)
            if _signed(reader) != 0 or _signed(reader) != i:
                return i
            key_start[i], key_length[i] = _byte_string(reader)
            value_start[i], value_length[i] = _byte_string(reader)
            if _signed(reader) != 0 or reader.remaining:
                return i
        except RecordError:
            return i
        reader.end = batch_end
    return len(key_start) if reader.remaining else -1


def read_frames(
    payload: UInt8, value_start: Int64, value_length: Int32, api_key: Int32, version: Int32, body_start: Int64
) -> int:
    """Return -1, or the number of the first value without a frame of version 1."""
    reader = Reader(payload.tobytes(), "batch")
    for i in range(len(value_start)):
        reader.position, reader.end = int(value_start[i]), int(value_start[i]) + int(value_length[i])
        try:
            if reader.unsigned_varint() != 1:
                return i
            api_key[i], version[i] = reader.unsigned_varint(), reader.unsigned_varint()
        except RecordError:
            return i
        body_start[i] = reader.position
    return -1


def join_records(values: UInt8, value_start: Int64, record_start: Int64, out: UInt8) -> int:
    """Return the bytes written, or -1 if ``out`` is too short."""
    raw, joined = values.tobytes(), bytearray()
    for i in range(len(value_start) - 1):
        value = raw[value_start[i] : value_start[i + 1]]
        body = bytearray(2)
        for number in (i, -1, len(value)):
            write_unsigned_varint(body, number << 1 ^ number >> 63)
        body += value + b"\0"
        record_start[i] = len(joined)
        write_unsigned_varint(joined, 2 * len(body))
        joined += body
    record_start[-1] = len(joined)
    if len(joined) > len(out):
        return -1
    out[: len(joined)] = memoryview(bytes(joined))
    return len(joined)


def _signed(reader: Reader) -> int:
    value = reader.unsigned_varint()
    return value >> 1 ^ -(value & 1)


def _byte_string(reader: Reader) -> tuple[int, int]:
    length = _signed(reader)
    if length < -1:
        raise reader.error(f"length {length}", "at least -1")
    return (reader.position, -1) if length < 0 else (reader.skip(length), length)
