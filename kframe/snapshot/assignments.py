"""The entries of a reassignment in JSON, read in blocks as columns."""

from __future__ import annotations

from array import array
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from kframe import kernels
from kframe.model.arrays import Int32, Ragged
from kframe.snapshot.assemble import GrowingLists, int32
from kframe.snapshot.outline import read_outline

#: Most entries and broker ids that one call of the kernel reads.
_ROWS, _VALUES = 8_192, 32_768


@dataclass(frozen=True, slots=True, eq=False)
class ReassignmentColumns:
    """``k`` entries in the order of the document, and the ``outline``: the document without them.

    ``topic`` (k,) are positions in ``names``. ``log_dirs`` (k,) counts log directories; -1: the entry has no list.
    """

    outline: bytes
    names: tuple[str, ...]
    topic: Int32
    partition: Int32
    replicas: Ragged
    log_dirs: Int32

    def __len__(self) -> int:
        return len(self.partition)


def read_assignments(blocks: Iterable[bytes]) -> ReassignmentColumns | None:
    """Read a document in blocks. None if the document or an entry is not in the form that tools write.

    The outline is the caller's to decode.
    """
    entries = _Entries()
    outline = read_outline(blocks, "partitions", entries.take)
    return None if outline is None else entries.finish(outline)


class _Entries:
    """The entries read so far."""

    def __init__(self) -> None:
        self._numbers: dict[bytes, int] = {}
        self._topic, self._partition, self._log_dirs = array("i"), array("i"), array("i")
        self._replicas = GrowingLists()
        self._topics, self._columns = np.empty((_ROWS, 3), np.int32), np.empty((3, _ROWS), np.int32)
        self._values, self._result = np.empty(_VALUES, np.int32), np.zeros(3, np.int32)

    def take(self, text: bytes) -> tuple[int, bool]:
        """Take the entries at the start of a text; return the offset after them, and whether the list ends."""
        offset, rows, ended = 0, 1, 0
        partition, counts, log_dirs = self._columns
        while rows and not ended:
            offset = kernels.read_assignments(
                text, offset, self._topics, partition, counts, log_dirs, self._values, self._result
            )
            names, rows, ended = self._result.tolist()
            self._note(text, names, rows)
        return offset, ended == 1

    def _note(self, text: bytes, names: int, rows: int) -> None:
        numbers, topics = self._numbers, self._topics[:names]
        ordinals = [numbers.setdefault(text[start:end], len(numbers)) for start, end, _ in topics.tolist()]
        lengths = np.diff(topics[:, 2], append=np.int32(rows))
        partition, counts, log_dirs = self._columns[:, :rows]
        self._topic.frombytes(np.repeat(np.array(ordinals, np.int32), lengths).tobytes())
        self._partition.frombytes(partition.tobytes())
        self._log_dirs.frombytes(log_dirs.tobytes())
        self._replicas.extend(counts, self._values[: counts.sum()])

    def finish(self, outline: bytes) -> ReassignmentColumns:
        """The entries as columns."""
        names = tuple(name.decode() for name in self._numbers)
        return ReassignmentColumns(
            outline, names, int32(self._topic), int32(self._partition), self._replicas.ragged(), int32(self._log_dirs)
        )
