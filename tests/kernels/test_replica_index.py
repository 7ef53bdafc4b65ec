"""The replica index as deltas of rows: kernel and reference write equal bytes, and reading returns the rows."""

from __future__ import annotations

from types import ModuleType

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kframe import kernels
from kframe.model.arrays import Int16, Int32, Int64, UInt8
from kframe.model.cluster import ClusterState
from tests.cluster_strategies import clusters
from verification import reference
from verification.reference.replica_index import DELTA_SLACK

pytestmark = pytest.mark.kernel

#: Value of bytes that no row uses.
UNUSED = 0x5A
#: For each size in bytes, the last row whose first delta has this size, and the next row.
EDGES = (127, 128, 2**14 - 1, 2**14, 2**21 - 1, 2**21, 2**28 - 1, 2**28, 2**31 - 1)


def index(
    module: ModuleType, slot_start: Int32, counts: np.ndarray, replica: Int16, brokers: int
) -> tuple[Int64, Int64, UInt8]:
    """Return start and end of each broker's bytes, and all bytes. Check that the kernel stays within its range."""
    last, ends, starts = np.full(brokers, 7, np.int32), np.full(brokers, 7, np.int64), np.full(brokers + 1, 7, np.int64)
    size = module.size_replica_index(slot_start, counts, replica, starts)
    assert starts[-1] == size - DELTA_SLACK
    deltas = np.full(size + 1, UNUSED, np.uint8)
    assert module.build_replica_index(slot_start, counts, replica, starts, last, ends, deltas[:-1]) == counts.sum()
    assert (ends >= starts[:-1]).all()
    assert (ends <= starts[1:]).all()
    unused = np.ones(size + 1, np.bool_)
    for start, end in zip(starts[:-1].tolist(), ends.tolist(), strict=True):
        unused[start:end] = False
    assert (deltas[unused] == UNUSED).all()
    return starts, ends, deltas


def read(module: ModuleType, deltas: UInt8) -> list[int]:
    rows = np.empty(len(deltas), np.int32)
    result: list[int] = rows[: module.read_replica_index(deltas, rows)].tolist()
    return result


@given(clusters())
def test_replica_index_returns_rows_of_each_broker(cluster: ClusterState) -> None:
    p, brokers = cluster.partitions, len(cluster.brokers)
    starts, ends, deltas = index(kernels, p.slot_start, p.replica_count, p.replica, brokers)
    expected = index(reference, p.slot_start, p.replica_count, p.replica, brokers)
    assert [array.tolist() for array in (starts, ends, deltas)] == [array.tolist() for array in expected]
    for broker in range(brokers):
        part = deltas[starts[broker] : ends[broker]]
        broker_rows = [row for row in range(len(p)) if broker in p.replicas_of(row)]
        assert read(kernels, part) == read(reference, part) == broker_rows


@given(st.integers(0, 9), st.integers(1, 400), st.sampled_from((9, 100, 400)), st.integers(0, 2**31))
def test_replica_index_for_any_replication_factor(factor: int, rows: int, brokers: int, seed: int) -> None:
    """Most rows have ``factor`` replicas, some one more or fewer. One unused slot follows each row."""
    numbers = np.random.default_rng(seed)
    counts = np.clip(factor + (numbers.random(rows) < 0.1) - (numbers.random(rows) < 0.1), 0, 9).astype(np.int16)
    starts = (np.cumsum(counts + 1) - counts - 1).astype(np.int32)
    replica = np.full(int(counts.sum()) + rows, -1, np.int16)
    for start, count in zip(starts.tolist(), counts.tolist(), strict=True):
        replica[start : start + count] = numbers.permutation(brokers)[:count]
    indexed, expected = (
        index(kernels, starts, counts, replica, brokers),
        index(reference, starts, counts, replica, brokers),
    )
    assert [array.tolist() for array in indexed] == [array.tolist() for array in expected]


@pytest.mark.parametrize("rows", [127, 128, 2**14 - 1, 2**14, 40_000])
def test_sparse_rows_take_longer_deltas(rows: int) -> None:
    """The only replica of broker 1 is in the last row; all others are on broker 0."""
    replica = np.zeros(rows + 1, np.int16)
    replica[-1] = 1
    starts, counts = np.arange(rows + 1, dtype=np.int32), np.ones(rows + 1, np.int16)
    begin, ends, deltas = index(kernels, starts, counts, replica, 2)
    assert (ends - begin[:-1]).tolist() == [rows, 1 if rows < 128 else 2 if rows < 2**14 else 3]
    assert read(kernels, deltas[begin[1] : ends[1]]) == [rows]
    assert read(kernels, deltas[: ends[0]]) == list(range(rows))


@given(
    st.lists(st.sampled_from(EDGES) | st.integers(0, 2**31 - 1), max_size=5)
    | st.lists(st.integers(0, 2000), max_size=60, unique=True)
)
def test_deltas_of_any_size_are_read(rows: list[int]) -> None:
    written, before = bytearray(), 0
    for row in sorted(rows):
        delta, before = row - before, row
        while delta >= 128:
            written.append(delta % 128 + 128)
            delta //= 128
        written.append(delta)
    deltas = np.frombuffer(bytes(written), np.uint8)
    assert read(kernels, deltas) == read(reference, deltas) == sorted(rows)


def test_empty_replica_index() -> None:
    nothing, no_brokers = np.empty(0, np.int32), np.empty(0, np.int16)
    for module in (kernels, reference):
        starts, ends, deltas = index(module, nothing, no_brokers, no_brokers, 0)
        assert (starts.tolist(), ends.tolist(), read(module, deltas[:0])) == ([0], [], [])
