"""Random numbers for the placement of replicas. The caller provides them, so that a decision can be repeated."""

from __future__ import annotations

from collections.abc import MutableSequence
from typing import Any, Final, Protocol

_MULTIPLIER: Final = 0x5DEECE66D
_MASK: Final = 2**48 - 1
_INT_BITS: Final = 31


class RandomSource(Protocol):
    """Draws integers."""

    def next_int(self, bound: int) -> int:
        """A number from 0 to ``bound - 1``."""


class JavaRandom:
    """The generator of ``java.util.Random``: with Kafka's seed it draws Kafka's placement."""

    def __init__(self, seed: int) -> None:
        self._seed = (seed ^ _MULTIPLIER) & _MASK

    def next_int(self, bound: int) -> int:
        """A number from 0 to ``bound - 1``, as ``Random.nextInt`` draws it."""
        bits = self._next_bits()
        if bound & (bound - 1) == 0:
            return bound * bits >> _INT_BITS
        while bits - bits % bound + bound - 1 >= 2**_INT_BITS:
            bits = self._next_bits()
        return bits % bound

    def _next_bits(self) -> int:
        self._seed = (self._seed * _MULTIPLIER + 0xB) & _MASK
        return self._seed >> (48 - _INT_BITS)


def shuffle(values: MutableSequence[Any], random: RandomSource) -> None:
    """Shuffle in place with the draws of ``java.util.Collections.shuffle``."""
    for size in range(len(values), 1, -1):
        other = random.next_int(size)
        values[size - 1], values[other] = values[other], values[size - 1]
