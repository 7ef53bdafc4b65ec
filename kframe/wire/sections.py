"""Cutting a request's rows into sections of bounded length, and framing them, for all three requests alike."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from kframe.errors import BrokenInvariant
from kframe.model.cluster import ClusterState
from kframe.model.columns import Int32, Int64, UInt8
from kframe.wire import kernels
from kframe.wire.apis import Layout


@dataclass(frozen=True, slots=True, eq=False)
class Section:
    """The partitions of one request. Its frame is written; the entry of ``rows[i]`` goes to ``out[entry_at[i]:]``."""

    taken: slice
    """Which of the rows it was cut from are in it."""
    rows: Int32
    entry_at: Int64
    out: UInt8

    @property
    def view(self) -> memoryview:
        """Its bytes, read-only."""
        return self.out.data.toreadonly()


def cut(cluster: ClusterState, rows: Int32, entry_size: Int32, layout: Layout, byte_limit: int) -> Iterator[Section]:
    """Cut ``rows`` (k,), grouped by topic, into sections of at most ``byte_limit`` bytes; without rows, one empty one.

    ``entry_size`` (n,) has the bytes of each row's entry. A cut falls between two partitions; a topic that is cut goes
    on in the next section under its name. A partition that alone is longer than the limit gets a section of its own.
    """
    topic, topics = cluster.partitions.topic, cluster.topics
    name_offsets, names = topics.wire_names()
    topic_ids = topics.ids.reshape(-1)
    measured = np.empty(2, np.int64)
    shape = layout.grouped, layout.compact, layout.with_topic_ids
    start, stop = 0, -1
    while stop < len(rows):
        stop = kernels.fit_section(rows, start, byte_limit, entry_size, topic, name_offsets, *shape, measured)
        length, items = (int(value) for value in measured)
        section = Section(
            slice(start, stop), rows[start:stop], np.empty(stop - start, np.int64), np.empty(length, np.uint8)
        )
        framed = kernels.frame_section(
            section.rows, entry_size, topic, name_offsets, names, topic_ids, items, *shape,
            section.entry_at, section.out,
        )  # fmt: skip
        require_as_measured(framed, length)
        yield section
        start = stop


def require_as_measured(written: int, measured: int) -> None:
    """Raise BrokenInvariant unless writing came out as measuring said."""
    if written != measured:
        raise BrokenInvariant(
            f"a request was measured as {measured} and written as {written}: columns changed while it was encoded"
        )
