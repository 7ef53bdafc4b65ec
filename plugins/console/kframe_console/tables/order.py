"""Sort orders of rows by integer keys, by radix: NumPy sorts 16-bit integers so, in a tenth of the time of others."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kframe.plugin.columns import Int32


def stable_order(keys: Sequence[tuple[NDArray[Any], bool]], count: int) -> Int32:
    """(count,) row numbers by these (count,) integer keys, the most significant first, each with whether it descends.

    Rows with equal keys keep their order.
    """
    order = np.arange(count, dtype=np.int32)
    for key, descending in reversed(keys):
        if count and not _is_sorted(key[order], descending):
            for digit in _digits(key, descending):
                order = order[np.argsort(digit[order], kind="stable")]
    return order


def _is_sorted(key: NDArray[Any], descending: bool) -> bool:
    return bool((key[1:] <= key[:-1]).all() if descending else (key[1:] >= key[:-1]).all())


def _digits(key: NDArray[Any], descending: bool) -> Iterator[NDArray[np.uint16]]:
    """The 16-bit digits of a key from its least value, the least significant first."""
    low, high = int(key.min()), int(key.max())
    distance = (high - key.astype(np.int64)) if descending else (key.astype(np.int64) - low)
    for shift in range(0, max((high - low).bit_length(), 1), 16):
        yield (distance >> shift).astype(np.uint16)
