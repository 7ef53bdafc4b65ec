"""The readings of a source that were used last: pages of the same position share them."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable
from itertools import count
from threading import Lock
from typing import Final

from kframe_console.sources.reading import Reading

#: Most readings. Each has all columns of a cluster.
_READINGS_MAX: Final = 4


class ReadingCache:
    """Readings by position; the least recently used is dropped first. They are numbered from 1."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._numbers = count(1)
        self._readings: OrderedDict[Hashable, Reading] = OrderedDict()

    def get(self, position: Hashable, read: Callable[[int], Reading]) -> Reading:
        """The reading at a position. ``read`` makes it with the given number. Raises what ``read`` raises."""
        with self._lock:
            if position in self._readings:
                self._readings.move_to_end(position)
                return self._readings[position]
        reading = read(next(self._numbers))
        with self._lock:
            reading = self._readings.setdefault(position, reading)
            while len(self._readings) > _READINGS_MAX:
                self._readings.popitem(last=False)
            return reading

    def clear(self) -> None:
        """Drop all readings."""
        with self._lock:
            self._readings.clear()
