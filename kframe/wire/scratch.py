"""Arrays with a place for every row of a cluster, lent to one batch after another.

Made anew for each batch they would cost what the cluster has, not what the batch tells of: rows lie far apart, so all
of the memory would be touched, and the system clears memory before it hands it out.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

import numpy as np

from kframe.model.columns import Int32, Int64

#: One row in so many is room to grow.
GROWTH_SHARE: Final = 8


class Scratch:
    """Lends the bytes of each row's entry, and where it stands in a pool: 12 bytes a row, kept for the next batch."""

    def __init__(self) -> None:
        self._spare: list[tuple[Int32, Int64]] = []

    @contextmanager
    def lend(self, rows: int) -> Iterator[tuple[Int32, Int64]]:
        """Two arrays of ``rows`` entries with anything in them, nobody else's until they are given back.

        Whoever borrows while another still does gets arrays of their own: batches may be encoded side by side.
        """
        try:
            lent = self._spare.pop()
        except IndexError:
            lent = np.empty(0, np.int32), np.empty(0, np.int64)
        if len(lent[0]) < rows:
            size = rows + rows // GROWTH_SHARE
            lent = np.empty(size, np.int32), np.empty(size, np.int64)
        try:
            yield lent[0][:rows], lent[1][:rows]
        finally:
            self._spare = [lent]  # of several only the last is kept
