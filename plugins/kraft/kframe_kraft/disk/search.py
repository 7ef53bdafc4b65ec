"""Finds the batches of a file whose batches do not follow one another, because some of it is damaged."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import numpy as np
from numpy.typing import NDArray

from kframe.plugin.columns import UInt8
from kframe_kraft.batches import BatchHeader, RecordBatch
from kframe_kraft.batches.header import HEADER_BYTES, MAGIC, PREFIX, read_header
from kframe_kraft.disk.batch_files import BatchFile
from kframe_kraft.errors import BatchError

#: Bytes to search at once.
_PART_BYTES: Final = 1 << 18
#: The position of the leader epoch and of the magic in a batch.
_EPOCH_START: Final = PREFIX.size
_MAGIC_START: Final = PREFIX.size + 4
#: The first bytes of an offset below 2**40.
_OFFSET_ZEROS: Final = 3


def readable_batches(file: BatchFile, position: int, offset: int) -> Iterator[RecordBatch]:
    """Yield the valid batches of ``offset`` or later from byte ``position`` on, wherever they begin.

    Offsets above 2**40 and leader epochs above 2**24 are not found, so that most bytes need no closer check.
    """
    while position + HEADER_BYTES <= file.size:
        part = np.frombuffer(file.read(position, _PART_BYTES + HEADER_BYTES), np.uint8)
        following = position + min(_PART_BYTES, len(part))
        for start in _possible_starts(part).tolist():
            if position + start < following and (batch := _batch_at(file, part, position, start, offset)) is not None:
                yield batch
                following = position + start + batch.header.size
                break
        position = following


def _possible_starts(part: UInt8) -> NDArray[np.intp]:
    """The positions in ``part`` with the magic of a batch, and zeros where offset and epoch begin."""
    starts = np.flatnonzero(part[_MAGIC_START : len(part) - HEADER_BYTES + _MAGIC_START + 1] == MAGIC)
    is_possible = part[starts + _EPOCH_START] == 0
    for byte in range(_OFFSET_ZEROS):
        is_possible &= part[starts + byte] == 0
    return np.compress(is_possible, starts)


def _batch_at(file: BatchFile, part: UInt8, position: int, start: int, offset: int) -> RecordBatch | None:
    """The batch at byte ``start`` of the part at ``position``; None if it is malformed, or below ``offset``."""
    try:
        header: BatchHeader = read_header(part.data, start, file.name, file.size - position - start)
        return file.batch(position + start) if header.base_offset >= offset else None
    except BatchError:
        return None
