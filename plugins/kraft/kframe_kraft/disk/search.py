"""Finds the batches of a file whose batches do not follow one another, because some of it is damaged."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import numpy as np
from numpy.typing import NDArray

from kframe.plugin.columns import UInt8
from kframe_kraft.batches import RecordBatch
from kframe_kraft.batches.header import HEADER_BYTES, MAGIC, MAGIC_START, PREFIX, read_header
from kframe_kraft.disk.batch_files import BatchFile
from kframe_kraft.errors import BatchError

#: Bytes to search at once.
_PART_BYTES: Final = 1 << 18
#: The position of the leader epoch in a batch.
_EPOCH_START: Final = PREFIX.size
#: The first bytes of an offset below 2**40.
_OFFSET_ZEROS: Final = 3


def readable_batches(file: BatchFile, position: int, offset: int) -> Iterator[RecordBatch]:
    """Yield the valid batches from byte ``position`` on, wherever they begin; the first one is of ``offset`` or later.

    Offsets above 2**40 and leader epochs above 2**24 are not found, so that most bytes need no closer check.
    """
    while (start := _next_start(file, position, offset)) is not None:
        position = start
        try:
            for batch in file.batches(start):
                yield batch
                position += batch.header.size
        except BatchError:
            position += 1


def _next_start(file: BatchFile, position: int, offset: int) -> int | None:
    """The byte where the next valid batch of ``offset`` or later begins, None if there is none."""
    while position + HEADER_BYTES <= file.size:
        part = np.frombuffer(file.read(position, _PART_BYTES + HEADER_BYTES), np.uint8)
        for start in _possible_starts(part).tolist():
            if _is_batch(file, part, position, start, offset):
                return position + int(start)
        position += _PART_BYTES
    return None


def _possible_starts(part: UInt8) -> NDArray[np.intp]:
    """The positions in ``part`` with the magic of a batch, and zeros where offset and epoch begin."""
    starts = np.flatnonzero(part[MAGIC_START : len(part) - HEADER_BYTES + MAGIC_START + 1] == MAGIC)
    is_possible = part[starts + _EPOCH_START] == 0
    for byte in range(_OFFSET_ZEROS):
        is_possible &= part[starts + byte] == 0
    return np.compress(is_possible, starts)


def _is_batch(file: BatchFile, part: UInt8, position: int, start: int, offset: int) -> bool:
    """Whether a valid batch of ``offset`` or later begins at byte ``start`` of the part at ``position``."""
    try:
        header = read_header(part.data, start, file.name, file.size - position - start)
        if header.base_offset >= offset:
            file.batch(position + start)
    except BatchError:
        return False
    return header.base_offset >= offset
