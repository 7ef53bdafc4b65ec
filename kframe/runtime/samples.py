"""Histograms of durations: their number, and quantiles of the latest."""

from __future__ import annotations

import threading
from collections import deque
from typing import Final

#: Durations retained for quantiles.
SAMPLES_MAX: Final = 1024


class Samples:
    """Durations in milliseconds. One thread adds, any may read."""

    def __init__(self) -> None:
        self._count = 0
        self._last: deque[float] = deque(maxlen=SAMPLES_MAX)
        self._lock = threading.Lock()

    @property
    def count(self) -> int:
        """Number of durations added since the start or ``forget``."""
        return self._count

    def add(self, duration_ms: float) -> None:
        """Add a duration."""
        with self._lock:
            self._count += 1
            self._last.append(duration_ms)

    def forget(self) -> None:
        """Reset the histogram."""
        with self._lock:
            self._count = 0
            self._last.clear()

    def quantile(self, quantile: float) -> float:
        """A quantile (0 to 1) of the retained durations. 0 if there are none."""
        return self.quantiles((quantile,))[0]

    def quantiles(self, probabilities: tuple[float, ...]) -> list[float]:
        """Several quantiles of the same durations."""
        with self._lock:
            ordered = sorted(self._last)
        last = len(ordered) - 1
        return [ordered[min(int(quantile * len(ordered)), last)] if ordered else 0.0 for quantile in probabilities]
