"""The files of a log that is being written. Every change of the disk is one of these methods, so that tests can stop
between two of them, tear a write, or lose what was not synced."""

from __future__ import annotations

import os
import weakref
from dataclasses import dataclass
from pathlib import Path

from kframe_kraft.disk.atomic import replace_file, sync_directory


class LogFile:
    """A file that is appended to and read. Its descriptor stays open until the object is released, so that readers
    finish although the file has been deleted."""

    def __init__(self, path: Path, *, create: bool = False) -> None:
        """Raises OSError; FileExistsError if ``create`` finds a file."""
        flags = os.O_RDWR | os.O_CLOEXEC | (os.O_CREAT | os.O_EXCL if create else 0)
        self._descriptor = os.open(path, flags, 0o644)
        weakref.finalize(self, os.close, self._descriptor)
        self.path = path
        self.size = os.fstat(self._descriptor).st_size

    def fileno(self) -> int:
        """The descriptor."""
        return self._descriptor

    def append(self, data: bytes) -> None:
        """Append ``data``, all or nothing. Raises OSError, for example for a full disk."""
        view, position = memoryview(data), self.size
        try:
            while view:
                written = os.pwrite(self._descriptor, view, position)
                view, position = view[written:], position + written
        except OSError:
            self.truncate(self.size)
            raise
        self.size = position

    def read(self, position: int, count: int) -> bytes:
        """At most ``count`` bytes from ``position`` on."""
        return os.pread(self._descriptor, count, position)

    def truncate(self, size: int) -> None:
        """Drop the bytes from ``size`` on."""
        os.ftruncate(self._descriptor, size)
        self.size = size

    def sync(self) -> None:
        """Make the content durable. After an OSError the content of the disk is unknown."""
        os.fdatasync(self._descriptor)

    def overwrite(self, data: bytes) -> None:
        """Write ``data`` at the beginning, without a sync."""
        os.pwrite(self._descriptor, data, 0)
        self.size = max(self.size, len(data))


@dataclass(frozen=True, slots=True)
class LogSection:
    """``size`` bytes of a file, which do not change, from ``position`` on (``FileSection`` of the server)."""

    file: LogFile
    position: int
    size: int

    def fileno(self) -> int:
        """The descriptor of the file, which is open as long as this object exists."""
        return self.file.fileno()

    def read(self, start: int, count: int) -> bytes:
        """At most ``count`` of the bytes, from the one numbered ``start`` on."""
        return self.file.read(self.position + start, min(count, self.size - start))

    def __len__(self) -> int:
        return self.size


class LogFiles:
    """The files of a directory."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory

    def open(self, name: str) -> LogFile:
        """Open an existing file."""
        return LogFile(self.directory / name)

    def create(self, name: str) -> LogFile:
        """Create a file whose name is durable."""
        path = self.directory / name
        file = LogFile(path, create=True)
        try:
            sync_directory(self.directory)
        except OSError:
            path.unlink(missing_ok=True)
            raise
        return file

    def replace(self, name: str, content: bytes) -> None:
        """Give a file another content, durably; a crash leaves the old or the new one."""
        replace_file(self.directory / name, content)

    def remove(self, name: str) -> None:
        """Remove a file, if it exists, durably: of several files that a crash interrupts, the last ones remain."""
        (self.directory / name).unlink(missing_ok=True)
        sync_directory(self.directory)
