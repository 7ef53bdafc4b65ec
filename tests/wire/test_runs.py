"""Kernels that process many rows at a time, or a row's replicas as one word, equal their references row by row."""

from __future__ import annotations

from random import Random
from typing import Any

import numpy as np
import pytest

from kframe import kernels
from kframe.model.arrays import Int32
from kframe.model.ids import STATE_SHIFT
from verification.reference import requests as reference

pytestmark = pytest.mark.kernel

BROKERS = 20


class Columns:
    """Return columns of ``count`` rows with ``replicas`` in-sync replicas each, except rows of ``variant``."""

    def __init__(self, seed: int, count: int, replicas: int, usual: int, variant: frozenset[str]) -> None:
        rng = np.random.default_rng(seed)
        self.variant = rng.integers(0, 100, count) >= usual
        self.replica_count, self.isr_count = np.full((2, count), replicas, np.int16)
        for lengths in (self.replica_count, self.isr_count):
            if "lists" in variant:
                lengths[self.variant] = rng.integers(0, 10, self.variant.sum())
            if "long" in variant:
                lengths[self.variant & (rng.random(count) < 0.3)] = 130
        self._lay_out(rng, variant)
        self.leader = np.where(self.variant, rng.integers(-1, BROKERS, count), 1).astype(np.int16)
        self.status = rng.integers(0, 32, count).astype(np.uint8)
        self.partition, self.leader_epoch, self.partition_epoch, self.controller_epochs = rng.integers(
            0, 2**31, (4, count)
        ).astype(np.int32)
        self.epoch_number = rng.integers(0, count, count).astype(np.uint16)
        # Some topics occur again after another one, although lists should be grouped by topic.
        self.topic = (np.cumsum(rng.random(count) < 0.05) % (2 if seed % 3 == 0 else count + 1)).astype(np.int32)
        self.topic_deleting = (rng.random(count + 1) < 0.3).astype(np.uint8)
        self.name_offsets = np.cumsum(np.append(0, rng.integers(1, 250, count + 1))).astype(np.int32)
        self.broker_ids = rng.integers(0, 2**31, BROKERS).astype(np.int32)

    def _lay_out(self, rng: np.random.Generator, variant: frozenset[str]) -> None:
        count = len(self.variant)
        lengths = np.maximum(self.replica_count, self.isr_count).astype(np.int64)
        # The last row ends where the columns end.
        gaps = rng.integers(0, 60, count) * self.variant if "gaps" in variant else np.zeros(count, np.int64)
        order = np.argsort(self.variant, kind="stable") if "moved" in variant else np.arange(count)
        order = rng.permutation(count) if "shuffled" in variant else order
        begins = np.cumsum((gaps + lengths)[order]) - lengths[order]
        self.slot_start = np.zeros(count, np.int32)
        self.slot_start[order] = begins
        slots = int((gaps + lengths).sum())
        self.replica, self.isr = rng.integers(0, BROKERS, (2, slots)).astype(np.int16)
        # Unused slots have flags too.
        marked = np.ones(slots, np.bool_)
        for row, begin in enumerate(self.slot_start.tolist()):
            marked[begin : begin + lengths[row]] = "flags" in variant and self.variant[row]
        self.replica_status = (
            np.where(marked, rng.integers(0, 8, slots), 0) | rng.integers(0, 8, slots) << STATE_SHIFT
        ).astype(np.uint8)

    def of(self, *names: str) -> list[Any]:
        return [getattr(self, name) for name in names]


#: Differences between some rows and most.
VARIANTS = "", "lists", "long", "flags", "moved flags", "gaps", "gaps flags", "shuffled lists flags gaps long"
EPOCHS = "partition", "leader", "leader_epoch", "epoch_number", "controller_epochs", "partition_epoch"
SHAPE = "slot_start", "replica_count", "isr_count"
SLOTS = "replica", "isr", "replica_status"


SEEDS = range(16)
kinds = pytest.mark.parametrize("variant", VARIANTS, ids=[kind or "none" for kind in VARIANTS])


def chosen(seed: int, variant: str) -> tuple[Columns, Int32]:
    """Return columns, and rows of them: in order, separate, reversed, or interrupted within a run."""
    draw = Random(seed)
    count = draw.choice([130, 70, 12])
    columns = Columns(seed, count, draw.randint(0, 9), draw.choice([98, 95, 70, 0]), frozenset(variant.split()))
    rows = np.arange(count, dtype=np.int32)[draw.randrange(4) :][:: draw.choice([1, 1, 1, 2, -1])]
    # Another row within a run does not change the ends of the run.
    if len(rows) > 8 and draw.random() < 0.3:
        rows[5], rows = rows[-1], rows[:-1]
    return columns, rows[rows != draw.randrange(200)]


