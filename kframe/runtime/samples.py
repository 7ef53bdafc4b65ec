"""Durations as a histogram keeps them: how many there were, and quantiles of the last ones."""

from __future__ import annotations

import threading
from collections import deque
from typing import Final

#: Durations kept for quantiles.
SAMPLES_MAX: Final = 1024


class Samples:
    """Durations in milliseconds. One thread adds, any may read."""

    def __init__(self) -> None:
        self._count = 0
        self._last: deque[float] = deque(maxlen=SAMPLES_MAX)
        self._lock = threading.Lock()

    @property
    def count(self) -> int:
        """How many were added since the start or ``forget``."""
        return self._count

    def add(self, duration_ms: float) -> None:
        """Note one more."""
        with self._lock:
            self._count += 1
            self._last.append(duration_ms)

    def forget(self) -> None:
        """Begin anew."""
        with self._lock:
            self._count = 0
            self._last.clear()

    def quantile(self, quantile: float) -> float:
        """The given quantile (0 to 1) of the last ones; 0 before the first."""
        return self.quantiles((quantile,))[0]

    def quantiles(self, wanted: tuple[float, ...]) -> list[float]:
        """Several quantiles of the same moment."""
        with self._lock:
            ordered = sorted(self._last)
        last = len(ordered) - 1
        return [ordered[min(int(quantile * len(ordered)), last)] if ordered else 0.0 for quantile in wanted]
