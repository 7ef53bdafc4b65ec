"""A write of states that a store has begun before it was asked for, and what became of it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from kframe.errors import KframeError
from kframe.model.changes import StateChange, WriteResult
from kframe.model.columns import Bool

Write = Callable[[StateChange], WriteResult]


@dataclass(frozen=True, slots=True, eq=False)
class PipelinedWrite:
    """``outcome`` is the answer to ``change``, or what it has raised."""

    change: StateChange
    outcome: WriteResult | KframeError

    @staticmethod
    def of(change: StateChange, write: Write) -> PipelinedWrite:
        """Write now, whatever comes of it."""
        try:
            return PipelinedWrite(change, write(change))
        except KframeError as error:
            return PipelinedWrite(change, error)

    def asked(self, change: StateChange) -> Bool:
        """Mask of the rows that ``change`` asks for exactly as they were written."""
        ours = dict(zip(self.change.rows.tolist(), _wanted(self.change), strict=True))
        theirs = zip(change.rows.tolist(), _wanted(change), strict=True)
        return np.array([ours.get(row) == wanted for row, wanted in theirs], np.bool_)

    def answer(self, change: StateChange, asked: Bool, write: Write) -> WriteResult:
        """The answer to ``change``, whose other rows are written now. Raises what our own write has raised."""
        if isinstance(self.outcome, KframeError):
            raise self.outcome
        place = {row: at for at, row in enumerate(self.change.rows.tolist())}
        ours = np.array([place[row] for row in change.rows[asked].tolist()], np.int64)
        codes, epochs = np.empty(len(change), np.uint8), np.empty(len(change), np.int32)
        codes[asked], epochs[asked] = self.outcome.codes[ours], self.outcome.partition_epoch[ours]
        if not asked.all():
            rest = write(change.take(~asked))
            codes[~asked], epochs[~asked] = rest.codes, rest.partition_epoch
        return WriteResult(codes, epochs)


def _wanted(change: StateChange) -> list[tuple[object, ...]]:
    """What each row is to hold."""
    columns = (change.leader, change.leader_epoch, change.recovery, change.expected)
    isrs = [tuple(change.isr[place].tolist()) for place in range(len(change))]
    return [(*values, change.controller_epoch) for values in zip(*(one.tolist() for one in columns), isrs, strict=True)]
