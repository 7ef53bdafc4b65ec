"""Vectorised operations on many lists at once (``Ragged``)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import Any, Final, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from kframe.model.arrays import Bool, Int32, Int64, Ragged, offsets_of

_Scalar = TypeVar("_Scalar", bound=np.generic)

#: Length up to which each pair of values in a list is compared.
SHORT: Final = 64
#: Lists that are compared at a time.
_BLOCK: Final = 1 << 14


def members(lists: Ragged, others: Ragged) -> Bool:
    """For each of ``lists.values``: whether the list of the same number in ``others`` contains it."""
    return _by_blocks(_members, lists, others)


def _by_blocks(marks: Callable[..., Bool], lists: Ragged, *others: Ragged) -> Bool:
    """What ``marks`` returns for these lists, and others of the same number, from blocks that fit into the caches."""
    result = np.empty(len(lists.values), np.bool_)
    for first in range(0, len(lists), _BLOCK):
        part = marks(*(argument.part(first, first + _BLOCK) for argument in (lists, *others)))
        result[lists.offsets[first] :][: len(part)] = part
    return result


def _members(lists: Ragged, others: Ragged) -> Bool:
    """One pass per position of the longest list in ``others``, over values without a match so far: lists are short.
    Where all lists have the same length, as they mostly have, each pass is over a column of a table, so that NumPy's
    inner loops run over lists, which are many, not within them."""
    result = np.zeros(len(lists.values), np.bool_)
    if (width := common_length(lists)) and (others_width := common_length(others)):
        columns = others.values.reshape(-1, others_width).T
        for marks, values in zip(result.reshape(-1, width).T, lists.values.reshape(-1, width).T, strict=True):
            for column in columns:
                np.logical_or(marks, values == column, out=marks)
        return result
    starts, remaining = np.repeat(others.offsets[:-1], lists.counts), np.repeat(others.counts, lists.counts)
    position, pending = 0, np.flatnonzero(remaining)
    while len(pending):
        result[pending] = lists.values[pending] == others.values[starts[pending] + position]
        position += 1
        pending = pending[~result[pending] & (remaining[pending] > position)]
    return result


def common_length(lists: Ragged) -> int:
    """The length of every list; 0 if they differ."""
    counts = lists.counts
    is_same = len(counts) > 0 and counts[0] * len(counts) == len(lists.values) and bool((counts == counts[0]).all())
    return int(counts[0]) if is_same else 0


def last_of_equal(keys: NDArray[Any]) -> Int32:
    """For each key the position of the last key equal to it."""
    if bool((keys[1:] > keys[:-1]).all()):
        return np.arange(len(keys), dtype=np.int32)
    position, owner = np.unique(keys[::-1], return_index=True)[1], np.unique(keys, return_inverse=True)[1]
    last: Int32 = (len(keys) - 1 - position)[owner].astype(np.int32)
    return last


def repeated(lists: Ragged) -> Bool:
    """For each of ``lists.values``: whether the same value occurs earlier in its list."""
    return _by_blocks(_repeated, lists)


def _repeated(lists: Ragged) -> Bool:
    """One pass per distance within the longest list, which is short, over a table where all lists have the same length.
    A long list is malformed input; it is sorted."""
    result = np.zeros(len(lists.values), np.bool_)
    if lists.counts.max(initial=0) > SHORT:
        owner = np.repeat(np.arange(len(lists.counts)), lists.counts)
        order = np.lexsort((lists.values, owner))  # stable: equal values keep their order
        equal = lists.values[order[1:]] == lists.values[order[:-1]]
        result[order[1:]] = equal & (owner[order[1:]] == owner[order[:-1]])
        return result
    if width := common_length(lists):
        columns, marks = lists.values.reshape(-1, width).T, result.reshape(-1, width).T
        for position in range(1, width):
            for column in columns[:position]:
                marks[position] |= columns[position] == column
        return result
    within = np.arange(len(result), dtype=np.int32) - np.repeat(lists.offsets[:-1], lists.counts)
    distance, pending = 1, np.flatnonzero(within)
    while len(pending):
        result[pending] |= lists.values[pending] == lists.values[pending - distance]
        distance += 1
        pending = pending[within[pending] >= distance]
    return result


def distinct(lists: Ragged) -> Ragged:
    """Each list with only the first of its equal values."""
    return lists.keep(~repeated(lists))


def distinct_values(values: NDArray[_Scalar]) -> NDArray[_Scalar]:
    """The values that occur in a flat array, ascending.

    ``np.unique`` returns the same. From NumPy 2.3 on it hashes integers, which takes 20 to 30 times as long as sorting
    where most of a million values differ.
    """
    is_ascending = bool(np.greater_equal(values[1:], values[:-1]).all())
    ordered = values if is_ascending else np.sort(values)
    is_last = np.ones(len(values), np.bool_)
    np.not_equal(ordered[1:], ordered[:-1], out=is_last[:-1])
    return ordered.copy() if is_last.all() else ordered[is_last]


def distinct_combinations(columns: Sequence[NDArray[Any]]) -> tuple[Int64, Int64]:
    """The combinations (c, m) of values that occur in ``m`` columns (k,) of small integers, and (k,) their numbers.

    ``np.unique`` of a table returns the same, and takes many times as long: it compares rows.
    """
    shape = [int(column.max(initial=0)) + 1 for column in columns]
    if prod(shape) > np.iinfo(np.int64).max:
        table, number = np.unique(np.stack(columns, axis=1).astype(np.int64), axis=0, return_inverse=True)
        return table, number.reshape(-1)
    keys, number = np.unique(np.ravel_multi_index(tuple(columns), shape), return_inverse=True)
    return np.stack(np.unravel_index(keys, shape), axis=1), number.reshape(-1)


def without_values(values: NDArray[_Scalar], removed: ArrayLike) -> NDArray[_Scalar]:
    """The values that occur in ``values`` and not in ``removed``, ascending. ``np.setdiff1d`` hashes both."""
    ordered = distinct_values(values)
    return np.compress(~np.isin(ordered, removed), ordered)


def distinct_rows(rows: Int32, count: int) -> Int32:
    """The values that occur in ``rows``, ascending. All are below ``count``."""
    if len(rows) * 64 < count:
        return distinct_values(rows).astype(np.int32, copy=False)
    named = np.zeros(count, np.bool_)
    named[rows[: count * 64]] = True
    if not named.all():  # of many rows, the first ones mostly name all
        named[rows[count * 64 :]] = True
    return np.flatnonzero(named).astype(np.int32)


def same_lists(left: Ragged, right: Ragged) -> Bool:
    """Whether list ``i`` of both has the same values in the same order, for every ``i``."""
    same: Bool = left.counts == right.counts
    if not same.all():
        both = np.flatnonzero(same)
        same[both] = same_lists(left.take(both), right.take(both))
        return same
    differ = np.flatnonzero(left.values != right.values)
    same[np.searchsorted(left.offsets, differ, side="right") - 1] = False
    return same


def lists_at(lists: Ragged, rows: Int32) -> Ragged:
    """The lists of these rows, an empty one for -1."""
    counts = np.where(rows >= 0, lists.counts[rows], 0) if len(lists) else np.zeros(len(rows), np.int32)
    offsets = offsets_of(counts)
    return Ragged(offsets, lists.take(rows[rows >= 0]).values)


def loads(lists: Ragged, broker_ids: Int32, weights: Int64 | None = None) -> Int64:
    """How often each of ``broker_ids``, ascending or not, stands in the lists; ids that are not among them are passed
    over. With ``weights`` of the lists (k,), their sum for each broker, exact up to 2^53."""
    order = np.argsort(broker_ids)
    ordered = broker_ids[order]
    indexes = np.searchsorted(ordered, lists.values)
    known = indexes < len(ordered)
    known[known] = ordered[indexes[known]] == lists.values[known]
    counts = np.zeros(len(broker_ids), np.int64)
    values = None if weights is None else np.repeat(weights.astype(np.float64), lists.counts)[known]
    counts[order] = np.bincount(indexes[known], values, minlength=len(broker_ids))
    return counts


def sum_by_key(keys: Int64, changes: NDArray[Any]) -> tuple[Int64, Int32]:
    """The distinct keys, ascending, each with the sum of its changes. Those whose sum is 0 are left out."""
    order = np.argsort(keys, kind="stable")
    keys = keys[order]
    first = np.flatnonzero(np.append(True, keys[1:] != keys[:-1])[: len(keys)])
    sums = np.add.reduceat(changes[order], first, dtype=np.int32) if len(first) else np.empty(0, np.int32)
    return keys[first][sums != 0], sums[sums != 0]
