"""Whether a size grows over time: a line through the means of blocks of samples."""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

#: With fewer blocks the outcome is undecided.
_BLOCKS_MIN: Final = 5
#: Width of the 95 % interval in standard errors.
_ERRORS: Final = 2.0
#: The outcome is undecided if the interval is wider than this many limits.
_INTERVAL_LIMITS_MAX: Final = 5.0
_HOUR_S: Final = 3_600.0


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
        if self.blocks < _BLOCKS_MIN or not _ERRORS * self.error <= _INTERVAL_LIMITS_MAX * limit_per_hour:
            return "undecided"
        return "grows" if self.per_hour - _ERRORS * self.error > limit_per_hour else "flat"


def slope_of(seconds: ArrayLike, values: ArrayLike, warm_up_s: float, block_s: float) -> Slope:
    """The slope of the samples after ``warm_up_s``. Without three blocks, its error is infinite.

    Samples are averaged over ``block_s`` before the fit, because successive samples depend on each other.
    """
    times, sampled = np.asarray(seconds, np.float64), np.asarray(values, np.float64)
    after = times >= warm_up_s
    block = ((times[after] - warm_up_s) // block_s).astype(np.int64)
    numbers = np.unique(block)
    hours = np.array([times[after][block == number].mean() for number in numbers]) / _HOUR_S
    means = np.array([sampled[after][block == number].mean() for number in numbers])
    if len(means) < 3:
        return Slope(float(sampled[0]), float(sampled[-1]), 0.0, float("inf"), len(means))
    (per_hour, _), covariance = np.polyfit(hours, means, 1, cov=True)
    return Slope(float(means[0]), float(means[-1]), float(per_hour), float(np.sqrt(covariance[0, 0])), len(means))
