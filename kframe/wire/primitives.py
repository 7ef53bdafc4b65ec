"""Kafka's primitive types as bytes, for the few fields of a request that are not columns.

``compact`` selects the encoding of flexible versions: lengths as unsigned varints of length + 1.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import Final

#: The end of every struct of a flexible version: no tagged fields.
NO_TAGGED_FIELDS: Final = b"\x00"


def boolean(value: bool) -> bytes:
    """A boolean."""
    return b"\x01" if value else b"\x00"


def int8(value: int) -> bytes:
    """An int8."""
    return struct.pack(">b", value)


def int16(value: int) -> bytes:
    """An int16."""
    return struct.pack(">h", value)


def int32(value: int) -> bytes:
    """An int32."""
    return struct.pack(">i", value)


def unsigned_varint(value: int) -> bytes:
    """An unsigned varint: seven bits per byte, the lowest first. The top bit is set on all but the last byte."""
    encoded = bytearray()
    while value >= 0x80:
        encoded.append(value & 0x7F | 0x80)
        value >>= 7
    encoded.append(value)
    return bytes(encoded)


def string(text: str, *, compact: bool) -> bytes:
    """A string in UTF-8."""
    encoded = text.encode()
    return (unsigned_varint(len(encoded) + 1) if compact else int16(len(encoded))) + encoded


def nullable_string(text: str | None, *, compact: bool) -> bytes:
    """A string in UTF-8. It may be null."""
    if text is None:
        return unsigned_varint(0) if compact else int16(-1)
    return string(text, compact=compact)


def array(elements: Sequence[bytes], *, compact: bool) -> bytes:
    """An array of encoded elements."""
    length = unsigned_varint(len(elements) + 1) if compact else int32(len(elements))
    return length + b"".join(elements)


def end_of_struct(*, compact: bool) -> bytes:
    """The bytes after the last field of a struct."""
    return NO_TAGGED_FIELDS if compact else b""
