"""Which brokers have acknowledged which UpdateMetadata requests, counted in batches.

A channel delivers requests in order, one at a time, and LeaderAndIsr precedes UpdateMetadata in each batch. Once a
broker has acknowledged the UpdateMetadata of a batch, it has therefore processed every earlier batch too.
"""

from __future__ import annotations

import sys
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from kframe.model.arrays import Int64, UInt8

#: In place of a batch number: no response of the broker can acknowledge the metadata any more.
NEVER: Final = sys.maxsize


class Acknowledgements:
    """The newest UpdateMetadata sent to and acknowledged by each broker. All arrays are (brokers,), by broker index."""

    def __init__(self) -> None:
        self._sent = np.zeros(0, np.int64)
        self._acknowledged = np.zeros(0, np.int64)

    @property
    def next_batch(self) -> int:
        """The number of the next batch. Numbers start at 1."""
        return int(self._sent.max(initial=0)) + 1

    def sent(self, brokers: NDArray[Any], batch: int) -> None:
        """UpdateMetadata of ``batch`` is on its way to ``brokers`` (indexes)."""
        if len(brokers):
            self._reserve(int(brokers.max()) + 1)
            self._sent[brokers] = batch

    def acknowledge(self, broker: int, batch: int) -> None:
        """``broker`` has applied the metadata of all batches up to ``batch``."""
        self._reserve(broker + 1)
        self._acknowledged[broker] = max(self._acknowledged[broker], batch)

    def missing(self, live: UInt8) -> list[tuple[int, int]]:
        """(broker index, batch) for each live broker that has not acknowledged the newest UpdateMetadata sent to it."""
        self._reserve(len(live))
        count = len(live)
        brokers = np.flatnonzero((self._acknowledged[:count] < self._sent[:count]) & (live != 0))
        return list(zip(brokers.tolist(), self._sent[brokers].tolist(), strict=True))

    def drop_acknowledged(self, missing: list[tuple[int, int]], live: UInt8) -> None:
        """Remove from the end of ``missing`` what has been acknowledged since, and brokers that are not live any more.

        Stops at the first entry that is still missing, so that the cost over all responses is linear.
        """
        while missing:
            broker, batch = missing[-1]
            if live[broker] and self._acknowledged[broker] < batch:
                return
            missing.pop()

    def any_acknowledged(self, missing: list[tuple[int, int]], live: UInt8) -> bool:
        """Whether a live broker has responded, with or without an error, to what ``missing`` brokers have not."""
        if any(live[broker] for broker, batch in missing if batch == NEVER):
            return True
        first = min((batch for _, batch in missing), default=0)
        self._reserve(len(live))
        return bool(((self._acknowledged[: len(live)] >= first) & (live != 0)).any())

    def refused(self, missing: list[tuple[int, int]], broker: int, batch: int) -> list[tuple[int, int]]:
        """``missing`` after ``broker`` has refused the metadata of ``batch``: an unacknowledged batch is NEVER."""
        self._reserve(broker + 1)
        acknowledged = int(self._acknowledged[broker])
        return [
            (index, NEVER if index == broker and acknowledged < number <= batch else number)
            for index, number in missing
        ]

    def _reserve(self, count: int) -> None:
        if count > len(self._sent):
            self._sent, self._acknowledged = _extended(self._sent, count), _extended(self._acknowledged, count)


def _extended(numbers: Int64, count: int) -> Int64:
    return np.concatenate([numbers, np.zeros(count - len(numbers), np.int64)])
