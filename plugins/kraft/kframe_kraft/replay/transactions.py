"""Buffers the records of a transaction until it ends, and drops those of an aborted one (KIP-868)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from kframe_kraft.batches import RecordBatch, RecordBlock
from kframe_kraft.batches.reading import Frames
from kframe_kraft.errors import LogError

BEGIN: Final = 23
END: Final = 24
ABORT: Final = 25


@dataclass(frozen=True, slots=True, eq=False)
class Rows:
    """Records of a batch or block to replay, by number, ascending."""

    batch: RecordBatch | RecordBlock
    frames: Frames
    rows: NDArray[Any]


class TransactionFilter:
    """Yields records in the order of the log, those of a transaction at its EndTransaction."""

    def __init__(self) -> None:
        self.pending: list[Rows] = []
        """The records of the open transaction so far."""
        self.begin_offset: int | None = None
        """The offset of the BeginTransaction without an end. None outside of transactions."""

    def apply(self, batch: RecordBatch | RecordBlock) -> list[Rows]:
        """Return the records that may be replayed after this data batch or block, without the transaction markers.

        Raises LogError if a transaction begins in another, or ends without a beginning.
        """
        frames = batch.frames()
        markers: NDArray[Any] = np.flatnonzero((frames.api_key >= BEGIN) & (frames.api_key <= ABORT))
        replayable: list[Rows] = []
        first = 0
        for marker in [*markers.tolist(), len(frames.api_key)]:
            if marker > first:
                target = replayable if self.begin_offset is None else self.pending
                target.append(Rows(batch, frames, np.arange(first, marker)))
            first = marker + 1
            if marker < len(frames.api_key):
                replayable += self._mark(batch, marker, int(frames.api_key[marker]))
        return replayable

    def _mark(self, batch: RecordBatch | RecordBlock, marker: int, kind: int) -> list[Rows]:
        if (kind == BEGIN) != (self.begin_offset is None):
            reason = "a transaction within a transaction" if kind == BEGIN else "the end of a transaction"
            raise LogError(batch.name(marker), reason, "BeginTransaction before EndTransaction or AbortTransaction")
        if kind == BEGIN:
            self.begin_offset = batch.offset(marker)
            return []
        replayable = self.pending if kind == END else []
        self.pending, self.begin_offset = [], None
        return replayable
