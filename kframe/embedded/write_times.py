"""When each row of stored states was last written."""

from __future__ import annotations

from typing import Final

import numpy as np

from kframe.model.arrays import Int32, Int64
from kframe.model.cluster import UNKNOWN_ZXID

#: Writes of fewer rows than one in so many are retained as they are.
_NOTED_SHARE: Final = 4


class WriteTimes:
    """``ClusterState.state_zxid`` of the stored rows. A column would take eight bytes for each row, so there is none
    until a quarter of the rows were written, or their times are read."""

    def __init__(self) -> None:
        self._column = np.empty(0, np.int64)
        self._noted: list[tuple[Int32, int]] = []
        self._noted_rows = 0

    def __bool__(self) -> bool:
        """Whether anything was written."""
        return bool(len(self._column) or self._noted)

    def note(self, rows: Int32, zxid: int, size: int) -> None:
        """``rows``, of ``size`` in all, are written after the transaction ``zxid``."""
        self._noted.append((rows, zxid))
        self._noted_rows += len(rows)
        if self._noted_rows * _NOTED_SHARE > size:
            self.column(size)

    def column(self, size: int) -> Int64:
        """(size,) the last transaction before the last write of each row, or UNKNOWN_ZXID."""
        if len(self._column) < size:
            known, self._column = self._column, np.full(size, UNKNOWN_ZXID, np.int64)
            self._column[: len(known)] = known
        for rows, zxid in self._noted:
            self._column[rows] = zxid
        self._noted, self._noted_rows = [], 0
        return self._column
