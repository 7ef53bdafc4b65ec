"""Files of a log that stop at a chosen operation, as a killed process does, or lose what was not synced, as a power
failure does."""

from __future__ import annotations

import errno
from dataclasses import dataclass, field
from pathlib import Path
from random import Random

from kframe_kraft.log import LogFile, LogFiles


class Stopped(BaseException):
    """The process ends here. No handler of errors may go on."""


@dataclass(slots=True)
class Faults:
    """Counts operations; number ``stop_at`` (from 1 on) is the last one, and may happen in part.

    With ``loses_unsynced`` a crash also loses what no sync had made durable. ``ignores_syncs``: the disk says that it
    has synced, and has not. ``bytes_max`` is the room for appended bytes.
    """

    random: Random
    stop_at: int | None = None
    loses_unsynced: bool = False
    ignores_syncs: bool = False
    fails_syncs: bool = False
    bytes_max: int | None = None
    operations: int = 0
    files: dict[Path, FaultyFile] = field(default_factory=dict)
    unsynced: dict[Path, int] = field(default_factory=dict)
    """The durable bytes of files of a process before, which ended without a power failure."""

    def step(self) -> bool:
        """Count an operation. Returns whether it is the last one."""
        self.operations += 1
        if self.stop_at is not None and self.operations > self.stop_at:
            raise Stopped
        return self.operations == self.stop_at

    def crash(self) -> dict[Path, int]:
        """Bring the files into the state in which the next process finds them. Returns those that are not durable."""
        durable = self.unsynced | {path: file.durable for path, file in self.files.items()}
        durable = {path: size for path, size in durable.items() if path.exists() and size < path.stat().st_size}
        if not self.loses_unsynced:
            return durable
        for path, size in durable.items():
            path.write_bytes(self._after_power_failure(path.read_bytes(), size))
        return {}

    def _after_power_failure(self, content: bytes, durable: int) -> bytes:
        """The durable bytes and a random part of the others, which may have a hole of zeros."""
        remaining = bytearray(content[: self.random.randint(min(durable, len(content)), len(content))])
        if len(remaining) > durable and self.random.random() < 0.3:
            first = self.random.randint(durable, len(remaining) - 1)
            last = self.random.randint(first, len(remaining))
            remaining[first:last] = bytes(last - first)
        return bytes(remaining)


class FaultyFile(LogFile):
    """``durable`` bytes survive a power failure."""

    def __init__(self, faults: Faults, path: Path, *, create: bool = False) -> None:
        super().__init__(path, create=create)
        self._faults = faults
        self.durable = min(self.size, faults.unsynced.pop(path, self.size))
        faults.files[path] = self

    def append(self, data: bytes) -> None:
        """See ``LogFile.append``."""
        room = self._faults.bytes_max
        if room is not None and len(data) > room:
            super().append(data[: room // 2])
            self.truncate(self.size - room // 2)
            raise OSError(errno.ENOSPC, "No space left on device")
        if self._faults.step():
            super().append(data[: self._faults.random.randint(0, len(data))])
            raise Stopped
        if room is not None:
            self._faults.bytes_max = room - len(data)
        super().append(data)

    def truncate(self, size: int) -> None:
        """See ``LogFile.truncate``."""
        super().truncate(size)
        self.durable = min(self.durable, size)

    def sync(self) -> None:
        """See ``LogFile.sync``."""
        if self._faults.fails_syncs:
            raise OSError(errno.EIO, "Input/output error")
        size = self.size
        is_last = self._faults.step()
        super().sync()
        if not self._faults.ignores_syncs:
            self.durable = size
        if is_last:
            raise Stopped

    def overwrite(self, data: bytes) -> None:
        """See ``LogFile.overwrite``; a small write in place is not torn."""
        is_last = self._faults.step()
        super().overwrite(data)
        self.durable = max(self.durable, len(data))
        if is_last:
            raise Stopped


class FaultyFiles(LogFiles):
    """The files of a directory, with faults."""

    def __init__(self, directory: Path, faults: Faults) -> None:
        super().__init__(directory)
        self._faults = faults

    def open(self, name: str) -> LogFile:
        """See ``LogFiles.open``."""
        return FaultyFile(self._faults, self.directory / name)

    def create(self, name: str) -> LogFile:
        """See ``LogFiles.create``."""
        is_last = self._faults.step()
        file = FaultyFile(self._faults, self.directory / name, create=True)
        if is_last:
            raise Stopped
        return file

    def replace(self, name: str, content: bytes) -> None:
        """See ``LogFiles.replace``."""
        is_last = self._faults.step()
        if is_last and self._faults.random.random() < 0.5:
            (self.directory / f"{name}.tmp").write_bytes(content[: len(content) // 2])
            raise Stopped
        super().replace(name, content)
        self._faults.files.pop(self.directory / name, None)
        if is_last:
            raise Stopped

    def remove(self, name: str) -> None:
        """See ``LogFiles.remove``."""
        path = self.directory / name
        is_last = self._faults.step()
        super().remove(name)
        self._faults.files.pop(path, None)
        if is_last:
            raise Stopped
