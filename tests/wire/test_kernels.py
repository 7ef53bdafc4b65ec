"""What a kernel promises beyond the bytes: rows not chosen stay as they are, and a wrong length stops it."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
import pytest

from kframe import _core, _naive_wire, _wire
from tests.wire.cases import broker, build, case_of, partition, topic

CLUSTER, _ = build(case_of([broker(1), broker(2)], [topic("t", *(partition([1, 2]) for _ in range(4)))]))
P = CLUSTER.partitions
ROWS = np.array([1, 3], np.int32)
SHAPE = P.slot_start, P.replica_count, P.isr_count
SLOTS = P.replica, P.isr, P.replica_flags
EPOCHS = P.partition, P.leader, P.leader_epoch, P.controller_epoch, P.partition_epoch

kernels_of_both = pytest.mark.parametrize("kernels", [_wire, _naive_wire], ids=["compiled", "naive"])


def write_leader_and_isr(kernels: Any, sizes: list[int], pool: np.ndarray[Any, Any]) -> tuple[int, list[int]]:
    entry_size, pool_at = np.array(sizes, np.int32), np.full(4, -7, np.int64)
    done = kernels.write_leader_and_isr(
        ROWS, 0, *EPOCHS, P.recovery, *SHAPE, *SLOTS, CLUSTER.brokers.ids, entry_size, pool_at, pool
    )
    return done, pool_at.tolist()


@kernels_of_both
def test_only_the_rows_asked_for_are_sized_and_placed(kernels: Any) -> None:
    entry_size = np.full(4, -7, np.int32)
    assert kernels.size_leader_and_isr(ROWS, 0, *SHAPE, P.replica_flags, entry_size) == 2 * 44
    assert entry_size.tolist() == [-7, 44, -7, 44]
    pool = np.full(2 * 44 + 1, 99, np.uint8)
    assert write_leader_and_isr(kernels, [0, 44, 0, 44], pool) == (2, [-7, 0, -7, 44])
    assert pool[-1] == 99


@kernels_of_both
@pytest.mark.parametrize(("sizes", "done"), [([0, 43, 0, 44], 0), ([0, 44, 0, 45], 1), ([0, 44, 0, 44], 2)])
def test_an_entry_of_another_length_than_measured_stops_the_writing(kernels: Any, sizes: list[int], done: int) -> None:
    out, zeros = np.empty(100, np.uint8), np.zeros(2, np.uint8)
    assert write_leader_and_isr(kernels, sizes, out)[0] == done
    row_size, entry_at = np.array([sizes[1], sizes[3]], np.int32), np.array([0, 50], np.int64)
    live, deleting = CLUSTER.brokers.live, CLUSTER.topics.deleting
    metadata = kernels.write_update_metadata(
        ROWS, 0, P.topic, *EPOCHS, *SHAPE, *SLOTS, CLUSTER.brokers.ids, live, deleting, row_size, entry_at, out
    )
    assert metadata == done
    # An entry of StopReplica 0 has four bytes.
    stops = kernels.write_stop_replica(ROWS, 0, P.partition, ROWS, zeros, row_size - 40, entry_at, out)
    assert stops == done


@kernels_of_both
def test_leaders_are_only_added_and_no_more_of_them_than_there_can_be(kernels: Any) -> None:
    leader = np.array([3, 0, 3, -1, 0, 1, 2], np.int32)
    rows = np.array([1, 3, 4, 5, 6], np.int32)
    for most, found, marked in [(0, 0, [0, 1, 0, 0]), (1, 1, [1, 1, 0, 0]), (2, 2, [1, 1, 1, 0]), (4, 2, [1, 1, 1, 0])]:
        leads = np.array([0, 1, 0, 0], np.uint8)
        assert kernels.mark_leaders(rows, leader, most, leads) == found
        assert leads.tolist() == marked


def frame(entry_at: int, out: int) -> int:
    """Frame a section of one entry of 4 bytes, 11 bytes in all, into arrays of these lengths."""
    names, topic_ids, zero = b"t", np.zeros(16, np.uint8), np.zeros(1, np.int32)
    arrays = np.zeros(entry_at, np.int64), np.zeros(out, np.uint8)
    return _wire.frame_section(
        zero, zero + 4, np.array([0, 1], np.int32), names, topic_ids, 1, False, False, False, *arrays
    )


@pytest.mark.skipif(not _core.DEBUG, reason="only a debug build checks every index")
def test_a_debug_build_notices_an_overrun(monkeypatch: pytest.MonkeyPatch) -> None:
    noticed: list[Any] = []
    monkeypatch.setattr(sys, "unraisablehook", lambda unraisable: noticed.append(unraisable.exc_type))
    assert frame(entry_at=1, out=11) == 11
    assert noticed == []
    frame(entry_at=1, out=6)
    assert set(noticed) == {IndexError}
    with pytest.raises(IndexError):
        frame(entry_at=0, out=11)


WRONG = [
    (np.zeros(1, np.int64), "dtype mismatch"),
    (np.zeros((1, 1), np.int32), "dimensions"),
    (np.zeros(4, np.int32)[::2], "contiguous"),
]


@pytest.mark.parametrize(("rows", "error"), WRONG, ids=[row[1] for row in WRONG])
def test_an_array_of_another_kind_is_refused(rows: np.ndarray[Any, Any], error: str) -> None:
    with pytest.raises(ValueError, match=error):
        _wire.mark_leaders(rows, P.leader, 2, np.zeros(2, np.uint8))
