"""Cutting a request's rows into sections of bounded length, and framing them, for all three requests alike."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from kframe.errors import BrokenInvariant, ShapeError
from kframe.model.cluster import ClusterState
from kframe.model.columns import Int32, Int64, UInt8
from kframe.wire import kernels
from kframe.wire.apis import Layout
from kframe.wire.arena import Arena


@dataclass(frozen=True, slots=True, eq=False)
class Section:
    """The partitions of one request. Its frame is written; the entry of ``rows[i]`` goes to ``out[entry_at[i]:]``."""

    taken: slice
    """Which of the rows it was cut from are in it."""
    rows: Int32
    row_size: Int32
    """Bytes of each row's entry."""
    entry_at: Int64
    out: UInt8

    @property
    def view(self) -> memoryview:
        """Its bytes, read-only."""
        return self.out.data.toreadonly()


class Cutter:
    """Cuts the rows of a batch's requests of one kind, laid out by ``layout``, into sections."""

    def __init__(self, cluster: ClusterState, layout: Layout) -> None:
        self._topic = cluster.partitions.topic
        self._name_offsets, self._names = cluster.topics.wire_names()
        self._topic_ids = cluster.topics.ids.reshape(-1)
        self._layout = layout.grouped, layout.compact, layout.with_topic_ids
        self._arena = Arena()

    def cut(self, rows: Int32, entry_size: Int32, byte_limit: int) -> Iterator[Section]:
        """Cut ``rows`` (k,), grouped by topic, into sections of at most ``byte_limit`` bytes; no rows, one empty one.

        ``entry_size`` (n,) has the bytes of each row's entry. A cut falls between two partitions; a topic that is cut
        goes on in the next section under its name. A partition that is longer by itself gets a section of its own.
        """
        row_topic, row_size = np.empty(len(rows), np.int32), np.empty(len(rows), np.int32)
        measured = np.empty(2, np.int64)
        start, stop = 0, -1
        while stop < len(rows):
            stop = kernels.fit_section(
                rows, start, byte_limit, entry_size, self._topic, self._name_offsets, *self._layout,
                row_topic, row_size, measured,
            )  # fmt: skip
            length, items = (int(value) for value in measured)
            taken, entry_at, out = slice(start, stop), np.empty(stop - start, np.int64), self._arena.lend(length)
            framed = kernels.frame_section(
                row_topic[taken], row_size[taken], self._name_offsets, self._names, self._topic_ids, items,
                *self._layout, entry_at, out,
            )  # fmt: skip
            require_as_measured(framed, length)
            yield Section(taken, rows[taken], row_size[taken], entry_at, out)
            start = stop


def check_topics(name: str, cluster: ClusterState, rows: Int32) -> None:
    """Raise ShapeError if a row of request ``name`` is of a topic that is gone."""
    gone = np.flatnonzero(cluster.partitions.topic[rows] < 0)
    if len(gone):
        raise ShapeError(f"{name}: row {rows[gone[0]]} is of a topic that is gone")


def require_as_measured(written: int, measured: int) -> None:
    """Raise BrokenInvariant unless writing came out as measuring said."""
    if written != measured:
        raise BrokenInvariant(
            f"a request was measured as {measured} and written as {written}: columns changed while it was encoded"
        )
