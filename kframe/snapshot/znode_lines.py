"""The lines of a ZooKeeper dump that a kernel reads: partitions and their states, as columns."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import numpy as np

from kframe import kernels
from kframe.model.columns import Int32
from kframe.snapshot import files

#: The numbers of a state, in the order of the kernel. The partition and the version of the znode come before them.
STATE_NUMBERS: Final = ("leader", "leader_epoch", "controller_epoch", "leader_recovery_state")
#: Most topics, states and broker ids that one call of the kernel reads.
_TOPICS, _ROWS, _VALUES = 2_048, 4_096, 16_384


class ZnodeLines:
    """Lines of partitions and their states. The arrays are those of the last ``read``."""

    def __init__(self) -> None:
        self._topics, self.line = np.empty((_TOPICS, 3), np.int32), np.empty(_ROWS, np.int32)
        self.numbers = np.empty((2 + len(STATE_NUMBERS), _ROWS), np.int32)
        self._counts, self._values = np.empty(_ROWS, np.int32), np.empty(_VALUES, np.int32)
        self._result = np.zeros(3, np.int32)

    def read(self, block: bytes, start: int) -> int:
        """Read lines from an offset up to the first of another form. Returns the offset after the last line read."""
        return kernels.read_znode_lines(
            block, start, files.LINE_BYTES_MAX, self._topics, self.line, self.numbers, self._counts, self._values,
            self._result,
        )  # fmt: skip

    @property
    def line_count(self) -> int:
        """How many lines were read."""
        return int(self._result[0])

    @property
    def rows(self) -> int:
        """How many states were read."""
        return int(self._result[2])

    def topics(self, block: bytes) -> Iterator[tuple[str, int]]:
        """The topic of each group of consecutive states, and how many they are."""
        groups = self._topics[: self._result[1]].tolist()
        ends = [*(first for _, _, first in groups[1:]), self.rows]
        for (start, stop, first), end in zip(groups, ends, strict=False):
            yield block[start:stop].decode(), end - first

    def isrs(self) -> tuple[Int32, Int32]:
        """The lengths and the values of the ISRs."""
        counts = self._counts[: self.rows]
        return counts, self._values[: counts.sum()]
