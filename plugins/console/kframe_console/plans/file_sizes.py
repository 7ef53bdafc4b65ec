"""The sizes of partitions in a file, which is read again only when it has changed."""

from __future__ import annotations

from typing import Any

from kframe.plugin.columns import Int64
from kframe.plugin.plans import ReplicaSizes, read_sizes
from kframe.plugin.snapshot import Snapshot


class FileSizes:
    """The bytes of a replica of each row of a snapshot, from the file of ``--weights``."""

    def __init__(self, path: Any) -> None:
        self._path = path
        self._read: tuple[tuple[int, int], ReplicaSizes] | None = None

    def __call__(self, snapshot: Snapshot) -> Int64:
        """Raises InputError for an unusable file, or one that lacks a partition of the snapshot."""
        return self._sizes().weights(snapshot)

    def _sizes(self) -> ReplicaSizes:
        """The content of the file, read again if its size or its time of modification differs."""
        try:
            status = self._path.stat()
        except OSError:
            return read_sizes(self._path)  # It raises the error.
        version = status.st_size, status.st_mtime_ns
        if self._read is None or self._read[0] != version:
            self._read = version, read_sizes(self._path)
        return self._read[1]
