"""Pseudo-random numbers from a seed, a purpose and a position (the splitmix64 mixing function)."""

from __future__ import annotations

from enum import IntEnum
from typing import Final

import numpy as np
from numpy.typing import NDArray

from kframe.model.arrays import Int32, Int64

_MASK: Final = 2**64 - 1
_STEP: Final = 0x9E3779B97F4A7C15
_FIRST: Final = 0xBF58476D1CE4E5B9
_SECOND: Final = 0x94D049BB133111EB


class Purpose(IntEnum):
    """The purpose of a random number. Numbers of different purposes are independent. Values are part of digests."""

    START = 1
    SHIFT = 2
    TOPIC_ID_HIGH = 3
    TOPIC_ID_LOW = 4
    UNCLEAN = 5
    UNDER_REPLICATED = 6
    LAGGING = 7
    OFF_PREFERRED = 8
    PLAN_ORDER = 9


def hashed(seed: int, purpose: Purpose, count: int) -> NDArray[np.uint64]:
    """(count,) 64 random bits for each of the positions from 0."""
    origin = _mixed((seed & _MASK) ^ _mixed(purpose))
    bits = np.arange(1, count + 1, dtype=np.uint64)
    bits *= np.uint64(_STEP)
    bits += np.uint64(origin)
    for shift, factor in ((30, _FIRST), (27, _SECOND)):
        bits ^= bits >> np.uint64(shift)
        bits *= np.uint64(factor)
    bits ^= bits >> np.uint64(31)
    return bits


def draw(seed: int, purpose: Purpose, count: int, bound: int) -> Int32:
    """(count,) numbers from 0 to ``bound - 1``. ``bound`` is at most 2^31."""
    high = hashed(seed, purpose, count) >> np.uint64(32)
    return (high * np.uint64(bound) >> np.uint64(32)).astype(np.int32)


def sample_positions(seed: int, purpose: Purpose, count: int, share: float) -> Int64:
    """Positions below ``count``, each sampled with probability ``share``: none at 0, all at 1."""
    if share <= 0.0:
        return np.empty(0, np.int64)
    threshold = round(share * 2**53)
    return np.flatnonzero(hashed(seed, purpose, count) >> np.uint64(11) < np.uint64(threshold))


def _mixed(value: int) -> int:
    """Mix one number, so that neighbouring seeds and purposes are independent."""
    value = (value + _STEP) & _MASK
    value = ((value ^ value >> 30) * _FIRST) & _MASK
    value = ((value ^ value >> 27) * _SECOND) & _MASK
    return value ^ value >> 31
