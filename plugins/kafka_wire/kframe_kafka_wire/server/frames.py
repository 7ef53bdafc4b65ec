"""Read frames from a socket, with limits for a frame's size and for the memory of all frames."""

from __future__ import annotations

import asyncio
import struct
from typing import Final

from kframe.plugin import counted
from kframe_kafka_wire.protocol.errors import Refused

_SIZE = struct.Struct(">i")
_CHUNK: Final = 1 << 16


class Budget:
    """The bytes that all requests in progress may use."""

    def __init__(self, max_size: int) -> None:
        self._remaining = max_size

    def reserve(self, size: int) -> None:
        """Reserve bytes. Raises Refused if there are not enough."""
        if size > self._remaining:
            raise Refused("requests under way hold as many bytes as they may (queued.max.request.bytes)")
        self._remaining -= size

    def release(self, size: int) -> None:
        """Release reserved bytes."""
        self._remaining += size


async def read_size(reader: asyncio.StreamReader, max_size: int) -> int | None:
    """The size of the next frame, or None at the end of the stream. Raises Refused above ``max_size``."""
    try:
        (size,) = _SIZE.unpack(await reader.readexactly(_SIZE.size))
    except asyncio.IncompleteReadError as error:
        if error.partial:
            raise Refused("the connection ended within the size of a frame") from None
        return None
    if not 0 <= size <= max_size:
        raise Refused(f"a frame of {size} bytes, {max_size} are allowed")
    return int(size)


async def read_frame(reader: asyncio.StreamReader, max_size: int, budget: Budget) -> bytes | None:
    """The next frame without its size, or None at the end of the stream. Raises Refused.

    ``budget`` is charged for received bytes, not for claimed bytes. The caller releases the frame's size; after an
    exception everything is released.
    """
    size = await read_size(reader, max_size)
    if size is None:
        return None
    chunks, received = [], 0
    try:
        while received < size:
            chunk = await reader.read(min(_CHUNK, size - received))
            if not chunk:
                raise Refused(f"the connection ended {counted(size - received, 'byte')} before the end of a frame")
            budget.reserve(len(chunk))
            received += len(chunk)
            chunks.append(chunk)
    except BaseException:
        budget.release(received)
        raise
    return b"".join(chunks)
