"""Reads the batches of a file in parts, so that a reader's memory does not depend on the size of the file.

A part has ``PART_BYTES``, or a single larger batch. Batches of the same part share its buffer.
"""

from __future__ import annotations

import os
import weakref
from collections.abc import Iterator
from typing import IO, Final, Protocol

import numpy as np
from crc32c import crc32c

from kframe.plugin.columns import UInt8
from kframe_kraft.batches import BatchHeader, RecordBatch, read_batch
from kframe_kraft.batches.header import (
    CHECKED_START,
    HEADER_BYTES,
    MAGIC,
    MAGIC_START,
    PREFIX,
    READ_BYTES_MAX,
    read_header,
)
from kframe_kraft.errors import BatchError

#: Bytes to read at once.
PART_BYTES: Final = 1 << 20


class BatchSource(Protocol):
    """A segment or snapshot: a path, or another file that can be opened more than once."""

    @property
    def name(self) -> str:
        """The name without directories."""

    def open(self, mode: str, /) -> IO[bytes]:
        """Open the content."""


class BatchFile:
    """A segment or snapshot, up to the size that it has when it is opened here.

    With ``keep_open`` the file stays open until this object is released, so that its content remains after the node has
    deleted it.
    """

    def __init__(self, source: BatchSource, *, keep_open: bool = True) -> None:
        """Raises OSError if the file cannot be opened."""
        self.name = source.name
        self._source = source
        self._descriptor: int | None = None
        with source.open("rb") as file:
            self.size = file.seek(0, os.SEEK_END)
            if keep_open:
                self._descriptor = os.dup(file.fileno())
                weakref.finalize(self, os.close, self._descriptor)

    def batches(self, position: int = 0, end: int | None = None) -> Iterator[RecordBatch]:
        """Yield the batches from byte ``position`` to ``end``. Raises BatchError at the first malformed one."""
        part = _FilePart(self)
        end = self.size if end is None else end
        while position < end:
            batch = part.batch(position)
            yield batch
            position += batch.header.size

    def headers(self, position: int, end: int) -> Iterator[BatchHeader]:
        """Yield the headers of the batches from byte ``position`` to ``end``, without a check of their CRC."""
        part = _FilePart(self)
        while position < end:
            header = part.header(position)
            yield header
            position += header.size

    def find(self, pattern: bytes, position: int, end: int) -> Iterator[int]:
        """Yield where ``pattern`` begins from byte ``position`` to ``end``, ascending. Nothing is decoded."""
        for start in range(position, end, PART_BYTES):
            data = self.read(start, min(PART_BYTES + len(pattern) - 1, end - start))
            index = data.find(pattern)
            while index >= 0:
                yield start + index
                index = data.find(pattern, index + 1)

    def batch(self, position: int) -> RecordBatch:
        """The batch at byte ``position``. Raises BatchError if it is malformed."""
        return _FilePart(self).batch(position)

    def has_valid_crc(self, position: int) -> bool:
        """Whether the batch at byte ``position`` was written completely: its CRC is that of its bytes.

        If it is malformed even so, its writer made a mistake, and it is no torn tail.
        """
        start = self.read(position, HEADER_BYTES)
        if len(start) < HEADER_BYTES or start[MAGIC_START] != MAGIC:
            return False
        size = PREFIX.unpack_from(start)[1] + PREFIX.size
        if not HEADER_BYTES <= size <= min(READ_BYTES_MAX, self.size - position):
            return False
        crc = int.from_bytes(start[CHECKED_START - 4 : CHECKED_START], "big")
        return crc32c(self.read(position + CHECKED_START, size - CHECKED_START)) == crc

    def read(self, position: int, count: int) -> bytes:
        """So many bytes, or those up to ``size``. Raises BatchError if the file has become shorter."""
        count = min(count, self.size - position)
        if self._descriptor is not None:
            data = os.pread(self._descriptor, count, position)
        else:
            with self._source.open("rb") as file:
                file.seek(position)
                data = file.read(count)
        if len(data) < count:
            end = position + len(data)
            raise BatchError(f"{self.name}, byte {end}", "the end of the file", f"{self.size} bytes, its former size")
        return data


class _FilePart:
    """The bytes of a file around the current batch."""

    def __init__(self, file: BatchFile) -> None:
        self._file = file
        self._start = 0
        self._data: UInt8 = np.empty(0, np.uint8)

    def batch(self, position: int) -> RecordBatch:
        self._require(position, HEADER_BYTES)
        if self._file.size - position >= PREFIX.size:
            size = PREFIX.unpack_from(self._data.data, position - self._start)[1] + PREFIX.size
            if HEADER_BYTES <= size <= READ_BYTES_MAX:
                self._require(position, size)
        return read_batch(self._data, position - self._start, self._file.name, self._start, self._file.size)

    def header(self, position: int) -> BatchHeader:
        self._require(position, HEADER_BYTES)
        where = f"{self._file.name}, byte {position}"
        return read_header(self._data.data, position - self._start, where, self._file.size - position)

    def _require(self, position: int, count: int) -> None:
        """Have so many bytes from ``position`` on, or those up to the end of the file."""
        end = min(position + count, self._file.size)
        if not self._start <= position or end > self._start + len(self._data):
            self._start = position
            self._data = np.frombuffer(self._file.read(position, max(count, PART_BYTES)), np.uint8)
