"""The sweep's kernels process healthy rows of one topic in blocks.

They equal their references for any different row and any racks.
"""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any, Final

import numpy as np
import pytest

from kframe.whatif.engines.zookeeper.sweep_healthy import rack_bits
from tests.kernels.compare import failure_counts, pair_failure_counts
from tests.kernels.test_long import compare_kernels

pytestmark = pytest.mark.kernel

BLOCK: Final = 32
ROWS: Final = 3 * BLOCK + 5
BROKERS: Final = 12


def uniform(replicas: int, min_isr: int = 2, racks: int = 4) -> SimpleNamespace:
    """Rows of one topic with replicas in random order. From the middle on, any replica may be the leader."""
    rng = np.random.default_rng(replicas)
    listed = np.argsort(rng.random((ROWS, BROKERS)), axis=1)[:, :replicas].astype(np.int16)
    position = rng.integers(0, replicas, ROWS) * (np.arange(ROWS) >= ROWS // 2)
    case = SimpleNamespace(
        topic=np.zeros(ROWS, np.int32),
        partition_epoch=np.zeros(ROWS, np.int32),
        slot_start=np.arange(ROWS, dtype=np.int32) * replicas,
        replica_count=np.full(ROWS, replicas, np.int16),
        isr_count=np.full(ROWS, replicas, np.int16),
        replica=listed.reshape(-1),
        isr=listed.reshape(-1).copy(),
        leader=listed[np.arange(ROWS), position].copy(),
        registered=np.ones(BROKERS, np.uint8),
        rack=np.arange(BROKERS, dtype=np.int32) % racks,
        deleting=np.zeros(2, np.uint8),
        min_insync=np.array([min_isr, 1], np.int32),
        unclean=np.zeros(2, np.uint8),
    )
    case.rack_bit = rack_bits(case.rack, case.registered)
    return case


def check(case: Any, first: int = 0, last: int = ROWS) -> None:
    arguments = {"first": first, "last": last, "scratch": np.empty((3, 20), np.int32)}
    compare_kernels("count_failures", case, arguments, failure_counts(BROKERS, BROKERS + 1))
    compare_kernels("count_pair_failures", case, arguments, pair_failure_counts(BROKERS, ROWS))


@pytest.mark.parametrize("min_isr", [1, 2, 3, 9])
@pytest.mark.parametrize("replicas", range(1, 10))
def test_sweep_of_any_replication_factor_equals_reference(replicas: int, min_isr: int) -> None:
    case = uniform(replicas, min_isr)
    for first, last in ((0, ROWS), (1, ROWS - 1), (5, 5 + BLOCK), (6, 5 + BLOCK), (ROWS - BLOCK, ROWS), (7, 7)):
        check(case, first, last)


@pytest.mark.parametrize("racks", [1, 2, 3, 5, BROKERS])
@pytest.mark.parametrize("replicas", [2, 3, 5])
def test_sweep_of_any_racks_equals_reference(replicas: int, racks: int) -> None:
    case = uniform(replicas, racks=racks)
    for bits in (62, 2, 1):
        case.rack_bit = rack_bits(case.rack, case.registered, bits)
        check(case)
    case.rack[::3] = -1
    case.rack_bit = rack_bits(case.rack, case.registered, 2)
    check(case)
    case.rack[:] = -1
    case.rack_bit = rack_bits(case.rack, case.registered)
    check(case)


def with_unregistered_broker(case: Any, row: int) -> None:
    case.registered[case.replica[case.slot_start[row]]] = 0
    case.rack_bit = rack_bits(case.rack, case.registered)


def without_leader(case: Any, row: int) -> None:
    case.leader[row] = -1


def with_unassigned_leader(case: Any, row: int) -> None:
    case.leader[row] = next(iter(set(range(BROKERS)) - set(case.replica[case.slot_start[row] :][:3].tolist())))


def without_state(case: Any, row: int) -> None:
    case.partition_epoch[row] = -1


def out_of_sync(case: Any, row: int) -> None:
    case.isr_count[row] -= 1


def with_reordered_isr(case: Any, row: int) -> None:
    members = slice(case.slot_start[row], case.slot_start[row] + 3)
    case.isr[members] = case.isr[members][::-1].copy()


def with_unassigned_isr_leader(case: Any, row: int) -> None:
    with_unassigned_leader(case, row)
    case.isr[case.slot_start[row] + 2] = case.leader[row]


def with_fewer_replicas(case: Any, row: int) -> None:
    case.replica_count[row] = case.isr_count[row] = 2


def with_foreign_slots(case: Any, row: int) -> None:
    case.slot_start[row] = 0


def of_no_topic(case: Any, row: int) -> None:
    case.topic[row] = -1


def of_the_next_topic(case: Any, row: int) -> None:
    case.topic[row:] = 1


def of_deleting_topic(case: Any, row: int) -> None:
    case.topic[row:], case.deleting[1] = 1, 1


def with_min_isr_zero(case: Any, row: int) -> None:
    case.topic[row:], case.min_insync[1] = 1, 0


@pytest.mark.parametrize("row", [0, 1, BLOCK - 1, BLOCK, BLOCK + 7, ROWS - 6, ROWS - 1])
@pytest.mark.parametrize(
    "mutate",
    [
        with_unregistered_broker,
        without_leader,
        with_unassigned_leader,
        without_state,
        out_of_sync,
        with_reordered_isr,
        with_unassigned_isr_leader,
        with_fewer_replicas,
        with_foreign_slots,
        of_no_topic,
        of_the_next_topic,
        of_deleting_topic,
        with_min_isr_zero,
    ],
)
def test_sweep_with_single_differing_row_equals_reference(mutate: Callable[[Any, int], None], row: int) -> None:
    case = uniform(3)
    mutate(case, row)
    check(case)
    check(case, row, min(row + BLOCK, ROWS))
