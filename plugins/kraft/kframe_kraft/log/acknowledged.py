"""``acknowledged``: a lower bound of what this node has acknowledged, which kframe writes beside the log.

A broker that has applied a committed record does not survive a log without it, so that a shorter log must not be
served. The file is written after each fsync of the log and is not synced itself: it survives the end of the process,
and after a power failure it may be older.
"""

from __future__ import annotations

import struct
from pathlib import Path
from typing import Final

from crc32c import crc32c

from kframe_kraft.errors import LogError

FILE_NAME: Final = "acknowledged"
#: The end of what was acknowledged, and the CRC-32C of it.
_CONTENT: Final = struct.Struct(">qI")


def acknowledged_bytes(end: int) -> bytes:
    """The content of the file: records below ``end`` were acknowledged."""
    return _CONTENT.pack(end, _crc(end))


def read_acknowledged(directory: Path) -> int:
    """Return the end of what was acknowledged, 0 without the file. Raises LogError if it is malformed."""
    path = directory / FILE_NAME
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        return 0
    end, crc = _CONTENT.unpack(data) if len(data) == _CONTENT.size else (-1, 0)
    if end < 0 or crc != _crc(end):
        raise LogError(str(path), f"{len(data)} bytes: {data[:16].hex()}", "an offset in 8 bytes and its CRC-32C")
    return int(end)


def _crc(end: int) -> int:
    return crc32c(end.to_bytes(8, "big", signed=True))
