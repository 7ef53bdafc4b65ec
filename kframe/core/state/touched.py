"""The entries that an event has changed, so that only these are counted again."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

#: Touched entries below which no event falls back to a full count.
TOUCHED_MIN: Final = 1024


class Touched:
    """The entries to count. If an event touches more than ``size()`` (and TOUCHED_MIN) numbers, it means all."""

    def __init__(self, size: Callable[[], int]) -> None:
        """At first all of the ``size()`` entries are touched."""
        self._size = size
        self._parts: list[NDArray[Any]] = []
        self._count = 0
        self._everything = True

    def add(self, entries: NDArray[Any]) -> None:
        """Touch these. An array equal to the last one, as when rows go offline and come online, is added once."""
        if self._everything or len(entries) == 0 or (self._parts and np.array_equal(self._parts[-1], entries)):
            return
        self._parts.append(entries)
        self._count += len(entries)
        if self._count >= max(self._size(), TOUCHED_MIN):
            self.add_everything()

    def add_everything(self) -> None:
        """Touch all entries."""
        self._everything = True
        self._parts.clear()

    def take(self) -> list[NDArray[Any]] | None:
        """The touched entries since the last call. None means all."""
        taken = None if self._everything else self._parts
        self._parts, self._count, self._everything = [], 0, False
        return taken
