"""``.lock`` in ``metadata.log.dir``: one process writes the directory (Kafka ``FileLock``)."""

from __future__ import annotations

import fcntl
import os
from pathlib import Path
from typing import Final

from kframe_kraft.errors import LogError

FILE_NAME: Final = ".lock"


class DirectoryLock:
    """Holds the lock until ``release`` or the end of the process. Java's FileChannel takes the same kind of lock."""

    def __init__(self, directory: Path) -> None:
        """Raises LogError if another process holds the lock, or the file cannot be opened."""
        path = directory / FILE_NAME
        try:
            self._descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        except OSError as error:
            raise LogError(str(path), error.strerror or str(error), "a file that can be written") from error
        try:
            fcntl.lockf(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            os.close(self._descriptor)
            raise LogError(
                str(path), "a lock of another process", "that no other process uses the directory"
            ) from error

    def release(self) -> None:
        """Release the lock. Another call does nothing."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1
