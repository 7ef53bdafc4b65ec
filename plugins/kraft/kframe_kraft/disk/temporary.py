"""A temporary file for a log or snapshot that comes over the network, so that its size takes no memory."""

from __future__ import annotations

import os
import tempfile
import weakref
from typing import IO


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
        """Open the content so far."""
        return os.fdopen(os.dup(self._descriptor), mode)
