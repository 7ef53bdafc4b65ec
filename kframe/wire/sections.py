"""Splits the rows of a batch into sections of bounded length. All three requests use these frames."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import Final

import numpy as np
from msgspec import Struct

from kframe import kernels
from kframe.errors import BrokenInvariant, ShapeError
from kframe.model.arrays import Int32, Int64, UInt8
from kframe.model.cluster import ClusterState
from kframe.wire.apis import Layout

#: Largest size of the memory that requests share, unless a single request is longer. The unsent request of a slow
#: broker retains at most this much more memory. NumPy requests huge pages from the kernel for 4 MiB and more. With one
#: allocation per request, a large batch would spend more time in page faults than in encoding.
GROUP_BYTES: Final = 8 * 2**20
#: Largest number of requests in a group, so that arrays with one value per request stay small.
GROUP_SECTIONS: Final = 4096


class Lists(Struct, frozen=True, eq=False):
    """Rows list by list, each grouped by topic; the rows ``rows[offsets[i]:offsets[i + 1]]`` share a request.

    A part of the lists of a batch has the number and the first row of its first list in the batch.
    """

    offsets: Int32
    rows: Int32
    first_list: int = 0
    first_row: int = 0

    def part(self, first: int, end: int) -> Lists:
        """The lists from ``first`` up to ``end``, of all lists of a batch."""
        start, stop = int(self.offsets[first]), int(self.offsets[end])
        return Lists(self.offsets[first : end + 1] - np.int32(start), self.rows[start:stop], first, start)


class Group(Struct, frozen=True, eq=False):
    """Sections that are encoded together. ``start`` counts from the group's first row."""

    batch_slice: slice
    """The rows of the group, as a slice of all rows of the batch."""
    rows: Int32
    row_topic: Int32
    row_size: Int32
    """Bytes of each row's entry."""
    lists: Int32
    """The number of each section's list in the batch."""
    start: Int32
    items: Int32
    length: Int64

    def partitions(self) -> list[int]:
        """Number of rows of each section."""
        counts: list[int] = np.diff(self.start).tolist()
        return counts


class Frame(Struct, frozen=True, eq=False):
    """The memory of a group, without entries and varying tails. The entry of row i goes to ``entry_offset[i]``."""

    section_offset: Int64
    """The start of each section, and the end of the last section's tail."""
    entry_offset: Int64
    out: UInt8

    def bodies(self) -> list[memoryview]:
        """The bytes of each section with its tail, read-only."""
        view = self.out.data.toreadonly()
        return [view[start:stop] for start, stop in pairwise(self.section_offset.tolist())]


class SectionWriter:
    """Splits the rows of a batch's requests of one kind, encoded as in ``layout``, into sections."""

    def __init__(self, cluster: ClusterState, layout: Layout) -> None:
        self._topic = cluster.partitions.topic
        self._name_offsets, self._names = cluster.topics.wire_names()
        self._topic_ids = cluster.topics.ids.reshape(-1)
        self._layout = layout.grouped, layout.compact, layout.with_topic_ids

    def split(self, lists: Lists, entry_size: Int32, byte_limit: int, tail_max: int) -> Iterator[Group]:
        """Split each list into sections of at most ``byte_limit`` bytes, without their tails of at most ``tail_max``
        bytes.

        ``entry_size`` (n,) has the bytes of each row's entry. Sections end between two partitions; a topic that is
        split continues in the next section under its name. A partition beyond the limit gets its own section. A group
        is valid until the next group is requested: groups share arrays.
        """
        rows, first = lists.rows, 0
        row_topic, row_size = np.empty(len(rows), np.int32), np.empty(len(rows), np.int32)
        max_sections = min(len(rows), GROUP_SECTIONS)
        section_list, items = np.empty(max_sections, np.int32), np.empty(max_sections, np.int32)
        start, length = np.empty(max_sections + 1, np.int32), np.empty(max_sections, np.int64)
        while first < len(rows):
            count = kernels.fit_sections(
                lists.offsets,
                rows,
                first,
                byte_limit,
                GROUP_BYTES,
                tail_max,
                entry_size,
                self._topic,
                self._name_offsets,
                *self._layout,
                row_topic,
                row_size,
                section_list,
                start,
                items,
                length,
            )
            size = int(start[count])
            batch_slice = slice(lists.first_row + first, lists.first_row + first + size)
            yield Group(
                batch_slice,
                rows[first : first + size],
                row_topic[:size],
                row_size[:size],
                section_list[:count] + np.int32(lists.first_list),
                start[: count + 1],
                items[:count],
                length[:count],
            )
            first += size

    def frame(self, group: Group, tail: bytes, tail_length: Int64 | int) -> Frame:
        """Allocate a group and write its frame, with ``tail`` after each section.

        ``tail_length`` is the length of each tail; ``tail`` is empty if tails differ and are written later.
        """
        offsets = np.zeros(len(group.length) + 1, np.int64)
        np.cumsum(group.length + tail_length, out=offsets[1:])
        frame = Frame(offsets, np.empty(len(group.rows), np.int64), np.empty(offsets[-1], np.uint8))
        written = kernels.frame_sections(
            group.start,
            group.items,
            group.length,
            offsets,
            group.row_topic,
            group.row_size,
            self._name_offsets,
            self._names,
            self._topic_ids,
            *self._layout,
            tail,
            frame.entry_offset,
            frame.out,
        )
        require_as_measured(written, len(group.length))
        return frame


def check_topics(name: str, cluster: ClusterState, rows: Int32) -> None:
    """Raise ShapeError if a row of request ``name`` belongs to no topic."""
    topic = cluster.partitions.topic
    if len(rows) >= len(topic) and int(topic.min(initial=0)) >= 0:
        return  # Every row of the cluster has a topic: this pass reads less.
    unregistered = np.flatnonzero(topic[rows] < 0)
    if len(unregistered):
        raise ShapeError(f"{name}: row {rows[unregistered[0]]} is of a topic that is unregistered")


def require_as_measured(written: int, measured: int) -> None:
    """Raise BrokenInvariant if the written size differs from the measured size."""
    if written != measured:
        raise BrokenInvariant(
            f"a request was measured as {measured} and written as {written}: columns changed while it was encoded"
        )
