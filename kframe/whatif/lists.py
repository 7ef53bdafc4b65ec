"""Lists of broker ids held against one another, all at once."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from kframe.model.columns import Bool, Int32, Int64, Ragged, offsets_of


def absent(lists: Ragged, others: Ragged) -> Bool:
    """Beside ``lists.values``: whether the list of ``others`` with the same number lacks it."""
    missing: Bool = ~np.isin(_keys(lists), _keys(others))
    return missing


def kept(lists: Ragged, wanted: Bool) -> Ragged:
    """What a mask beside ``lists.values`` chooses of each list."""
    offsets = offsets_of(count(lists, wanted))
    return Ragged(offsets, lists.values[wanted])


def count(lists: Ragged, hit: Bool) -> Int32:
    """How many values of each list are hit."""
    return np.bincount(owners(lists)[hit], minlength=len(lists)).astype(np.int32)


def repeated(lists: Ragged) -> Bool:
    """Which lists name a value twice."""
    keys = np.sort(_keys(lists))
    found = np.zeros(len(lists), np.bool_)
    found[keys[1:][keys[1:] == keys[:-1]] >> 32] = True
    return found


def loads(lists: Ragged, broker_ids: Int32) -> Int64:
    """How often each of ``broker_ids``, ascending or not, stands in the lists; ids that are not among them are passed
    over."""
    order = np.argsort(broker_ids)
    ordered = broker_ids[order]
    at = np.searchsorted(ordered, lists.values)
    known = at < len(ordered)
    known[known] = ordered[at[known]] == lists.values[known]
    counts = np.zeros(len(broker_ids), np.int64)
    counts[order] = np.bincount(at[known], minlength=len(broker_ids))
    return counts


def owners(lists: Ragged) -> Int64:
    """The number of the list that each value is in."""
    return np.repeat(np.arange(len(lists), dtype=np.int64), lists.counts)


def _keys(lists: Ragged) -> NDArray[np.int64]:
    """A number for each pair of list and value."""
    return owners(lists) << 32 | (lists.values.astype(np.int64) & 0xFFFFFFFF)
