"""Read frames from a socket, with limits for a frame's size and for the memory of all frames."""

from __future__ import annotations

import asyncio
import struct
from typing import Final

_SIZE = struct.Struct(">i")
_CHUNK: Final = 1 << 16


class Refused(Exception):
    """The client violates the protocol or a limit. Its connection is closed. The text is logged."""


class Budget:
    """The bytes that all requests in progress may use."""

    def __init__(self, most: int) -> None:
        self._left = most

    def take(self, size: int) -> None:
        """Reserve bytes. Raises Refused if there are not enough."""
        if size > self._left:
            raise Refused("requests under way hold as many bytes as they may (queued.max.request.bytes)")
        self._left -= size

    def give(self, size: int) -> None:
        """Release reserved bytes."""
        self._left += size


async def read_size(reader: asyncio.StreamReader, most: int) -> int | None:
    """The size of the next frame, or None at the end of the stream. Raises Refused above ``most``."""
    try:
        (size,) = _SIZE.unpack(await reader.readexactly(_SIZE.size))
    except asyncio.IncompleteReadError as error:
        if error.partial:
            raise Refused("the connection ended within the size of a frame") from None
        return None
    if not 0 <= size <= most:
        raise Refused(f"a frame of {size} bytes, {most} are allowed")
    return int(size)


async def read_frame(reader: asyncio.StreamReader, most: int, budget: Budget) -> bytes | None:
    """The next frame without its size, or None at the end of the stream. Raises Refused.

    ``budget`` is charged for received bytes, not for claimed bytes. The caller releases the frame's size; after an
    exception everything is released.
    """
    size = await read_size(reader, most)
    if size is None:
        return None
    chunks, have = [], 0
    try:
        while have < size:
            chunk = await reader.read(min(_CHUNK, size - have))
            if not chunk:
                raise Refused(f"the connection ended {size - have} bytes before the end of a frame")
            budget.take(len(chunk))
            have += len(chunk)
            chunks.append(chunk)
    except BaseException:
        budget.give(have)
        raise
    return b"".join(chunks)
