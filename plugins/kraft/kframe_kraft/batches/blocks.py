"""Records of consecutive batches in one buffer, so that bulk code does not depend on the size of batches."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from typing import Final

import numpy as np

from kframe.plugin.columns import Int64, UInt8
from kframe_kraft.batches.reading import Frames, RecordBatch, frames_of

#: Records of a block, unless a single batch has more. A record needs 44 bytes besides its bytes in the file.
BLOCK_RECORDS: Final = 1 << 20


class RecordBlock:
    """The data records of batches whose payloads are in the same buffer, numbered from 0."""

    def __init__(self, batches: Sequence[RecordBatch]) -> None:
        self.batches = batches
        self.payload: UInt8 = batches[0].buffer
        counts = [len(batch.value_start) for batch in batches]
        self._firsts: Int64 = np.cumsum([0, *counts])
        self._bases: Int64 = np.array([batch.header.base_offset for batch in batches], np.int64)
        self.value_start: Int64 = np.concatenate([batch.value_start + batch.payload_start for batch in batches])
        self.value_length = np.concatenate([batch.value_length for batch in batches])

    def __len__(self) -> int:
        return len(self.value_start)

    @cached_property
    def _frames(self) -> Frames:
        return frames_of(self, self.value_start, self.value_length)

    def frames(self) -> Frames:
        """The frames of all records. Raises RecordError for the first malformed one."""
        return self._frames

    def value(self, row: int) -> bytes:
        """The value of a record."""
        return self.payload[self.value_start[row] : self.value_start[row] + self.value_length[row]].tobytes()

    def offset(self, row: int) -> int:
        """The offset of a record in its file."""
        number = int(np.searchsorted(self._firsts, row, side="right")) - 1
        return int(self._bases[number]) + row - int(self._firsts[number])

    def name(self, row: int) -> str:
        """The name of a record in error messages."""
        number = int(np.searchsorted(self._firsts, row, side="right")) - 1
        return f"{self.batches[number].where}, offset {self.offset(row)}"


def blocks_of(batches: Iterable[RecordBatch]) -> Iterator[RecordBlock]:
    """Yield the data batches as blocks, in their order. Control batches are left out."""
    group: list[RecordBatch] = []
    count = 0
    for batch in batches:
        if batch.header.is_control:
            continue
        if group and (batch.buffer is not group[0].buffer or count + len(batch.value_start) > BLOCK_RECORDS):
            yield RecordBlock(group)
            group, count = [], 0
        group.append(batch)
        count += len(batch.value_start)
    if group:
        yield RecordBlock(group)
