"""A temporary file for a log or snapshot from the network or a pipe, so that it needs no memory."""

from __future__ import annotations

import io
import os
import tempfile
import weakref
from typing import IO, Any


class TemporaryContent:
    """A file without a path, which is deleted when it is released. It implements ``BatchSource``."""

    def __init__(self, name: str) -> None:
        """``name`` is that in error messages."""
        self.name = name
        self.size = 0
        file = tempfile.TemporaryFile(buffering=0)  # noqa: SIM115 - it stays open with this object
        self._descriptor = file.fileno()
        weakref.finalize(self, file.close)

    def append(self, content: bytes | memoryview) -> None:
        """Write bytes at the end. Raises OSError, which names the folder of temporary files."""
        try:
            while content:
                written = os.pwrite(self._descriptor, content, self.size)
                self.size, content = self.size + written, content[written:]
        except OSError as error:
            error.filename = error.filename or tempfile.gettempdir()
            raise

    def open(self, mode: str, /) -> IO[bytes]:
        """Open the content. Readers have positions of their own."""
        return io.BufferedReader(_PositionedReader(self._descriptor))


class _PositionedReader(io.RawIOBase):
    """Reads a file from a position that no other reader changes, as a duplicate of its descriptor would."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = os.dup(descriptor)
        self._position = 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def fileno(self) -> int:
        return self._descriptor

    def readinto(self, buffer: Any, /) -> int:
        count = os.preadv(self._descriptor, [buffer], self._position)
        self._position += count
        return count

    def seek(self, offset: int, whence: int = os.SEEK_SET, /) -> int:
        starts = {os.SEEK_SET: 0, os.SEEK_CUR: self._position, os.SEEK_END: os.fstat(self._descriptor).st_size}
        self._position = starts[whence] + offset
        return self._position

    def close(self) -> None:
        if not self.closed:
            os.close(self._descriptor)
        super().close()
