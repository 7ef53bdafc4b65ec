"""The topics of ``kcat -L -J``, read in blocks as columns."""

from __future__ import annotations

from array import array
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from kframe import kernels
from kframe.model.arrays import Bool
from kframe.snapshot.assemble import Assembly, int32
from kframe.snapshot.outline import read_outline

#: Most topics, partitions and entries of a column of lists that one call of the kernel reads.
_TOPICS, _ROWS, _VALUES = 2_048, 4_096, 16_384


@dataclass(frozen=True, slots=True, eq=False)
class KcatTopics:
    """Topics in the order of the document, and the ``outline``: the document without them.

    ``names`` are all topics; ``failed`` marks those with an error instead of partitions.
    """

    outline: bytes
    names: list[str]
    failed: Bool


def read_topics(blocks: Iterable[bytes], assembly: Assembly) -> KcatTopics | None:
    """Read a document in blocks into an assembly. None if it is not in the form that kcat writes. Raises SnapshotError.

    The outline is the caller's to decode.
    """
    topics = _Topics(assembly)
    outline = read_outline(blocks, "topics", topics.take)
    return None if outline is None else topics.finish(outline)


class _Topics:
    """The topics read so far."""

    def __init__(self, assembly: Assembly) -> None:
        self._assembly = assembly
        self._state = 0
        self._names: list[str] = []
        self._errors, self._counts = array("i"), array("i")
        self._topics, self._columns = np.empty((_TOPICS, 4), np.int32), np.empty((2, _ROWS), np.int32)
        self._lengths, self._values = np.empty((2, _ROWS), np.int32), np.empty((2, _VALUES), np.int32)
        self._result = np.zeros(3, np.int32)

    def take(self, text: bytes) -> tuple[int, bool]:
        """Take the topics at the start of a text; return the offset after them, and whether the list ends."""
        offset, names, rows = 0, 1, 1
        partition, leader = self._columns
        while (names or rows) and self._state != 2:
            offset = kernels.read_kcat_topics(
                text, offset, self._state, self._topics, partition, leader, self._lengths, self._values, self._result
            )
            names, rows, self._state = self._result.tolist()
            self._note(text, names, rows)
        return offset, self._state == 2

    def _note(self, text: bytes, names: int, rows: int) -> None:
        """Note topics by their position in the document; their numbers in the assembly follow in ``finish``."""
        topics, known = self._topics[:names], len(self._names)
        firsts = np.append(topics[:, 2], np.int32(rows))
        self._names += [text[start:end].decode() for start, end, _, _ in topics.tolist()]
        self._errors.frombytes(topics[:, 3].tobytes())
        if known:
            self._counts[-1] += int(firsts[0])
        self._counts.frombytes(np.diff(firsts).tobytes())
        if not rows:
            return
        used = self._lengths[:, :rows].sum(axis=1)
        lists = {
            name: (self._lengths[k, :rows], self._values[k, : used[k]]) for k, name in enumerate(("replicas", "isr"))
        }
        numbers = np.searchsorted(topics[:, 2], np.arange(rows), side="right").astype(np.int32) + np.int32(known - 1)
        partition, leader = self._columns[:, :rows]
        self._assembly.partitions(numbers, partition, numbers, {"leader": leader}, lists)

    def finish(self, outline: bytes) -> KcatTopics:
        """Name the topics in the assembly. Raises SnapshotError."""
        failed = (int32(self._errors) == 1) & (int32(self._counts) == 0)
        numbers = [
            -1 if is_failed else self._assembly.topic(name, number)
            for number, (name, is_failed) in enumerate(zip(self._names, failed.tolist(), strict=True))
        ]
        self._assembly.renumber(np.array(numbers, np.int32))
        return KcatTopics(outline, self._names, failed)
