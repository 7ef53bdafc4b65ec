"""The kernels that check a snapshot's lists equal their references, on valid, malformed and long lists."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kframe import kernels
from kframe.model.arrays import Ragged
from verification.reference import list_checks

pytestmark = pytest.mark.kernel

IDS = st.integers(-1, 4)
LISTS = st.one_of(
    st.permutations([0, 1, 2]), st.lists(IDS, min_size=3, max_size=3), st.lists(IDS, max_size=5), st.just([*range(65)])
)


@given(st.lists(st.tuples(LISTS, LISTS, IDS), max_size=8))
def test_list_checks_equal_references(rows: list[tuple[list[int], list[int], int]]) -> None:
    lists, allowed = Ragged.of([row[0] for row in rows]), Ragged.of([row[1] for row in rows])
    leader = np.array([row[2] for row in rows], np.int32)
    arguments = lists.offsets, lists.values, allowed.offsets, allowed.values
    assert kernels.count_wrong_lists(*arguments) == list_checks.count_wrong_lists(*arguments)
    of_leaders = leader, lists.offsets, lists.values
    assert kernels.count_wrong_leaders(*of_leaders) == list_checks.count_wrong_leaders(*of_leaders)


@pytest.mark.parametrize(
    "ids, allowed, wrong",
    [
        ([], [], 0),
        ([1, 2, 3], [3, 1, 2], 0),
        ([1, 2], [3, 1, 2], 0),
        ([1, 2, 4], [3, 1, 2], 1),
        ([1, 2, 2], [3, 1, 2], 1),
        ([1, 1], [1, 2, 3], 1),
        ([-1, 1, 2], [-1, 1, 2], 1),
        ([-1], [-1], 1),
        ([1], [], 1),
        ([*range(64)], [*range(64)], 0),
        ([*range(65)], [*range(65)], 1),
        ([1], [*range(65)], 1),
    ],
)
def test_wrong_lists(ids: list[int], allowed: list[int], wrong: int) -> None:
    lists, others = Ragged.of([ids]), Ragged.of([allowed])
    assert kernels.count_wrong_lists(lists.offsets, lists.values, others.offsets, others.values) == wrong
