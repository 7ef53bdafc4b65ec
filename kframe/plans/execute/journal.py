"""The journal of an execution: an append-only file whose entries survive a crash at any byte.

A line is the CRC-32 of the line before it and of its JSON, in eight hexadecimal digits, and the JSON. Each append is
synchronized before it returns. A last line that a crash has torn is dropped; any other damage is an error.
"""

from __future__ import annotations

import fcntl
import os
import zlib
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Final, Self

import msgspec

from kframe.errors import InputError
from kframe.plans.execute.entries import VERSION, Entry, ExecutionStarted

_ENCODER: Final = msgspec.json.Encoder()
_DECODER: Final[msgspec.json.Decoder[Entry]] = msgspec.json.Decoder(Entry)
_DIGITS: Final = 8


class JournalError(InputError):
    """A journal cannot be read, or is not the one of this plan and cluster."""


class JournalLocked(JournalError):
    """Another process executes by this journal."""


class Journal:
    """A journal that is open for appending, and locked against other processes. It is a context manager."""

    def __init__(self, path: Path, descriptor: int, checksum: int) -> None:
        """Use ``create`` and ``resume``. ``descriptor`` is at the end of the last whole line."""
        self.path = path
        self._descriptor = descriptor
        self._checksum = checksum

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    @classmethod
    def create(cls, path: Path, start: ExecutionStarted) -> Journal:
        """A new journal with its first entry. Raises JournalError where the file exists or cannot be written.

        The file gets its name once the entry is on the disk, so that no journal is without it.
        """
        draft = path.with_name(f"{path.name}.{os.getpid()}")
        journal = cls(path, _open(draft, os.O_RDWR | os.O_CREAT | os.O_TRUNC), 0)
        try:
            _lock(path, journal._descriptor)
            journal.append(start)
            os.link(draft, path)
            _synchronize_directory(path.parent)
        except FileExistsError as problem:
            journal.close()
            raise JournalError(str(path), "an existing file", "a new file") from problem
        except BaseException:
            journal.close()
            raise
        finally:
            draft.unlink(missing_ok=True)
        return journal

    @classmethod
    def resume(cls, path: Path) -> tuple[Journal, list[Entry]]:
        """An existing journal and its entries. A torn last line is removed. Raises JournalError and JournalLocked."""
        descriptor = _open(path, os.O_RDWR)
        journal = cls(path, descriptor, 0)
        try:
            _lock(path, descriptor)
            entries, journal._checksum, length = _parse(path, path.read_bytes())
            os.ftruncate(descriptor, length)
            os.fsync(descriptor)
            os.lseek(descriptor, 0, os.SEEK_END)
        except BaseException:
            journal.close()
            raise
        return journal, entries

    def append(self, entry: Entry) -> None:
        """Append an entry, and return when it is on the disk. Raises OSError with the name of the file."""
        text = _ENCODER.encode(entry)
        checksum = zlib.crc32(text, self._checksum)
        line = b"%08x " % checksum + text + b"\n"
        try:
            while line:
                line = line[os.write(self._descriptor, line) :]
            os.fsync(self._descriptor)
        except OSError as problem:
            problem.filename = str(self.path)
            raise
        self._checksum = checksum

    def close(self) -> None:
        """Close the file, which unlocks it."""
        os.close(self._descriptor)


def read_journal(path: Path) -> list[Entry]:
    """The entries of a journal that another process may be writing. Raises JournalError."""
    try:
        data = path.read_bytes()
    except OSError as problem:
        raise JournalError(str(path), problem.strerror or str(problem), "a journal of kframe plan execute") from problem
    return _parse(path, data)[0]


def is_locked(path: Path) -> bool:
    """Whether a process executes by this journal now. Raises JournalError where it cannot be opened."""
    descriptor = _open(path, os.O_RDWR)
    try:
        _lock(path, descriptor)
    except JournalLocked:
        return True
    finally:
        os.close(descriptor)
    return False


def _parse(path: Path, data: bytes) -> tuple[list[Entry], int, int]:
    """The entries, the checksum of the last whole line, and the length up to it."""
    lines = data.split(b"\n")
    entries: list[Entry] = []
    checksum = length = 0
    for number, line in enumerate(lines[:-1], 1):
        text = line[_DIGITS + 1 :]
        expected = b"%08x " % zlib.crc32(text, checksum)
        if line[: _DIGITS + 1] != expected:
            if number == len(lines) - 1 and entries:
                break  # A torn write that has the line's end, but not all of the line.
            checksum_text = line[:_DIGITS].decode("ascii", "replace")
            raise JournalError(f"{path}:{number}", f"checksum {checksum_text!r}", f"{expected.decode().strip()!r}")
        try:
            entries.append(_DECODER.decode(text))
        except msgspec.DecodeError as problem:
            raise JournalError(f"{path}:{number}", str(problem), "an entry of a journal") from problem
        checksum = zlib.crc32(text, checksum)
        length += len(line) + 1
    _check_start(path, entries)
    return entries, checksum, length


def _check_start(path: Path, entries: Sequence[Entry]) -> None:
    if not entries or not isinstance(entries[0], ExecutionStarted):
        raise JournalError(str(path), "no first entry", "a journal of kframe plan execute")
    if not 1 <= entries[0].version <= VERSION:
        raise JournalError(f"{path}:1", f"version {entries[0].version}", f"version 1 to {VERSION}")


def _open(path: Path, flags: int) -> int:
    try:
        return os.open(path, flags | os.O_CLOEXEC, 0o644)
    except OSError as problem:
        raise JournalError(str(path), problem.strerror or str(problem), "a journal of kframe plan execute") from problem


def _lock(path: Path, descriptor: int) -> None:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as problem:
        raise JournalLocked(
            str(path), "another process that executes by it", "none; kframe plan pause or abort ends it"
        ) from problem


def _synchronize_directory(folder: Path) -> None:
    """Return when the names of files in a folder are on the disk."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
