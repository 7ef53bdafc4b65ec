"""The metadata of a cluster while its log is replayed forward, batch by batch."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from kframe.plugin.kraft import ClusterMetadata
from kframe_kraft.batches import RecordBatch, RecordBlock, blocks_of
from kframe_kraft.disk import LogHistory, Rows, TransactionFilter
from kframe_kraft.errors import LogError
from kframe_kraft.replay import Replay


class Timeline:
    """Replays a history. ``metadata`` has all committed records below ``offset``."""

    def __init__(self, history: LogHistory) -> None:
        self.history = history
        self.metadata = ClusterMetadata()
        self.offset = history.snapshot_id.offset
        self._replay = Replay(self.metadata)
        self._transactions = TransactionFilter[RecordBlock]()
        self._batches = iter(history.log.batches)
        self._next: RecordBatch | None = None
        """The next batch to replay, if it was read."""
        for block in blocks_of(history.snapshot.batches if history.snapshot else ()):
            self._replay.apply(Rows(block, block.frames(), np.arange(len(block))), self.offset - 1)

    def advance(self, end: int) -> ClusterMetadata:
        """Replay the batches below ``end``, which is the base offset of a batch or the end of the log.

        Records of an open transaction are buffered. Raises LogError if ``end`` is below ``offset``.
        """
        if end < self.offset:
            raise LogError("offset", str(end), f"{self.offset} or later")
        for block in blocks_of(self._batches_below(end)):
            for rows in self._transactions.apply(block):
                self._replay.apply(rows)
        self.offset = max(self.offset, end)
        return self.metadata

    def _batches_below(self, end: int) -> Iterator[RecordBatch]:
        while (batch := self._next or next(self._batches, None)) is not None:
            self._next = batch if batch.header.base_offset >= end else None
            if self._next is not None:
                break
            yield batch
