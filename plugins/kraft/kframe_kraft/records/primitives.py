"""Kafka's primitive types in the flexible encoding, with every length checked before its bytes are read.

Strings, bytes and arrays begin with an unsigned varint of length + 1; 0 is null.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Any, Final, TypeAlias
from uuid import UUID

from kframe.plugin import counted
from kframe.plugin.kraft import Kind
from kframe_kraft.errors import RecordError

#: Longest string in bytes (Kafka's generated classes).
STRING_MAX: Final = 0x7FFF
Write: TypeAlias = Callable[[bytearray, Any], None]


class Reader:
    """Reads ``data[position:end]``. Raises RecordError where the bytes end early."""

    __slots__ = ("data", "end", "position", "where")

    def __init__(self, data: bytes, where: str) -> None:
        self.data = data
        self.position = 0
        self.end = len(data)
        self.where = where

    @property
    def remaining(self) -> int:
        """Bytes that are not read yet."""
        return self.end - self.position

    def error(self, actual: str, expected: str) -> RecordError:
        """Return an error at the current byte."""
        return RecordError(f"{self.where}, byte {self.position}", actual, expected)

    def skip(self, size: int) -> int:
        """Return the position, and move ``size`` bytes past it."""
        start = self.position
        if size > self.end - start:
            raise self.error(f"{counted(self.end - start, 'byte')} left", f"at least {size}")
        self.position = start + size
        return start

    def read_bytes(self, size: int) -> bytes:
        """Return the next ``size`` bytes."""
        start = self.skip(size)
        return self.data[start : start + size]

    def unsigned_varint(self) -> int:
        """Return an unsigned varint of up to 31 bits."""
        value = shift = 0
        while shift < 35:
            byte = self.data[self.skip(1)]
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                if value > 0x7FFFFFFF:
                    break
                return value
            shift += 7
        raise self.error("a varint above 31 bits", "an unsigned varint")

    def length(self, item_size: int = 1) -> int:
        """Return the length of a string or array of items of at least this size, -1 for null."""
        length = self.unsigned_varint() - 1
        if length * item_size > self.remaining:
            raise self.error(
                f"length {length} with {counted(self.remaining, 'byte')} left", "a length within the record"
            )
        return length


def read_bool(reader: Reader) -> bool:
    """Return a boolean. As in Kafka, any byte but 0 is true."""
    return reader.data[reader.skip(1)] != 0


def read_uuid(reader: Reader) -> UUID:
    """Return a UUID of 16 bytes."""
    return UUID(bytes=reader.read_bytes(16))


def read_string(reader: Reader) -> str | None:
    """Return a string, or None."""
    length = reader.length()
    if length < 0:
        return None
    if length > STRING_MAX:
        raise reader.error(f"a string of {length} bytes", f"at most {STRING_MAX}")
    raw = reader.read_bytes(length)
    try:
        return raw.decode()
    except UnicodeDecodeError:
        raise reader.error(repr(raw[:50]).removeprefix("b"), "UTF-8") from None


def read_byte_string(reader: Reader) -> bytes | None:
    """Return bytes, or None."""
    length = reader.length()
    return None if length < 0 else reader.read_bytes(length)


def write_unsigned_varint(out: bytearray, value: int) -> None:
    """Append an unsigned varint."""
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)


def write_bool(out: bytearray, value: bool) -> None:
    """Append a boolean."""
    out.append(1 if value else 0)


def write_uuid(out: bytearray, value: UUID) -> None:
    """Append a UUID."""
    out += value.bytes


def write_string(out: bytearray, value: str | None) -> None:
    """Append a string or null. Raises ValueError if it is longer than STRING_MAX."""
    raw = None if value is None else value.encode()
    if raw is not None and len(raw) > STRING_MAX:
        raise ValueError(f"a string of {len(raw)} bytes")
    write_byte_string(out, raw)


def write_byte_string(out: bytearray, value: bytes | None) -> None:
    """Append bytes or null."""
    write_unsigned_varint(out, 0 if value is None else len(value) + 1)
    out += value or b""


def number_reader(layout: str) -> Callable[[Reader], Any]:
    """Return a reader of a number with this ``struct`` layout."""
    packing = struct.Struct(layout)

    def read(reader: Reader) -> Any:
        return packing.unpack_from(reader.data, reader.skip(packing.size))[0]

    return read


def number_writer(layout: str) -> Write:
    """Return a writer of a number with this ``struct`` layout. It raises struct.error if the number does not fit."""
    packing = struct.Struct(layout)

    def write(out: bytearray, value: Any) -> None:
        out += packing.pack(value)

    return write


_LAYOUTS: Final = {
    Kind.INT8: ">b",
    Kind.INT16: ">h",
    Kind.UINT16: ">H",
    Kind.INT32: ">i",
    Kind.INT64: ">q",
    Kind.FLOAT64: ">d",
}
#: The reader of each type.
READ: Final[dict[Kind, Callable[[Reader], Any]]] = {
    Kind.BOOL: read_bool,
    Kind.UUID: read_uuid,
    Kind.STRING: read_string,
    Kind.BYTES: read_byte_string,
    **{kind: number_reader(layout) for kind, layout in _LAYOUTS.items()},
}
#: The writer of each type.
WRITE: Final[dict[Kind, Write]] = {
    Kind.BOOL: write_bool,
    Kind.UUID: write_uuid,
    Kind.STRING: write_string,
    Kind.BYTES: write_byte_string,
    **{kind: number_writer(layout) for kind, layout in _LAYOUTS.items()},
}
