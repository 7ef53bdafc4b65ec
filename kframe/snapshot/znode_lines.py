"""The lines of a ZooKeeper dump that a kernel reads: topics, partitions and their states, as columns."""

from __future__ import annotations

import base64
from collections.abc import Iterator
from enum import IntEnum
from typing import Final, NamedTuple

import numpy as np

from kframe import kernels
from kframe.model.arrays import Int32
from kframe.snapshot import files

#: The numbers of a state, in the order of the kernel. The partition and the version of the znode come before them.
STATE_NUMBERS: Final = ("leader", "leader_epoch", "controller_epoch", "leader_recovery_state")
#: Most groups, states and broker ids of ISRs, and assigned partitions and replicas that one call of the kernel reads.
_GROUPS, _ROWS, _VALUES, _PARTITIONS, _REPLICAS = 4_096, 4_096, 16_384, 32_768, 98_304


class LineKind(IntEnum):
    """What the lines of a group are."""

    OTHER = 0
    """A line that the kernel does not read."""
    TOPIC = 1
    STATES = 2


class LineGroup(NamedTuple):
    """A line, or consecutive states. ``line`` is the index of the first, ``rows`` counts partitions or states.

    ``start`` is the offset of the line; ``name_start``, ``name_end`` and ``id_start`` (-1: no id) are the topic's.
    """

    kind: int
    line: int
    start: int
    name_start: int
    name_end: int
    id_start: int
    rows: int

    def text(self, block: bytes) -> bytes:
        """The line, with its end."""
        return block[self.start : block.index(b"\n", self.start) + 1]

    def name(self, block: bytes) -> str:
        """The topic."""
        return block[self.name_start : self.name_end].decode()

    def topic_id(self, block: bytes) -> bytes | None:
        """The 16 bytes of the topic's id."""
        if self.id_start < 0:
            return None
        return base64.urlsafe_b64decode(block[self.id_start : self.id_start + 22] + b"==")


class ZnodeLines:
    """Lines of topics, partitions and their states. The arrays are those of the last ``read``."""

    def __init__(self) -> None:
        self._groups, self.line = np.empty((_GROUPS, len(LineGroup._fields)), np.int32), np.empty(_ROWS, np.int32)
        self._assigned, self._replicas = np.zeros((3, _PARTITIONS), np.int32), np.empty(_REPLICAS, np.int32)
        self.numbers = np.empty((2 + len(STATE_NUMBERS), _ROWS), np.int32)
        self._counts, self._values = np.empty(_ROWS, np.int32), np.empty(_VALUES, np.int32)
        self._result = np.zeros(4, np.int32)

    def read(self, block: bytes, start: int) -> int:
        """Read lines from an offset up to the first that is no JSON object. Returns the offset after the last line."""
        return kernels.read_znode_lines(
            block,
            start,
            files.LINE_BYTES_MAX,
            self._groups,
            self._assigned,
            self._replicas,
            self.line,
            self.numbers,
            self._counts,
            self._values,
            self._result,
        )

    @property
    def line_count(self) -> int:
        """How many lines were read."""
        return int(self._result[0])

    @property
    def rows(self) -> int:
        """How many states were read."""
        return int(self._result[3])

    def groups(self) -> Iterator[LineGroup]:
        """Topics, states and other lines, in the order of the lines."""
        return map(LineGroup._make, self._groups[: self._result[1]].tolist())

    def assignments(self) -> tuple[Int32, Int32, Int32]:
        """The partitions of topics, the numbers of their replicas, and the replicas."""
        partition, counts, _ = self._assigned[:, : self._result[2]]
        return partition, counts, self._replicas[: counts.sum()]

    def isrs(self) -> tuple[Int32, Int32]:
        """The lengths and the values of the ISRs."""
        counts = self._counts[: self.rows]
        return counts, self._values[: counts.sum()]
