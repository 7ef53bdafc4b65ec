"""Sums over numbered entries that are brought up to date by counting only what was touched."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

#: Touches of one event that are always kept one by one.
KEPT_MIN: Final = 1024
#: Numbers of entries, or a range of them, which costs no gathering.
Entries: TypeAlias = NDArray[Any] | slice


class Touched:
    """The entries to count anew. Once as many are kept as there are in all, that means all of them: so an event of any
    size keeps at most one number for each entry, or ``kept_min`` of them."""

    def __init__(self, size: Callable[[], int], kept_min: int = KEPT_MIN) -> None:
        """All of the ``size()`` entries are touched to begin with."""
        self._size, self._kept_min = size, kept_min
        self._parts: list[NDArray[Any]] = []
        self._waiting = 0
        self._everything = True

    def add(self, entries: NDArray[Any]) -> None:
        """Count these anew. The same ones once more, as of rows that go offline and come online, are counted once."""
        if self._everything or len(entries) == 0 or (self._parts and np.array_equal(self._parts[-1], entries)):
            return
        self._parts.append(entries)
        self._waiting += len(entries)
        if self._waiting >= max(self._size(), self._kept_min):
            self.add_everything()

    def add_everything(self) -> None:
        """Count all entries anew."""
        self._everything = True
        self._parts.clear()

    def take(self) -> list[NDArray[Any]] | None:
        """What was touched since the last time; None if that is everything."""
        taken = None if self._everything else self._parts
        self._parts, self._waiting, self._everything = [], 0, False
        return taken


class Tally:
    """Sums over numbered entries, brought up to date by counting only those entries that were touched."""

    def __init__(
        self, dtype: type[np.integer[Any]], kinds: int, size: Callable[[], int], kept_min: int = KEPT_MIN
    ) -> None:
        """``kinds`` sums over ``size()`` entries, all of them touched; an entry counts for a ``dtype`` in each."""
        self.totals = np.zeros(kinds, np.int64)
        self.visited = 0
        """Entries counted so far: what all this has cost."""
        self._size = size
        self._counted = np.zeros((kinds, 0), dtype)
        self._touched = Touched(size, kept_min)

    @property
    def nbytes(self) -> int:
        """Bytes held for single entries, room to grow included."""
        return self._counted.nbytes

    def touch(self, entries: NDArray[Any]) -> None:
        """Count these anew at the next ``settle``."""
        self._touched.add(entries)

    def settle(self, count: Callable[[Entries], NDArray[Any]]) -> None:
        """Count what was touched: ``count`` gives, for some entries, what each counts for (kinds, entries)."""
        size = self._size()
        if size > self._counted.shape[1]:
            grown = np.zeros((len(self.totals), size + size // 2), self._counted.dtype)
            grown[:, : self._counted.shape[1]] = self._counted
            self._counted = grown
        touched = self._touched.take()
        if touched is None:
            self._take_over(slice(0, size), size, count)
        for entries in touched or ():
            once = entries if bool((entries[1:] > entries[:-1]).all()) else np.unique(entries)
            self._take_over(once, len(once), count)

    def _take_over(self, entries: Entries, size: int, count: Callable[[Entries], NDArray[Any]]) -> None:
        """Let ``size`` entries, each named once, count for what they count for now."""
        now = count(entries)
        self.totals += now.sum(axis=1, dtype=np.int64) - self._counted[:, entries].sum(axis=1, dtype=np.int64)
        self._counted[:, entries] = now
        self.visited += size
