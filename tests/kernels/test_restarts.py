"""The kernel of rolling restarts equals its reference."""

from __future__ import annotations

import inspect
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kframe import kernels
from kframe.model.arrays import Ragged, offsets_of
from verification.reference import restarts as reference

pytestmark = pytest.mark.kernel


@st.composite
def problems(draw: st.DrawFn) -> dict[str, Any]:
    """Up to 6 units and 8 limits, of which none is exceeded by one unit."""
    units = draw(st.integers(1, 6))
    lists = draw(st.lists(st.lists(st.integers(0, units - 1), unique=True, min_size=1).map(sorted), max_size=8))
    limits = Ragged.of(lists)
    members = np.array(draw(st.lists(st.integers(1, 2), min_size=len(limits.values), max_size=len(limits.values))))
    largest = [int(members[limits.owners == number].max()) for number in range(len(limits))]
    by_unit = np.argsort(limits.values, kind="stable")
    numbers = st.integers(0, 5)
    return {
        "order": np.array(draw(st.permutations(range(units)))[: draw(st.integers(0, units))], np.int32),
        "unit_start": offsets_of(np.bincount(limits.values, minlength=units)),
        "limit": limits.owners[by_unit],
        "limit_start": limits.offsets,
        "unit": limits.values,
        "members": members.astype(np.int32),
        "capacity": np.array([least + draw(st.integers(0, 2)) for least in largest], np.int32),
        "exhausted": np.array([draw(numbers) for _ in lists], np.int64),
        "group": np.array([draw(st.integers(0, 1)) for _ in range(units)], np.int32),
        "size": np.array([draw(st.integers(1, 2)) for _ in range(units)], np.int32),
        "exhausted_max": draw(st.sampled_from([3, 10, 2**62])),
        "size_max": draw(st.sampled_from([1, 3, 2**62])),
        "down": np.zeros(units, np.int32),
        "forbidden": np.zeros(units, np.uint8),
        "used": np.zeros((3, units), np.int64),
        "batch_group": np.zeros(units, np.int32),
        "batch": np.full(units, -1, np.int32),
    }


@given(problems())
def test_batches_equal_reference(values: dict[str, Any]) -> None:
    names = inspect.signature(reference.assign_batches).parameters
    results = []
    for module in (kernels, reference):
        copies = {name: np.copy(values[name]) if name != "batch" else values[name].copy() for name in names}
        arguments = [int(value) if value.ndim == 0 else value for value in copies.values()]
        count = module.assign_batches(*arguments)
        results.append((count, copies["batch"].tolist(), copies["down"].any()))
    assert results[0] == results[1]
