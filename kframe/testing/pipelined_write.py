"""A write of states that a store starts before the write is requested, and its result."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from kframe.errors import KframeError
from kframe.model.arrays import Bool
from kframe.model.changes import StateChange, WriteResult

Write = Callable[[StateChange], WriteResult]


@dataclass(frozen=True, slots=True, eq=False)
class PipelinedWrite:
    """``outcome`` is the result of writing ``change``, or the exception that it raised."""

    change: StateChange
    outcome: WriteResult | KframeError

    @staticmethod
    def of(change: StateChange, write: Write) -> PipelinedWrite:
        """Write now, and save the result or the exception."""
        try:
            return PipelinedWrite(change, write(change))
        except KframeError as error:
            return PipelinedWrite(change, error)

    def matching_rows(self, change: StateChange) -> Bool:
        """Mask of the rows of ``change`` that were already written with the same values."""
        written = dict(zip(self.change.rows.tolist(), _new_values(self.change), strict=True))
        requested = zip(change.rows.tolist(), _new_values(change), strict=True)
        return np.array([written.get(row) == values for row, values in requested], np.bool_)

    def result(self, change: StateChange, matching_rows: Bool, write: Write) -> WriteResult:
        """The result for ``change``. Rows that were not written before are written now. Raises the exception of
        the first write."""
        if isinstance(self.outcome, KframeError):
            raise self.outcome
        index_by_row = {row: index for index, row in enumerate(self.change.rows.tolist())}
        indexes = np.array([index_by_row[row] for row in change.rows[matching_rows].tolist()], np.int64)
        codes, epochs = np.empty(len(change), np.uint8), np.empty(len(change), np.int32)
        codes[matching_rows], epochs[matching_rows] = self.outcome.codes[indexes], self.outcome.partition_epoch[indexes]
        if not matching_rows.all():
            second = write(change.take(~matching_rows))
            codes[~matching_rows], epochs[~matching_rows] = second.codes, second.partition_epoch
        return WriteResult(codes, epochs)


def _new_values(change: StateChange) -> list[tuple[object, ...]]:
    """The new values of each row."""
    columns = (change.leader, change.leader_epoch, change.recovery, change.expected)
    isrs = [tuple(change.isr[index].tolist()) for index in range(len(change))]
    return [
        (*values, change.controller_epoch)
        for values in zip(*(column.tolist() for column in columns), isrs, strict=True)
    ]
