"""Arrays with an element for every row of a cluster, reused by one batch after another.

New arrays for each batch would cost time in the size of the cluster, not of the batch: the operating system clears all
pages that the scattered rows touch.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

import numpy as np

from kframe.model.arrays import Int32, Int64

#: Arrays are larger than the cluster by one row in this many.
GROWTH_SHARE: Final = 8


class Scratch:
    """Size and pool offset of each row's entry: 12 bytes a row, retained for the next batch."""

    def __init__(self) -> None:
        self._free_arrays: list[tuple[Int32, Int64]] = []

    @contextmanager
    def reserve(self, rows: int) -> Iterator[tuple[Int32, Int64]]:
        """Two uninitialized arrays of ``rows`` elements for exclusive use in the block.

        Nested use gets separate arrays: batches may be encoded concurrently.
        """
        try:
            arrays = self._free_arrays.pop()
        except IndexError:
            arrays = np.empty(0, np.int32), np.empty(0, np.int64)
        if len(arrays[0]) < rows:
            size = rows + rows // GROWTH_SHARE
            arrays = np.empty(size, np.int32), np.empty(size, np.int64)
        try:
            yield arrays[0][:rows], arrays[1][:rows]
        finally:
            self._free_arrays = [arrays]  # Only the last of several is retained.
