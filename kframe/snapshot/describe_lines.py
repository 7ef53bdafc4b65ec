"""The lines of ``kafka-topics --describe`` that a kernel reads, as columns."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, NamedTuple

import numpy as np

from kframe import kernels
from kframe.model.arrays import Int32
from kframe.snapshot import files

#: The lists of a partition and the labels that are printed for them, in the order of the kernel.
LIST_LABELS: Final = {
    "replicas": "Replicas",
    "isr": "Isr",
    "adding_replicas": "Adding Replicas",
    "removing_replicas": "Removing Replicas",
    "elr": "Elr",
    "last_known_elr": "LastKnownElr",
}
#: The labels of a partition's line, in the order of the bits of a mask.
_LABELS: Final = (*LIST_LABELS.values(), "Offline", "Partition", "Leader")
#: The bits of a mask for ``Elr`` and for ``Elr: N/A``.
_ELR, _NO_ELR = 1 << 4, 1 << 9
#: Most topics, partitions and entries of a column of lists that one call reads.
_TOPICS, _ROWS, _VALUES = 64, 4_096, 16_384


class TopicLine(NamedTuple):
    """The line of a topic: where it starts and ends in the block, and its number from 0.

    ``rows`` is the number of partitions before it.
    """

    start: int
    end: int
    line: int
    topic: str
    rows: int


class DescribeLines:
    """Lines of topics and partitions. The arrays are those of the last ``read``."""

    def __init__(self) -> None:
        self._headers = np.empty((_TOPICS, 6), np.int32)
        self._columns = np.empty((4, _ROWS), np.int32)
        self._counts = np.empty((len(LIST_LABELS) + 1, _ROWS), np.int32)
        self._values = np.empty((len(LIST_LABELS) + 1, _VALUES), np.int32)
        self._result = np.zeros(3, np.int32)
        self.line, self.partition, self.leader, self._masks = self._columns

    def read(self, block: bytes, start: int, topic: str) -> int:
        """Read lines from an offset up to the first of another form. Returns the offset after the last line read.

        ``topic`` is that of the partitions that come first.
        """
        return kernels.read_describe_lines(
            block,
            start,
            files.LINE_BYTES_MAX,
            topic.encode(),
            self._headers,
            self.line,
            self.partition,
            self.leader,
            self._masks,
            self._counts,
            self._values,
            self._result,
        )

    @property
    def line_count(self) -> int:
        """How many lines were read."""
        return int(self._result[0])

    @property
    def row_count(self) -> int:
        """How many partitions were read."""
        return int(self._result[2])

    def topic_lines(self, block: bytes) -> Iterator[TopicLine]:
        """The lines of topics."""
        for start, end, line, name, name_end, rows in self._headers[: self._result[1]].tolist():
            yield TopicLine(start, end, line, block[name:name_end].decode(), rows)

    def lists(self, rows: int) -> dict[str, tuple[Int32, Int32]]:
        """The lengths and the values of each column of lists, of the first ``rows`` partitions."""
        counts = self._counts[:, :rows]
        used = counts.sum(axis=1).tolist()
        return {name: (counts[k], self._values[k, : used[k]]) for k, name in enumerate(LIST_LABELS)}

    def labels(self, row: int) -> set[str]:
        """The labels in the line of a partition."""
        mask = int(self._masks[row])
        return {"Topic", *(label for bit, label in enumerate(_LABELS) if mask & 1 << bit)}

    def is_elr_reported(self, rows: int) -> bool:
        """Whether the ELR of any of the first ``rows`` partitions is reported."""
        return bool(((self._masks[:rows] & (_ELR | _NO_ELR)) == _ELR).any())

    def is_elr_missing(self, rows: int) -> bool:
        """Whether the ELR of any of the first ``rows`` partitions is not reported."""
        return bool(((self._masks[:rows] & (_ELR | _NO_ELR)) != _ELR).any())
