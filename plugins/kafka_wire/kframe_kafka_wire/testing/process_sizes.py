"""Memory, threads and descriptors of a process over time, and the slopes that are fitted to them."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Final, NamedTuple

import numpy as np

#: Samples are averaged over this time before the fit, because successive samples depend on each other.
BLOCK_S: Final = 60.0
#: Fewer blocks decide nothing.
_BLOCKS_LEAST: Final = 5
#: Width of the 95 % interval in standard errors.
_ERRORS: Final = 2.0
#: A fit whose interval is wider than so many limits decides nothing.
_WIDEST: Final = 5.0
_HOUR_S: Final = 3_600.0


class Sizes(NamedTuple):
    """A sample of a process."""

    seconds: float
    """Since the start of the samples."""
    memory_kib: int
    """Resident memory."""
    threads: int
    descriptors: int


class Slope(NamedTuple):
    """A line that is fitted to the means of blocks by least squares."""

    start: float
    """Mean of the first block."""
    end: float
    """Mean of the last block."""
    per_hour: float
    error: float
    """Standard error of ``per_hour``."""
    blocks: int

    def outcome(self, limit_per_hour: float) -> str:
        """``flat``, ``grows`` or ``undecided``.

        ``grows``: the 95 % interval of the slope is above the limit. ``undecided``: there are fewer than five blocks,
        or the interval is wider than five limits on each side.
        """
        if self.blocks < _BLOCKS_LEAST or not _ERRORS * self.error <= _WIDEST * limit_per_hour:
            return "undecided"
        return "grows" if self.per_hour - _ERRORS * self.error > limit_per_hour else "flat"


def sizes_of(pid: int, begun_s: float) -> Sizes:
    """A sample of a process, from Linux's ``/proc``. Raises OSError if the process has ended."""
    status = Path(f"/proc/{pid}/status").read_text()
    (memory_kib,), (threads,) = (
        re.findall(rf"^{name}:\s+(\d+)", status, re.MULTILINE) for name in ("VmRSS", "Threads")
    )  # fmt: skip
    descriptors = len(os.listdir(f"/proc/{pid}/fd"))
    return Sizes(round(time.monotonic() - begun_s, 1), int(memory_kib), int(threads), descriptors)


def slope_of(seconds: Sequence[float], values: Sequence[float], warm_up_s: float) -> Slope:
    """The slope of the samples after ``warm_up_s``. Without two blocks, its error is infinite."""
    at, sampled = np.asarray(seconds, np.float64), np.asarray(values, np.float64)
    after = at >= warm_up_s
    block = ((at[after] - warm_up_s) // BLOCK_S).astype(np.int64)
    numbers = np.unique(block)
    hours = np.array([at[after][block == number].mean() for number in numbers]) / _HOUR_S
    means = np.array([sampled[after][block == number].mean() for number in numbers])
    if len(means) < 3:
        return Slope(float(sampled[0]), float(sampled[-1]), 0.0, float("inf"), len(means))
    (per_hour, _), covariance = np.polyfit(hours, means, 1, cov=True)
    return Slope(float(means[0]), float(means[-1]), float(per_hour), float(np.sqrt(covariance[0, 0])), len(means))
