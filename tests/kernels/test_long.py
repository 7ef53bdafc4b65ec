"""Kernels on long clusters, in which they process many similar rows together.

Clusters of ``tests/cluster_strategies.py`` rarely have such rows. Most rows here are healthy, and a few have different
faults.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import numpy as np
import pytest

from kframe import kernels
from kframe.model.ids import STATE_SHIFT, PartitionState
from kframe.whatif.engines.zookeeper.sweep_healthy import rack_bits
from tests.kernels.compare import failure_counts, pair_failure_counts, parameters
from verification import reference

pytestmark = pytest.mark.kernel

ROWS: Final = 700
TOPICS: Final = 7
UNUSED_SLOTS: Final = 3
"""Slots without a replica after every hundredth row."""
#: Faulty rows or slots per thousand, and the number of unregistered brokers.
FAULTS: Final = [(0, 0), (0, 1), (2, 0), (2, 3), (15, 1), (15, 12), (300, 5)]


class Long:
    """Columns of ROWS rows on 30 brokers."""

    def __init__(self, seed: int, malformed: int, unregistered: int) -> None:
        self.rng = np.random.default_rng(seed)
        self.malformed, self.b = malformed / 1000, 30
        per_topic = self.rng.integers(1, 7, TOPICS)
        self.topic = np.sort(self.rng.integers(0, TOPICS, ROWS)).astype(np.int32)
        self.topic[self._some_positions(ROWS)] = -1
        self.replica_count = per_topic[self.topic].astype(np.int16)
        room = self.replica_count + UNUSED_SLOTS * (np.arange(ROWS) % 100 == 99)
        self.slot_start = (np.cumsum(room) - room).astype(np.int32)
        slots = int(room.sum()) + 5
        self.replica = np.zeros(slots, np.int16)
        for row, start in enumerate(self.slot_start.tolist()):
            order = self.rng.permutation(self.b) if row % 50 == 0 else (np.arange(self.b) + row) % self.b
            self.replica[start : start + self.replica_count[row]] = order[: self.replica_count[row]]
        self.isr, self.isr_count = self.replica.copy(), self.replica_count.copy()
        for row in self._some_positions(ROWS).tolist():
            start, count = self.slot_start[row], self.isr_count[row]
            self.isr[start : start + count] = self.rng.permutation(self.b)[:count]
        for row in range(0, ROWS // 2, 7):
            members = slice(self.slot_start[row], self.slot_start[row] + self.replica_count[row])
            self.isr[members] = self.isr[members][::-1].copy()
        shorter = self._some_positions(ROWS)
        self.isr_count[shorter] = self.rng.integers(0, self.replica_count[shorter] + 1)
        position = self.rng.integers(0, self.replica_count) * (np.arange(ROWS) % 3 == 0)
        self.leader = self.replica[self.slot_start + position]
        others = self._some_positions(ROWS)
        self.leader[others] = self.rng.integers(0, self.b, len(others))
        self.leader[others[::2]] = -1
        self.partition_epoch = np.zeros(ROWS, np.int32)
        self.partition_epoch[self._some_positions(ROWS)] = -1
        self.replica_status = np.zeros(slots, np.uint8)
        marked = self._some_positions(slots)
        self.replica_status[marked] = self.rng.integers(0, 8, len(marked))
        self.status = np.full(ROWS, PartitionState.ONLINE << STATE_SHIFT, np.uint8)
        moving = self._some_positions(ROWS)
        self.status[moving] = self.rng.integers(0, 4 << STATE_SHIFT, len(moving))
        self.status[600] = PartitionState.NEW << STATE_SHIFT
        self.live = np.ones(self.b, np.uint8)
        self.live[self.rng.permutation(self.b)[:unregistered]] = 0
        self.registered = self.live
        self.rack = self.rng.integers(-1 if malformed else 0, 4 if malformed else 30, self.b).astype(np.int32)
        self.rack_bit = rack_bits(self.rack, self.registered)
        self.deleting = (np.arange(TOPICS) == (3 if malformed else -1)).astype(np.uint8)
        self.min_insync = self.rng.integers(1, 5, TOPICS).astype(np.int32)
        self.unclean = self.rng.integers(0, 2, TOPICS).astype(np.uint8)

    def _some_positions(self, count: int) -> Any:
        return np.flatnonzero(self.rng.random(count) < self.malformed)


def compare_kernels(name: str, columns: object, inputs: Mapping[str, Any], out: Mapping[str, Any]) -> None:
    """Compare a kernel with its reference. ``out`` has the initial OUT and INOUT arrays."""
    results = []
    for module in (kernels, reference):
        written = {key: array.copy() for key, array in out.items()}
        values = written | dict(inputs)
        arguments = (values[key] if key in values else getattr(columns, key) for key in parameters(reference, name))
        count = getattr(module, name)(*arguments)
        results.append((count, {key: array.tolist() for key, array in written.items()}))
    assert results[0] == results[1]


LONG = pytest.mark.parametrize(
    "long",
    [Long(seed, *fault) for fault in FAULTS for seed in range(4)],
    ids=lambda long: f"{long.malformed}-{int((long.live == 0).sum())}",
)


def positions_of(long: Long) -> list[Any]:
    """All rows in order, or some of them. Some are locally out of order."""
    rows = np.arange(ROWS, dtype=np.int32)
    swapped = rows.copy()
    swapped[[100, 101, 350, 600]] = swapped[[101, 100, 600, 350]]
    return [rows, rows[long.rng.random(ROWS) < 0.3], rows[long.rng.random(ROWS) < 0.99], swapped, rows[5:64]]


@LONG
def test_row_lists_by_state_equal_reference(long: Long) -> None:
    rows = np.full(ROWS, 90, np.int32)
    for states in (0b101, 0b10, 0b1000, 0):
        compare_kernels("list_in_states", long, {"state_mask": states}, {"rows": rows})
    # With offline log directories no row is skipped.
    for flags in (long.replica_status, long.replica_status & 3):
        compare_kernels("list_leaderless", long, {"replica_status": flags}, {"rows": rows})


@LONG
def test_check_transitions_equals_reference(long: Long) -> None:
    for positions in positions_of(long):
        for allowed in (0xFF, 0b10, 0b1101, 0):
            arguments = {"positions": positions, "status": long.status, "allowed": allowed}
            compare_kernels("check_transitions", long, arguments, {"valid": np.full(len(positions), 90, np.uint8)})


@LONG
def test_initial_replica_states_equal_reference(long: Long) -> None:
    compare_kernels("initialize_replica_states", long, {}, {"replica_status": long.replica_status})


@LONG
def test_measure_live_leaders_equals_reference(long: Long) -> None:
    size = np.where(long.live, 20, 0).astype(np.int32)
    for rows in positions_of(long):
        for cuts in ([0, len(rows)], [0, 20, 20, len(rows) // 2, len(rows)]):
            for max_leaders in (long.b, 3):
                arguments = {
                    "section_start": np.array(cuts, np.int32),
                    "rows": rows,
                    "leader_size": size,
                    "max_leaders": max_leaders,
                    "compact": True,
                }
                out = {"last_section": np.full(long.b, 90, np.int32), "tail_length": np.zeros(len(cuts) - 1, np.int64)}
                compare_kernels("measure_live_leaders", long, arguments, out)


@LONG
def test_failure_counts_equal_reference(long: Long) -> None:
    arguments = {"first": 3, "last": ROWS - 2, "scratch": np.empty((3, 16), np.int32)}
    compare_kernels("count_failures", long, arguments, failure_counts(long.b, 30))
    compare_kernels("count_pair_failures", long, arguments, pair_failure_counts(long.b, ROWS))
