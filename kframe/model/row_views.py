"""Consecutive rows and slots: arrays that need no copy."""

from __future__ import annotations

from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

_Scalar = TypeVar("_Scalar", bound=np.generic)


def values_at(column: NDArray[_Scalar], rows: NDArray[Any]) -> NDArray[_Scalar]:
    """``column[rows]``, or a view of it where the rows are consecutive, as all rows are. Callers must not modify it.

    Row -1 is the last one, as in NumPy.
    """
    values: NDArray[_Scalar] = column[block_of(rows)]
    return values


def block_of(rows: NDArray[Any]) -> slice | NDArray[Any]:
    """The index of ``rows`` in a column: a slice where they are consecutive, otherwise the array itself."""
    first, last = (int(rows[0]), int(rows[-1])) if len(rows) else (-1, -1)
    is_block = 0 <= first == last - len(rows) + 1 and bool((rows[1:] > rows[:-1]).all())
    return slice(first, last + 1) if is_block else rows


def span_of(rows: NDArray[Any]) -> slice | NDArray[Any]:
    """An index of ``rows`` and of the rows between them: a slice where it has no more elements, otherwise the array."""
    is_dense = len(rows) > 0 and bool(np.ptp(rows) < len(rows))
    return slice(int(rows.min()), int(rows.max()) + 1) if is_dense else rows


def adjacent_blocks(starts: NDArray[Any], lengths: NDArray[Any]) -> bool:
    """Whether blocks of one length follow each other without a gap."""
    return bool((lengths == lengths[0]).all()) and bool((np.diff(starts) == lengths[0]).all())
