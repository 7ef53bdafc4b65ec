"""Counts by broker over more rows than one block: the kernel equals its reference for any fault."""

from __future__ import annotations

from types import ModuleType

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kframe import kernels
from verification import reference

pytestmark = pytest.mark.kernel

BROKERS = 12
#: Rows per block.
RUN = 32
#: Possible faults of a row in a healthy cluster.
FAULTS = (
    "shrunk",
    "empty",
    "reordered",
    "unassigned member",
    "leaderless",
    "gap",
    "longer",
    "no replicas",
    "unassigned leader",
)


def counted(module: ModuleType, rows: list[tuple[list[int], list[int], int, int]]) -> tuple[int, list[list[int]]]:
    """Count rows of (replicas, ISR, leader, unused slots after them). The columns end with the last row."""
    capacity = [max(len(replicas), len(isr)) + gap for replicas, isr, _, gap in rows]
    slot_start = (np.cumsum(capacity) - capacity).astype(np.int32)
    replica, isr_column = np.full(sum(capacity), -1, np.int16), np.full(sum(capacity), -1, np.int16)
    for start, (replicas, isr, _, _) in zip(slot_start.tolist(), rows, strict=True):
        replica[start : start + len(replicas)], isr_column[start : start + len(isr)] = replicas, isr
    replica_count = np.array([len(replicas) for replicas, _, _, _ in rows], np.int16)
    isr_count = np.array([len(isr) for _, isr, _, _ in rows], np.int16)
    out = [np.full(BROKERS, 7, np.int32) for _ in range(4)]
    leader = np.array([row[2] for row in rows], np.int16)
    result = module.count_by_broker(leader, slot_start, replica_count, isr_count, replica, isr_column, *out)
    return result, [array.tolist() for array in out]


def with_fault(fault: str, replicas: list[int]) -> tuple[list[int], list[int], int, int]:
    """Return a row with one fault."""
    unassigned = next(broker for broker in range(BROKERS) if broker not in replicas)
    leader = replicas[0] if replicas else -1
    row = {
        "shrunk": (replicas, replicas[:-1], leader, 0),
        "empty": (replicas, [], -1, 0),
        "reordered": (replicas, replicas[::-1], leader, 0),
        "unassigned member": (replicas, [*replicas[:-1], unassigned], leader, 0),
        "leaderless": (replicas, replicas, -1, 0),
        "gap": (replicas, replicas, leader, 1),
        "longer": ([*replicas, unassigned], [*replicas, unassigned], leader, 0),
        "no replicas": ([], [], -1, 0),
        "unassigned leader": (replicas, replicas, unassigned, 0),
    }
    return row[fault]


@given(
    st.integers(0, 9),
    st.sampled_from((1, RUN - 1, RUN, RUN + 1, 2 * RUN, 3 * RUN + 5)),
    st.lists(st.tuples(st.sampled_from(FAULTS), st.integers(0, 3 * RUN + 4)), max_size=3),
)
def test_counts_of_blocks_and_single_rows_equal_reference(
    factor: int, count: int, faults: list[tuple[str, int]]
) -> None:
    lists = [[(row + k) % BROKERS for k in range(factor)] for row in range(count)]
    rows = [(replicas, replicas, replicas[0] if replicas else -1, 0) for replicas in lists]
    for fault, row in faults:
        rows[row % count] = with_fault(fault, lists[row % count])
    assert counted(kernels, rows) == counted(reference, rows)