def call_both(name: str, *arguments: Any) -> list[Any]:
    """Return the kernel's result and its arrays afterwards. Check that the reference returns the same."""
    copies = [argument.copy() if isinstance(argument, np.ndarray) else argument for argument in arguments]
    actual, expected = getattr(kernels, name)(*arguments), getattr(reference, name)(*copies)
    assert actual == expected
    for original, copy in zip(arguments, copies, strict=True):
        assert np.array_equal(original, copy)
    return [actual, *arguments]


@kinds
@pytest.mark.parametrize("version", [2, 3, 5, 7])
def test_leader_and_isr_entries_equal_reference(variant: str, version: int) -> None:
    for seed in SEEDS:
        leader_and_isr(*chosen(seed, variant), version)


def leader_and_isr(p: Columns, rows: Int32, version: int) -> None:
    size, pool_offset = np.full(len(p.topic), -7, np.int32), np.full(len(p.topic), -7, np.int64)
    total = call_both("size_leader_and_isr", rows, version, *p.of(*SHAPE, "replica_status"), size)[0]
    pool = np.full(total, 99, np.uint8)
    columns = p.of(*EPOCHS, "status", *SHAPE, *SLOTS, "broker_ids")
    assert call_both("write_leader_and_isr", rows, version, *columns, size, 0, pool_offset, pool)[0] == len(rows)


@kinds
@pytest.mark.parametrize("version", [3, 5, 8])
def test_update_metadata_entries_equal_reference(variant: str, version: int) -> None:
    for seed in SEEDS:
        offline = [[], [], [7], [1, 7, 9]][seed % 4]
        update_metadata(*chosen(seed, variant), version, offline)


def update_metadata(p: Columns, rows: Int32, version: int, offline: list[int]) -> None:
    size, live = np.full(len(p.topic), -7, np.int32), np.ones(BROKERS, np.uint8)
    live[offline] = 0
    total = call_both("size_update_metadata", rows, version, *p.of(*SHAPE, "replica", "replica_status"), live, size)[0]
    row_size = size[rows]
    entry_offset = np.cumsum(row_size, dtype=np.int64) - row_size
    columns = [*p.of("topic", *EPOCHS, *SHAPE, *SLOTS, "broker_ids"), live, p.topic_deleting]
    out = np.full(total, 99, np.uint8)
    assert call_both("write_update_metadata", rows, version, *columns, row_size, entry_offset, out)[0] == len(rows)


@kinds
@pytest.mark.parametrize("layout", [(True, True, True), (True, False, False), (False, False, False)])
@pytest.mark.parametrize("sizes", [None, 1], ids=["sizes-by-row", "one-size"])
def test_sections_equal_reference(variant: str, sizes: int | None, layout: tuple[bool, bool, bool]) -> None:
    for seed in SEEDS:
        p, rows = chosen(seed, variant)
        draw, count = Random(-seed), len(rows)
        offsets = np.array([0, *sorted(draw.choices(range(count + 1), k=draw.randrange(3))), count], np.int32)
        size = 30 + 4 * p.replica_count.astype(np.int32)
        limits = draw.choice([1, 1500, 3000, 10**5]), draw.choice([1, 5000, 2**30]), 5
        call_both(
            "fit_sections",
            offsets,
            rows,
            draw.choice([0, count // 3]),
            *limits,
            size[:sizes],
            p.topic,
            p.name_offsets,
            *layout,
            *np.full((5, count + 1), -7, np.int32),
            np.full(count + 1, -7, np.int64),
        )


#: 150 partitions of 50 bytes each, of one topic. From 127 partitions on, the array length needs one more byte.
WIDE = Columns(1, 150, 3, 100, frozenset())
WIDE.topic[:] = 0


@pytest.mark.parametrize("byte_limit", range(6480, 6640))
def test_section_ends_with_last_row_that_fits(byte_limit: int) -> None:
    """At the end of a run and within it, and below and above the limit of the array length."""
    rows, size = np.arange(150, dtype=np.int32), np.full(150, 50, np.int32)
    call_both(
        "fit_sections",
        np.array([0, 150], np.int32),
        rows,
        0,
        byte_limit,
        2**30,
        0,
        size,
        WIDE.topic,
        WIDE.name_offsets,
        True,
        True,
        True,
        *np.full((5, 151), -7, np.int32),
        np.full(151, -7),
    )
