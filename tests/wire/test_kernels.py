"""Guarantees of kernels beyond bytes: other rows stay unchanged, and a wrong length is an error."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
import pytest

from kframe import _core, kernels
from tests.wire.cases import broker, build, case_of, partition, topic
from verification.reference import requests as reference

pytestmark = pytest.mark.kernel

CLUSTER, _ = build(case_of([broker(1), broker(2)], [topic("t", *(partition([1, 2]) for _ in range(4)))]))
P = CLUSTER.partitions
ROWS = np.array([1, 3], np.int32)
SHAPE = P.slot_start, P.replica_count, P.isr_count
SLOTS = P.replica, P.isr, P.replica_status
EPOCHS = P.partition, P.leader, P.leader_epoch, P.epoch_number, P.epoch_table.epochs, P.partition_epoch

kernels_of_both = pytest.mark.parametrize("module", [kernels, reference], ids=["compiled", "reference"])


def write_leader_and_isr(module: Any, sizes: list[int], pool: np.ndarray[Any, Any]) -> tuple[int, list[int]]:
    entry_size, pool_offset = np.array(sizes, np.int32), np.full(4, -7, np.int64)
    result = module.write_leader_and_isr(
        ROWS, 0, *EPOCHS, P.status, *SHAPE, *SLOTS, CLUSTER.brokers.ids, entry_size, 3, pool_offset, pool
    )
    return result, pool_offset.tolist()


@kernels_of_both
def test_only_requested_rows_are_sized_and_written(module: Any) -> None:
    entry_size = np.full(4, -7, np.int32)
    assert module.size_leader_and_isr(ROWS, 0, *SHAPE, P.replica_status, entry_size) == 2 * 44
    assert entry_size.tolist() == [-7, 44, -7, 44]
    pool = np.full(3 + 2 * 44 + 1, 99, np.uint8)
    assert write_leader_and_isr(module, [0, 44, 0, 44], pool) == (2, [-7, 3, -7, 47])
    assert pool[:3].tolist() == [99, 99, 99]
    assert pool[-1] == 99


@kernels_of_both
@pytest.mark.parametrize(("sizes", "written"), [([0, 43, 0, 44], 0), ([0, 44, 0, 45], 1), ([0, 44, 0, 44], 2)])
def test_entry_of_unexpected_length_stops_writing(module: Any, sizes: list[int], written: int) -> None:
    out, zeros = np.empty(100, np.uint8), np.zeros(2, np.uint8)
    assert write_leader_and_isr(module, sizes, out)[0] == written
    row_size, entry_offset = np.array([sizes[1], sizes[3]], np.int32), np.array([0, 50], np.int64)
    live, deleting = CLUSTER.brokers.live, CLUSTER.topics.deleting
    metadata = module.write_update_metadata(
        ROWS, 0, P.topic, *EPOCHS, *SHAPE, *SLOTS, CLUSTER.brokers.ids, live, deleting, row_size, entry_offset, out
    )
    assert metadata == written
    # An entry of StopReplica 0 has four bytes.
    stops = module.write_stop_replica(ROWS, 0, P.partition, ROWS, zeros, row_size - 40, entry_offset, out)
    assert stops == written


def fit(
    module: Any, lengths: list[int], first: int, max_sections: int, limits: dict[str, int]
) -> list[tuple[int, int, int]]:
    """Return (list, first row, bytes) of each section of lists of these lengths, with flat entries of 4 + 3 bytes."""
    offsets = np.cumsum([0, *lengths], dtype=np.int32)
    count, zeros = int(offsets[-1]), np.zeros(int(offsets[-1]), np.int32)
    columns = zeros + 4, zeros, np.array([0, 1], np.int32)
    section_list, start, items = (np.full(max_sections + 1, -7, np.int32) for _ in range(3))
    length = np.full(max_sections, -7, np.int64)
    sections = module.fit_sections(
        offsets,
        np.arange(count, dtype=np.int32),
        first,
        limits["byte_limit"],
        limits["group_limit"],
        limits["tail_max"],
        *columns,
        False,
        False,
        False,
        np.empty_like(zeros),
        np.empty_like(zeros),
        section_list[:max_sections],
        start,
        items,
        length,
    )
    return [(int(section_list[s]), int(start[s]), int(length[s])) for s in range(sections)] + [
        (-1, int(start[sections]), 0)
    ]


NO_LIMIT = {"byte_limit": 1000, "group_limit": 1000, "tail_max": 0}
FITS: list[tuple[str, tuple[list[int], int, int], dict[str, int], list[tuple[int, int, int]]]] = [
    ("lists-without-rows", ([0, 2, 0, 1, 0], 0, 9), {}, [(1, 0, 18), (3, 2, 11), (-1, 3, 0)]),
    ("from-a-row", ([0, 2, 0, 1, 0], 1, 9), {}, [(1, 0, 11), (3, 1, 11), (-1, 2, 0)]),
    ("full-sections", ([3], 0, 9), {"byte_limit": 18}, [(0, 0, 18), (0, 2, 11), (-1, 3, 0)]),
    ("one-byte-short", ([3], 0, 9), {"byte_limit": 17}, [(0, 0, 11), (0, 1, 11), (0, 2, 11), (-1, 3, 0)]),
    ("entry-beyond-any-limit", ([2], 0, 9), {"byte_limit": -5}, [(0, 0, 11), (0, 1, 11), (-1, 2, 0)]),
    ("full-group", ([2, 1, 1], 0, 9), {"group_limit": 29}, [(0, 0, 18), (1, 2, 11), (-1, 3, 0)]),
    ("group-one-byte-short", ([2, 1, 1], 0, 9), {"group_limit": 28}, [(0, 0, 18), (-1, 2, 0)]),
    ("tails-count", ([2, 1, 1], 0, 9), {"group_limit": 29, "tail_max": 1}, [(0, 0, 18), (-1, 2, 0)]),
    ("section-beyond-any-group", ([2, 1], 0, 9), {"group_limit": 1}, [(0, 0, 18), (-1, 2, 0)]),
    ("max-sections", ([1, 1, 1], 0, 2), {}, [(0, 0, 11), (1, 1, 11), (-1, 2, 0)]),
]


@kernels_of_both
@pytest.mark.parametrize(("call", "limits", "expected"), [row[1:] for row in FITS], ids=[row[0] for row in FITS])
def test_sections_and_groups_are_filled_to_limits(
    module: Any, call: tuple[list[int], int, int], limits: dict[str, int], expected: list[tuple[int, int, int]]
) -> None:
    assert fit(module, *call, NO_LIMIT | limits) == expected


#: Broker 3 is not included; the others are in the order 2, 0, 1.
ENTRY_SIZE = np.array([3, 1, 2, 0], np.int32)
LEADER = np.array([3, 0, 3, -1, 0, 1, 2], np.int16)


def tails(module: Any, length_change: int = 0) -> tuple[list[int], bytes, list[int], int]:
    """Return the measured lengths, tails, the last section of each broker, and the number of correct lengths."""
    start, rows = np.array([0, 3, 5, 7], np.int32), np.arange(7, dtype=np.int32)
    last_section, length = np.full(4, -7, np.int32), np.empty(3, np.int64)
    assert module.measure_live_leaders(start, rows, LEADER, ENTRY_SIZE, 3, True, last_section, length) == length.sum()
    assert last_section.tolist() == [1, 2, 2, -1]
    measured = length.tolist()
    length[1] += length_change
    offsets, out = np.cumsum([0, *length]), np.full(length.sum() + 8, 99, np.uint8)
    tail = np.array([2, 0, 1], np.int32), b"CCAAAB"
    result = module.write_live_leaders(start, rows, LEADER, ENTRY_SIZE, *tail, True, offsets, length, last_section, out)
    return measured, out.tobytes(), last_section.tolist(), result


@kernels_of_both
def test_each_section_lists_its_leaders(module: Any) -> None:
    expected = b"\2AAA\0" + b"\2AAA\0" + b"\3CCB\0"
    assert tails(module) == ([5, 5, 5], expected + b"c" * 8, [1, 2, 2, -1], 3)


@kernels_of_both
@pytest.mark.parametrize("length_change", [-1, 1])
def test_tail_of_unexpected_length_stops_writing(module: Any, length_change: int) -> None:
    assert tails(module, length_change)[3] == 1


@kernels_of_both
def test_leader_scan_stops_at_max_leaders(module: Any) -> None:
    start, rows = np.array([0, 7], np.int32), np.arange(7, dtype=np.int32)
    for max_leaders, marked in [(0, [-1, -1, -1, -1]), (1, [0, -1, -1, -1]), (2, [0, 0, -1, -1]), (4, [0, 0, 0, -1])]:
        last_section = np.full(4, -7, np.int32)
        module.measure_live_leaders(
            start, rows, LEADER, ENTRY_SIZE, max_leaders, False, last_section, np.empty(1, np.int64)
        )
        assert last_section.tolist() == marked


def frame(module: Any, *, length: int = 11, entry_offset: int = 2, out: int = 26) -> int:
    """Frame two sections of one entry of 4 bytes, 11 bytes each, into arrays of these lengths. Tails take 2 bytes
    each."""
    names, topic_ids, zeros = b"t", np.zeros(16, np.uint8), np.zeros(2, np.int32)
    result: int = module.frame_sections(
        np.arange(3, dtype=np.int32),
        zeros + 1,
        np.array([11, length]),
        np.array([0, 13, 26]),
        zeros,
        zeros + 4,
        np.array([0, 1], np.int32),
        names,
        topic_ids,
        False,
        False,
        False,
        b"xy",
        np.zeros(entry_offset, np.int64),
        np.zeros(out, np.uint8),
    )
    return result


@kernels_of_both
@pytest.mark.parametrize(("length", "written"), [(10, 1), (11, 2), (12, 1)])
def test_section_of_unexpected_length_stops_framing(module: Any, length: int, written: int) -> None:
    assert frame(module, length=length) == written


@pytest.mark.skipif(not _core.DEBUG, reason="only a debug build checks every index")
def test_debug_build_raises_index_error_on_overrun(monkeypatch: pytest.MonkeyPatch) -> None:
    noticed: list[Any] = []
    monkeypatch.setattr(sys, "unraisablehook", lambda unraisable: noticed.append(unraisable.exc_type))
    assert frame(kernels) == 2
    assert noticed == []
    frame(kernels, out=19)
    assert set(noticed) == {IndexError}
    with pytest.raises(IndexError):
        frame(kernels, entry_offset=1)
