"""Compressed batches as other clients of Kafka's message format write them; a KRaft leader compresses none."""

from __future__ import annotations

import struct
import zlib
from dataclasses import replace
from typing import Final

import pyarrow as arrow
from crc32c import crc32c
from kframe_kraft.batches import Compression
from kframe_kraft.batches.header import HEADER_BYTES, pack_checked, pack_header, read_header

#: The frame that Java's ``SnappyOutputStream`` writes around raw blocks: magic, version, lowest compatible version.
_SNAPPY_HEADER: Final = b"\x82SNAPPY\x00" + struct.pack(">ii", 1, 1)
_SNAPPY_BLOCK: Final = 32 * 1024
_GZIP_WINDOW: Final = 31
#: The header of an LZ4 frame with independent blocks of 64 KiB and no checksums: Kafka reads no dependent blocks.
_LZ4_HEADER: Final = bytes.fromhex("04224d18604082")
_LZ4_BLOCK: Final = 64 * 1024
_LZ4_UNCOMPRESSED: Final = 0x80000000


def compressed(batch: bytes, codec: Compression) -> bytes:
    """The same batch with compressed records."""
    payload = compress(codec, batch[HEADER_BYTES:])
    header = read_header(batch, 0, "batch")
    header = replace(header, size=HEADER_BYTES + len(payload), attributes=header.attributes | codec)
    return pack_header(replace(header, crc=crc32c(payload, crc32c(pack_checked(header))))) + payload


def compress(codec: Compression, data: bytes) -> bytes:
    """The compressed data."""
    match codec:
        case Compression.NONE:
            return data
        case Compression.GZIP:
            packer = zlib.compressobj(wbits=_GZIP_WINDOW)
            return packer.compress(data) + packer.flush()
        case Compression.SNAPPY:
            blocks = [
                _snappy_block(data[start : start + _SNAPPY_BLOCK]) for start in range(0, len(data), _SNAPPY_BLOCK)
            ]
            return _SNAPPY_HEADER + b"".join(blocks)
        case Compression.LZ4:
            blocks = [_lz4_block(data[start : start + _LZ4_BLOCK]) for start in range(0, len(data), _LZ4_BLOCK)]
            return _LZ4_HEADER + b"".join(blocks) + bytes(4)
        case _:
            return bytes(arrow.Codec("zstd").compress(data, asbytes=True))


def _lz4_block(data: bytes) -> bytes:
    block = bytes(arrow.Codec("lz4_raw").compress(data, asbytes=True))
    if len(block) < len(data):
        return struct.pack("<I", len(block)) + block
    return struct.pack("<I", len(data) | _LZ4_UNCOMPRESSED) + data


def _snappy_block(data: bytes) -> bytes:
    block = bytes(arrow.Codec("snappy").compress(data, asbytes=True))
    return struct.pack(">i", len(block)) + block
