"""Cutting the rows of a batch into sections of bounded length, and framing them, for all three requests alike."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

import numpy as np

from kframe import kernels
from kframe.errors import BrokenInvariant, ShapeError
from kframe.model.cluster import ClusterState
from kframe.model.columns import Int32, Int64, UInt8
from kframe.wire.apis import Layout

#: Most bytes of the requests that share memory, unless one alone is longer. A broker that does not take its request
#: holds on to this much beyond it at most. Numpy asks the kernel for huge pages for 4 MiB and more: a large batch
#: would spend more time in page faults than in encoding if each request had an allocation of its own.
GROUP_BYTES: Final = 8 * 2**20
#: Most requests of a group, so that arrays of one value for each stay small.
GROUP_SECTIONS: Final = 4096


@dataclass(frozen=True, slots=True, eq=False)
class Lists:
    """Rows list by list, each grouped by topic: ``rows[offsets[i]:offsets[i + 1]]`` share a request, if any."""

    offsets: Int32
    rows: Int32


@dataclass(frozen=True, slots=True, eq=False)
class Group:
    """Sections that are encoded together. ``start`` counts from the group's first row."""

    taken: slice
    """Which of the rows that were cut are in it."""
    rows: Int32
    row_topic: Int32
    row_size: Int32
    """Bytes of each row's entry."""
    lists: Int32
    """The list that each section is of."""
    start: Int32
    items: Int32
    length: Int64

    def partitions(self) -> list[int]:
        """How many rows each section has."""
        counts: list[int] = np.diff(self.start).tolist()
        return counts


@dataclass(frozen=True, slots=True, eq=False)
class Frame:
    """The memory of a group, all but entries and varying tails written: the entry of row i goes to ``entry_at[i]``."""

    at: Int64
    """Where each section begins, and where the last one's tail ends."""
    entry_at: Int64
    out: UInt8

    def bodies(self) -> list[memoryview]:
        """The bytes of each section with its tail, read-only."""
        view = self.out.data.toreadonly()
        return [view[start:stop] for start, stop in pairwise(self.at.tolist())]


class Cutter:
    """Cuts the rows of a batch's requests of one kind, laid out by ``layout``, into sections."""

    def __init__(self, cluster: ClusterState, layout: Layout) -> None:
        self._topic = cluster.partitions.topic
        self._name_offsets, self._names = cluster.topics.wire_names()
        self._topic_ids = cluster.topics.ids.reshape(-1)
        self._layout = layout.grouped, layout.compact, layout.with_topic_ids

    def cut(self, lists: Lists, entry_size: Int32, byte_limit: int, tail_max: int) -> Iterator[Group]:
        """Cut each list into sections of at most ``byte_limit`` bytes, tails of at most ``tail_max`` not counted.

        ``entry_size`` (n,) has the bytes of each row's entry. A cut falls between two partitions; a topic that is cut
        goes on in the next section under its name. A partition beyond the limit gets its own section. A
        group is valid until the next one is asked for: they share arrays.
        """
        rows, first = lists.rows, 0
        row_topic, row_size = np.empty(len(rows), np.int32), np.empty(len(rows), np.int32)
        most = min(len(rows), GROUP_SECTIONS)
        of_list, start, items = (np.empty(length, np.int32) for length in (most, most + 1, most))
        length = np.empty(most, np.int64)
        while first < len(rows):
            count = kernels.fit_sections(
                lists.offsets, rows, first, byte_limit, GROUP_BYTES, tail_max, entry_size, self._topic,
                self._name_offsets, *self._layout, row_topic, row_size, of_list, start, items, length,
            )  # fmt: skip
            size = int(start[count])
            taken = slice(first, first + size)
            yield Group(
                taken, rows[taken], row_topic[:size], row_size[:size],
                of_list[:count], start[: count + 1], items[:count], length[:count],
            )  # fmt: skip
            first += size

    def frame(self, group: Group, tail: bytes, tail_length: Int64 | int) -> Frame:
        """Allocate a group and write its frame, with ``tail`` behind each section.

        ``tail_length`` is how much each tail takes; ``tail`` is empty where they differ and are yet to be written.
        """
        at = np.zeros(len(group.length) + 1, np.int64)
        np.cumsum(group.length + tail_length, out=at[1:])
        frame = Frame(at, np.empty(len(group.rows), np.int64), np.empty(at[-1], np.uint8))
        framed = kernels.frame_sections(
            group.start, group.items, group.length, at, group.row_topic, group.row_size, self._name_offsets,
            self._names, self._topic_ids, *self._layout, tail, frame.entry_at, frame.out,
        )  # fmt: skip
        require_as_measured(framed, len(group.length))
        return frame


def check_topics(name: str, cluster: ClusterState, rows: Int32) -> None:
    """Raise ShapeError if a row of request ``name`` is of a topic that is unregistered."""
    unregistered = np.flatnonzero(cluster.partitions.topic[rows] < 0)
    if len(unregistered):
        raise ShapeError(f"{name}: row {rows[unregistered[0]]} is of a topic that is unregistered")


def require_as_measured(written: int, measured: int) -> None:
    """Raise BrokenInvariant unless writing came out as measuring said."""
    if written != measured:
        raise BrokenInvariant(
            f"a request was measured as {measured} and written as {written}: columns changed while it was encoded"
        )
