"""Sort orders of rows by integer keys: keys and row numbers are packed into words, which NumPy sorts by vectors."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from kframe.plugin.columns import Int32

_WORD_BITS: Final = 64


def stable_order(keys: Sequence[tuple[NDArray[Any], bool]], count: int) -> Int32:
    """(count,) row numbers by these (count,) integer keys, the most significant first, each with whether it descends.

    Rows with equal keys keep their order.
    """
    if not count:
        return np.empty(0, np.int32)
    order = positions = np.arange(count, dtype=np.uint64)
    position_bits = max((count - 1).bit_length(), 1)
    digits = [digit for key, descending in keys for digit in _digits(key, descending, _WORD_BITS - position_bits)]
    for word in reversed([*_words(digits, _WORD_BITS - position_bits)]):
        packed = (word if order is positions else word[order]) << np.uint64(position_bits)
        packed |= positions
        packed.sort()
        order = order[packed & np.uint64((1 << position_bits) - 1)]
    return order.astype(np.int32)


def _digits(key: NDArray[Any], descending: bool, bits_max: int) -> Iterator[tuple[NDArray[np.uint64], int]]:
    """The digits of a key, as its distance from the first value, with their bits. The most significant comes first."""
    low, high = int(key.min()), int(key.max())
    values = key.astype(np.int64)
    distance = (high - values if descending else values - low).view(np.uint64)
    bits = (high - low).bit_length()
    for shift in range((bits - 1) // bits_max * bits_max if bits else -1, -1, -bits_max):
        yield (distance >> np.uint64(shift)) & np.uint64((1 << bits_max) - 1), min(bits - shift, bits_max)


def _words(digits: Sequence[tuple[NDArray[np.uint64], int]], bits_max: int) -> Iterator[NDArray[np.uint64]]:
    """Consecutive digits, packed as long as they fit. The most significant word comes first."""
    word, used = None, 0
    for digit, bits in digits:
        if word is None or used + bits > bits_max:
            if word is not None:
                yield word
            word, used = digit, bits
        else:
            word, used = (word << np.uint64(bits)) | digit, used + bits
    if word is not None:
        yield word
