"""The readings of a source that were used last, so that pages of the same position share them."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable
from itertools import count
from threading import Lock
from typing import Final

from kframe_console.sources.reading import Reading

#: Readings that are retained. Each has all columns of a cluster.
_RETAINED: Final = 4


class RetainedReadings:
    """Readings by position, the least recently used ones dropped first. Each has a number of its own, from 1."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._numbers = count(1)
        self._readings: OrderedDict[Hashable, Reading] = OrderedDict()

    def get(self, position: Hashable, read: Callable[[int], Reading]) -> Reading:
        """The reading of a position. ``read`` makes it, with the number that it gets. Raises what ``read`` raises."""
        with self._lock:
            if position in self._readings:
                self._readings.move_to_end(position)
                return self._readings[position]
        reading = read(next(self._numbers))
        with self._lock:
            reading = self._readings.setdefault(position, reading)
            while len(self._readings) > _RETAINED:
                self._readings.popitem(last=False)
            return reading

    def clear(self) -> None:
        """Drop all readings."""
        with self._lock:
            self._readings.clear()
