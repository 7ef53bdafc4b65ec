"""The types of arrays, and lists of different lengths in two arrays."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

Int8: TypeAlias = NDArray[np.int8]
UInt8: TypeAlias = NDArray[np.uint8]
UInt16: TypeAlias = NDArray[np.uint16]
Int16: TypeAlias = NDArray[np.int16]
Int32: TypeAlias = NDArray[np.int32]
Int64: TypeAlias = NDArray[np.int64]
Float64: TypeAlias = NDArray[np.float64]
Bool: TypeAlias = NDArray[np.bool_]


def offsets_of(counts: NDArray[Any] | list[int]) -> Int32:
    """Start offsets of concatenated lists of these lengths. The end of the last list follows."""
    offsets = np.zeros(len(counts) + 1, np.int32)
    np.cumsum(counts, out=offsets[1:])
    return offsets


@dataclass(frozen=True, slots=True, eq=False)
class Ragged:
    """Lists of different lengths in two arrays: list ``i`` is ``values[offsets[i]:offsets[i + 1]]``."""

    offsets: Int32
    values: Int32

    @staticmethod
    def of(lists: list[list[int]] | list[tuple[int, ...]]) -> Ragged:
        """Pack Python lists. For tests and small inputs."""
        offsets = offsets_of([len(row) for row in lists])
        flat = [value for row in lists for value in row]
        return Ragged(offsets, np.array(flat, np.int32))

    @staticmethod
    def empty(count: int) -> Ragged:
        """``count`` empty lists."""
        return Ragged(np.zeros(count + 1, np.int32), np.empty(0, np.int32))

    @property
    def counts(self) -> Int32:
        """Length of each list."""
        return self.offsets[1:] - self.offsets[:-1]

    @property
    def owners(self) -> Int32:
        """For each of ``values``: the number of its list."""
        return np.repeat(np.arange(len(self), dtype=np.int32), self.counts)

    @property
    def first(self) -> Bool:
        """For each of ``values``: whether it is the first of its list."""
        mask = np.zeros(len(self.values), np.bool_)
        mask[self.offsets[:-1][self.counts > 0]] = True
        return mask

    def count(self, hit: Bool) -> Int32:
        """Number of values of each list that a mask over ``values`` selects."""
        return np.diff(offsets_of(hit)[self.offsets])

    def any(self, hit: Bool) -> Bool:
        """Whether a mask over ``values`` selects any value of each list."""
        return self.count(hit) > 0 if hit.any() else np.zeros(len(self), np.bool_)

    def keep(self, mask: Bool) -> Ragged:
        """The lists with only the values that a mask over ``values`` selects."""
        return self if mask.all() else Ragged(offsets_of(mask)[self.offsets], self.values[mask])

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def __getitem__(self, index: int) -> Int32:
        return self.values[self.offsets[index] : self.offsets[index + 1]]

    def part(self, first: int, last: int) -> Ragged:
        """The lists from number ``first`` up to ``last``, or to the end. The values are a view."""
        offsets = self.offsets[first : last + 1]
        return Ragged(offsets - offsets[0], self.values[offsets[0] : offsets[-1]])

    @staticmethod
    def chain(parts: Sequence[Ragged]) -> Ragged:
        """Concatenate ``parts`` (at least one) along the lists."""
        counts = np.concatenate([part.counts for part in parts])
        return Ragged(offsets_of(counts), np.concatenate([part.values for part in parts]))

    def tile(self, count: int) -> Ragged:
        """All lists, ``count`` times one after another."""
        offsets = np.empty(count * len(self) + 1, np.int32)
        first = np.arange(count, dtype=np.int32)[:, None] * self.offsets[-1]
        np.add(first, self.offsets[:-1], out=offsets[:-1].reshape(count, len(self)))
        offsets[-1] = count * int(self.offsets[-1])
        return Ragged(offsets, np.tile(self.values, count))

    def spread(self, positions: NDArray[Any], count: int) -> Ragged:
        """``count`` lists: list ``i`` of these becomes list ``positions[i]`` (ascending), all others are empty."""
        counts = np.zeros(count, np.int32)
        counts[positions] = self.counts
        return Ragged(offsets_of(counts), self.values)

    def take(self, chosen: NDArray[Any]) -> Ragged:
        """The lists numbered ``chosen``, in that order."""
        starts = self.offsets[:-1][chosen]
        counts = self.offsets[1:][chosen] - starts
        return Ragged(offsets_of(counts), self.values[ragged_positions(starts, counts)])

    def select(self, chosen: Bool) -> Ragged:
        """The lists that a mask selects."""
        return self if chosen.all() else self.take(np.flatnonzero(chosen))


def ragged_positions(starts: NDArray[Any], counts: NDArray[Any]) -> Int64:
    """Flat positions ``starts[i] .. starts[i] + counts[i]`` of every ``i``, one after another."""
    first, counts = starts.astype(np.int64, copy=False), counts.astype(np.int64, copy=False)
    if len(counts) and bool((counts == counts[0]).all()):
        return np.ravel(first[:, None] + np.arange(int(counts[0]), dtype=np.int64))
    before: Int64 = np.repeat(first - (np.cumsum(counts) - counts), counts)
    return np.arange(len(before), dtype=np.int64) + before


def positions_within(counts: NDArray[Any]) -> Int32:
    """``0 .. counts[i] - 1`` of every ``i``, one after another."""
    if len(counts) and bool((counts == counts[0]).all()):
        return np.tile(np.arange(int(counts[0]), dtype=np.int32), len(counts))
    return ragged_positions(np.zeros(len(counts), np.int32), counts).astype(np.int32)
