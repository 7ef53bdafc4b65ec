"""Sums over numbered entries, updated by counting only touched entries."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from kframe.model.lists import distinct_values

#: Touched entries below which no event falls back to a full count.
TOUCHED_MIN: Final = 1024
#: Numbers of entries, or a range, which needs no gather.
Entries: TypeAlias = NDArray[Any] | slice


class Touched:
    """The entries to count. If an event touches more than ``size()`` (and ``touched_min``) numbers, it means all."""

    def __init__(self, size: Callable[[], int], touched_min: int = TOUCHED_MIN) -> None:
        """At first all of the ``size()`` entries are touched."""
        self._size, self._touched_min = size, touched_min
        self._parts: list[NDArray[Any]] = []
        self._count = 0
        self._everything = True

    def add(self, entries: NDArray[Any]) -> None:
        """Touch these. An array equal to the last one, as when rows go offline and come online, is added once."""
        if self._everything or len(entries) == 0 or (self._parts and np.array_equal(self._parts[-1], entries)):
            return
        self._parts.append(entries)
        self._count += len(entries)
        if self._count >= max(self._size(), self._touched_min):
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


class IncrementalCounts:
    """Sums over numbered entries, updated by counting only touched entries."""

    def __init__(
        self, dtype: type[np.integer[Any]], kinds: int, size: Callable[[], int], touched_min: int = TOUCHED_MIN
    ) -> None:
        """``kinds`` sums over ``size()`` entries, all touched at first. Contributions are of ``dtype``."""
        self.totals = np.zeros(kinds, np.int64)
        self.visited = 0
        """Entries counted so far, a measure of cost."""
        self._size = size
        self._counted = np.zeros((kinds, 0), dtype)
        self._touched = Touched(size, touched_min)

    @property
    def nbytes(self) -> int:
        """Bytes in use, spare capacity included."""
        return self._counted.nbytes

    def touch(self, entries: NDArray[Any]) -> None:
        """Count these at the next ``settle``."""
        self._touched.add(entries)

    def settle(self, count: Callable[[Entries], NDArray[Any]]) -> None:
        """Count touched entries. ``count`` returns the contributions (kinds, entries) of the entries it is given."""
        size = self._size()
        if size > self._counted.shape[1]:
            grown = np.zeros((len(self.totals), size + size // 2), self._counted.dtype)
            grown[:, : self._counted.shape[1]] = self._counted
            self._counted = grown
        touched = self._touched.take()
        if touched is None:
            self._update(slice(0, size), size, count)
        for entries in touched or ():
            distinct = entries if bool((entries[1:] > entries[:-1]).all()) else distinct_values(entries)
            self._update(distinct, len(distinct), count)

    def _update(self, entries: Entries, size: int, count: Callable[[Entries], NDArray[Any]]) -> None:
        """Replace the contributions of ``size`` distinct entries."""
        now = count(entries)
        self.totals += now.sum(axis=1, dtype=np.int64) - self._counted[:, entries].sum(axis=1, dtype=np.int64)
        self._counted[:, entries] = now
        self.visited += size
