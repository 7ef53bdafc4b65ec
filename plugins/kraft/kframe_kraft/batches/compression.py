"""Compression of a batch's records. Kafka writes the metadata log uncompressed, but reads any codec.

gzip comes with Python; snappy, lz4 and zstd need the extra ``compression`` (pyarrow). Output is bounded
before memory is allocated.
"""

from __future__ import annotations

import struct
import zlib
from enum import IntEnum
from typing import Any, Final

from kframe.plugin import counted
from kframe_kraft.errors import BatchError

#: Most bytes that the records of one batch may take; eight times the largest batch of a leader.
DECOMPRESSED_MAX: Final = 64 * 1024 * 1024
#: The frame that Java's ``SnappyOutputStream`` writes around raw blocks begins with this magic, and is so long.
_SNAPPY_MAGIC: Final = b"\x82SNAPPY\x00"
_SNAPPY_HEADER_BYTES: Final = 16
_GZIP_WINDOW: Final = 31


class Compression(IntEnum):
    """Codecs with Kafka's ids (``CompressionType``)."""

    NONE = 0
    GZIP = 1
    SNAPPY = 2
    LZ4 = 3
    ZSTD = 4


def decompress(codec: int, data: bytes, where: str) -> bytes:
    """Return the decompressed data. Raises BatchError if it is malformed, too large, or of an unknown codec."""
    if codec not in set(Compression):
        raise BatchError(where, f"compression codec {codec}", "0 to 4")
    if codec == Compression.NONE:
        return data
    try:
        result = _decompress(Compression(codec), data)
    except (OSError, ValueError, zlib.error, struct.error) as error:
        raise BatchError(
            where, f"{Compression(codec).name.lower()} data that cannot be decompressed", str(error)
        ) from None
    if len(result) > DECOMPRESSED_MAX:
        raise BatchError(where, f"more than {DECOMPRESSED_MAX} bytes after decompression", "a smaller batch")
    return result


def _decompress(codec: Compression, data: bytes) -> bytes:
    match codec:
        case Compression.GZIP:
            unpacker = zlib.decompressobj(wbits=_GZIP_WINDOW)
            result = unpacker.decompress(data, DECOMPRESSED_MAX + 1)
            if not unpacker.eof and len(result) <= DECOMPRESSED_MAX:
                raise ValueError("the data ends early")
            return result
        case Compression.SNAPPY:
            return b"".join(_snappy_blocks(data))
        case _:
            arrow = _arrow()
            with arrow.CompressedInputStream(arrow.BufferReader(data), codec.name.lower()) as stream:
                return bytes(stream.read(DECOMPRESSED_MAX + 1))


def _snappy_blocks(data: bytes) -> list[bytes]:
    if not data.startswith(_SNAPPY_MAGIC):
        return [_snappy_raw(data, DECOMPRESSED_MAX)]
    blocks, position, remaining = [], _SNAPPY_HEADER_BYTES, DECOMPRESSED_MAX
    while position < len(data):
        (size,) = struct.unpack_from(">i", data, position)
        position += 4
        if not 0 < size <= len(data) - position:
            raise ValueError(f"a block of {counted(size, 'byte')} with {len(data) - position} left")
        blocks.append(_snappy_raw(data[position : position + size], remaining))
        remaining -= len(blocks[-1])
        position += size
    return blocks


def _snappy_raw(block: bytes, size_max: int) -> bytes:
    """Decompress a raw block, which begins with its decompressed length as varint."""
    size = shift = position = 0
    while True:
        if position == min(len(block), 5):
            raise ValueError("a block without length")
        size |= (block[position] & 0x7F) << shift
        shift, position = shift + 7, position + 1
        if block[position - 1] < 0x80:
            break
    if size > size_max:
        raise ValueError(f"a block of {counted(size, 'byte')}, above the limit of a batch")
    return bytes(_arrow().Codec("snappy").decompress(block, size, asbytes=True)) if size else b""


def _arrow() -> Any:
    try:
        import pyarrow as arrow
    except ImportError as error:
        raise ImportError("snappy, lz4 and zstd need pyarrow: pip install kframe-kraft[compression]") from error
    return arrow
