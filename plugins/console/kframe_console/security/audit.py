"""The log of all writes: a line of JSON when one begins, and one when it ends."""

from __future__ import annotations

import os
from datetime import UTC, datetime
from pathlib import Path
from threading import Lock
from typing import Any, Final

import msgspec
from msgspec import Struct

from kframe.plugin import InputError

_MODE: Final = 0o600


class AuditEntry(Struct, frozen=True):
    """A line. ``event`` is ``begin``, ``done``, ``failed`` or ``refused``; ``what_if`` is the predicted result."""

    time: str
    event: str
    user: str
    method: str
    address: str
    action: str
    parameters: dict[str, Any]
    what_if: Any = None
    result: Any = None


class AuditLog:
    """Appends lines to a file, and waits until each is on disk. Without a file it does nothing."""

    def __init__(self, path: Path | None) -> None:
        """Raises InputError if the file cannot be written."""
        self._lock = Lock()
        self._file: int | None = None
        if path is not None:
            try:
                self._file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, _MODE)
            except OSError as problem:
                raise InputError(str(path), problem.strerror or str(problem), "a file that can be written") from problem

    def write(self, entry: AuditEntry) -> None:
        """Append a line. Raises OSError if it cannot: then the caller must not write."""
        if self._file is None:
            return
        line = msgspec.json.encode(entry) + b"\n"
        with self._lock:
            if os.write(self._file, line) != len(line):
                raise OSError("the audit log cannot be written")
            os.fsync(self._file)

    def close(self) -> None:
        """Close the file."""
        if self._file is not None:
            os.close(self._file)
            self._file = None


def timestamp() -> str:
    """The present time as ISO 8601 in UTC."""
    return datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
