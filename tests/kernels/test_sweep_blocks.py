"""The sweep's kernels process healthy rows of one topic in blocks.

They equal their references for any different row and any racks.
"""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any, Final

import numpy as np
import pytest

from kframe import kernels
from kframe.kernels.reference import sweep as reference
from kframe.whatif.sweep_healthy import rack_bits
from tests.kernels.test_long import both

BLOCK: Final = 32
ROWS: Final = 3 * BLOCK + 5
BROKERS: Final = 12


def uniform(replicas: int, least: int = 2, racks: int = 4) -> SimpleNamespace:
    """Rows of one topic with replicas in random order. From the middle on, any replica may be the leader."""
    rng = np.random.default_rng(replicas)
    listed = np.argsort(rng.random((ROWS, BROKERS)), axis=1)[:, :replicas].astype(np.int16)
    position = rng.integers(0, replicas, ROWS) * (np.arange(ROWS) >= ROWS // 2)
    case = SimpleNamespace(
        topic=np.zeros(ROWS, np.int32), partition_epoch=np.zeros(ROWS, np.int32),
        slot_start=np.arange(ROWS, dtype=np.int32) * replicas, replica_count=np.full(ROWS, replicas, np.int16),
        isr_count=np.full(ROWS, replicas, np.int16), replica=listed.reshape(-1), isr=listed.reshape(-1).copy(),
        leader=listed[np.arange(ROWS), position].copy(), registered=np.ones(BROKERS, np.uint8),
        rack=np.arange(BROKERS, dtype=np.int32) % racks, deleting=np.zeros(2, np.uint8),
        min_insync=np.array([least, 1], np.int32), unclean=np.zeros(2, np.uint8),
    )  # fmt: skip
    case.rack_bit = rack_bits(case.rack, case.registered)
    return case


def check(one: Any, first: int = 0, last: int = ROWS) -> None:
    b, racks = BROKERS, BROKERS + 1
    shapes = {"totals": (2, 8), "brokers": (b, 8), "racks": (racks, 8), "leads": (2, b), "broker_leads": (b, b),
              "rack_leads": (racks, b), "successors": (7, b, b), "further": (7, b), "shared_racks": (7, b)}  # fmt: skip
    arguments = {"first": first, "last": last, "scratch": np.empty((3, 20), np.int32)}
    single = {name: np.full(shape, 7, np.int32) for name, shape in shapes.items()}
    both(kernels, reference, "count_failures", one, arguments, single)
    pairs = {"pairs": np.full((b * (b - 1) // 2, 8), 7, np.int32), "lead_key": np.zeros(4 * ROWS, np.int64),
             "lead_change": np.zeros(4 * ROWS, np.int8), "third_key": np.full(ROWS, 7, np.int64),
             "further_pairs": np.full((3, b, b), 7, np.int32)}  # fmt: skip
    both(kernels, reference, "count_pair_failures", one, arguments, pairs)


@pytest.mark.parametrize("least", [1, 2, 3, 9])
@pytest.mark.parametrize("replicas", range(1, 10))
def test_any_number_of_replicas(replicas: int, least: int) -> None:
    case = uniform(replicas, least)
    for first, last in ((0, ROWS), (1, ROWS - 1), (5, 5 + BLOCK), (6, 5 + BLOCK), (ROWS - BLOCK, ROWS), (7, 7)):
        check(case, first, last)


@pytest.mark.parametrize("racks", [1, 2, 3, 5, BROKERS])
@pytest.mark.parametrize("replicas", [2, 3, 5])
def test_any_number_of_racks(replicas: int, racks: int) -> None:
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


def gone(one: Any, row: int) -> None:
    one.registered[one.replica[one.slot_start[row]]] = 0
    one.rack_bit = rack_bits(one.rack, one.registered)


def led_by_nobody(one: Any, row: int) -> None:
    one.leader[row] = -1


def led_by_another(one: Any, row: int) -> None:
    one.leader[row] = next(iter(set(range(BROKERS)) - set(one.replica[one.slot_start[row] :][:3].tolist())))


def without_state(one: Any, row: int) -> None:
    one.partition_epoch[row] = -1


def out_of_sync(one: Any, row: int) -> None:
    one.isr_count[row] -= 1


def in_another_order(one: Any, row: int) -> None:
    members = slice(one.slot_start[row], one.slot_start[row] + 3)
    one.isr[members] = one.isr[members][::-1].copy()


def joined_by_another(one: Any, row: int) -> None:
    led_by_another(one, row)
    one.isr[one.slot_start[row] + 2] = one.leader[row]


def of_fewer(one: Any, row: int) -> None:
    one.replica_count[row] = one.isr_count[row] = 2


def elsewhere(one: Any, row: int) -> None:
    one.slot_start[row] = 0


def of_no_topic(one: Any, row: int) -> None:
    one.topic[row] = -1


def of_the_next_topic(one: Any, row: int) -> None:
    one.topic[row:] = 1


def of_a_topic_that_goes(one: Any, row: int) -> None:
    one.topic[row:], one.deleting[1] = 1, 1


def that_needs_nobody(one: Any, row: int) -> None:
    one.topic[row:], one.min_insync[1] = 1, 0


@pytest.mark.parametrize("row", [0, 1, BLOCK - 1, BLOCK, BLOCK + 7, ROWS - 6, ROWS - 1])
@pytest.mark.parametrize(
    "bend",
    [gone, led_by_nobody, led_by_another, without_state, out_of_sync, in_another_order, joined_by_another, of_fewer,
     elsewhere, of_no_topic, of_the_next_topic, of_a_topic_that_goes, that_needs_nobody],
)  # fmt: skip
def test_a_row_unlike_the_rest(bend: Callable[[Any, int], None], row: int) -> None:
    case = uniform(3)
    bend(case, row)
    check(case)
    check(case, row, min(row + BLOCK, ROWS))
