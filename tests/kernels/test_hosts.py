"""Who hosts what, as steps from row to row: kernel and twin write the same bytes, and the rows come out again."""

from __future__ import annotations

from types import ModuleType

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kframe import _hosting, _naive
from kframe.model.cluster import ClusterState
from kframe.model.columns import Int16, Int32, Int64, UInt8
from tests.worlds import clusters

#: The last row that takes so many bytes as a first step, and the next.
EDGES = (127, 128, 2**14 - 1, 2**14, 2**21 - 1, 2**21, 2**28 - 1, 2**28, 2**31 - 1)


def index(
    kernels: ModuleType, slot_start: Int32, counts: np.ndarray, replica: Int16, brokers: int
) -> tuple[Int64, UInt8]:
    last, put, offsets = np.full(brokers, 7, np.int32), np.full(brokers, 7, np.int64), np.full(brokers + 1, 7, np.int64)
    size = kernels.size_hosts(slot_start, counts, replica, last, offsets)
    assert offsets[-1] == size
    steps = np.zeros(size, np.uint8)
    assert kernels.index_hosts(slot_start, counts, replica, offsets, last, put, steps) == counts.sum()
    assert put.tolist() == offsets[1:].tolist()
    return offsets, steps


def read(kernels: ModuleType, steps: UInt8) -> list[int]:
    rows = np.empty(len(steps), np.int32)
    found: list[int] = rows[: kernels.read_hosts(steps, rows)].tolist()
    return found


@given(clusters())
def test_rows_come_out_as_they_went_in(cluster: ClusterState) -> None:
    p, brokers = cluster.partitions, len(cluster.brokers)
    offsets, steps = index(_hosting, p.slot_start, p.replica_count, p.replica, brokers)
    twins = index(_naive, p.slot_start, p.replica_count, p.replica, brokers)
    assert (offsets.tolist(), steps.tolist()) == tuple(one.tolist() for one in twins)
    for broker in range(brokers):
        part = steps[offsets[broker] : offsets[broker + 1]]
        hosted = [row for row in range(len(p)) if broker in p.replicas_of(row)]
        assert read(_hosting, part) == read(_naive, part) == hosted


@pytest.mark.parametrize("rows", [127, 128, 2**14 - 1, 2**14, 40_000])
def test_rows_far_apart_take_more_bytes(rows: int) -> None:
    """The only replica of broker 1 stands in the last row, all others on broker 0."""
    replica = np.zeros(rows + 1, np.int16)
    replica[-1] = 1
    starts, counts = np.arange(rows + 1, dtype=np.int32), np.ones(rows + 1, np.int16)
    offsets, steps = index(_hosting, starts, counts, replica, 2)
    assert offsets.tolist() == [0, rows, rows + (1 if rows < 128 else 2 if rows < 2**14 else 3)]
    assert read(_hosting, steps[rows:]) == [rows]
    assert read(_hosting, steps[:rows]) == list(range(rows))


@given(st.lists(st.sampled_from(EDGES) | st.integers(0, 2**31 - 1), max_size=5))
def test_steps_of_any_size_are_read(rows: list[int]) -> None:
    written, before = bytearray(), 0
    for row in sorted(rows):
        step, before = row - before, row
        while step >= 128:
            written.append(step % 128 + 128)
            step //= 128
        written.append(step)
    steps = np.frombuffer(bytes(written), np.uint8)
    assert read(_hosting, steps) == read(_naive, steps) == sorted(rows)


def test_nothing_is_no_special_case() -> None:
    nothing, nobody = np.empty(0, np.int32), np.empty(0, np.int16)
    for kernels in (_hosting, _naive):
        offsets, steps = index(kernels, nothing, nobody, nobody, 0)
        assert (offsets.tolist(), steps.tolist(), read(kernels, steps)) == ([0], [], [])
