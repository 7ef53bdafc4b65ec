"""The kernels of stages equal their references, and a schedule keeps every limit."""

from __future__ import annotations

import inspect
from typing import Any, Final

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kframe import kernels
from kframe.model.arrays import Ragged, offsets_of
from kframe.model.columns import Partitions
from verification.reference import stages as reference

pytestmark = pytest.mark.kernel

#: What a caller reads after ``schedule_stages``.
RESULTS: Final = ("free", "stage", "pending")
UNLIMITED: Final = 2**62


def columns(draw: st.DrawFn, elements: st.SearchStrategy[Any], dtype: Any, size: int) -> Any:
    return np.array(draw(st.lists(elements, min_size=size, max_size=size)), dtype)


@st.composite
def schedules(draw: st.DrawFn) -> dict[str, Any]:
    """Arguments of ``schedule_stages``: up to 5 brokers and 14 reassignments in any groups."""
    brokers, rows = draw(st.integers(1, 5)), draw(st.integers(0, 14))
    orders = [draw(st.permutations(range(brokers))) for _ in range(rows)]
    added = [order[1 : 1 + draw(st.integers(0, 2))] for order in orders]
    removed = [order[:1] if draw(st.booleans()) else [] for order in orders]
    size, source = columns(draw, st.integers(0, 9), np.int64, rows), np.array([order[0] for order in orders], np.int32)
    limits = [draw(st.sampled_from(values)) for values in ([2, 3, UNLIMITED], [18, 30], [3, 9], [40, UNLIMITED])]
    keys = sorted({(tuple(targets), int(source[row])) for row, targets in enumerate(added)})
    groups = [[row for row in range(rows) if (tuple(added[row]), int(source[row])) == key] for key in keys]
    pending = np.zeros((4, brokers), np.int64)
    for row, targets in enumerate(added):
        for line, brokers_, amount in (
            (0, targets, 1),
            (1, [source[row]] * len(targets), 1),
            (2, targets, size[row]),
            (3, [source[row]] * len(targets), size[row]),
        ):
            np.add.at(pending[line], list(brokers_), amount)
    offsets = offsets_of([len(group) for group in groups])
    return {
        "group_offsets": offsets,
        "rank": columns(draw, st.integers(0, 3), np.uint8, len(groups)),
        "add_offsets": offsets_of([len(targets) for targets in added]),
        "adding": np.array([broker for targets in added for broker in targets], np.int32),
        "remove_offsets": offsets_of([len(brokers_) for brokers_ in removed]),
        "removing": np.array([broker for brokers_ in removed for broker in brokers_], np.int32),
        "source": source,
        "size": size,
        "limits": np.array(limits, np.int64),
        "members": np.array([row for group in groups for row in group], np.int32),
        "heads": offsets[:-1].copy(),
        "queue": np.arange(len(groups), dtype=np.int32),
        "scratch": np.zeros((2, len(groups)), np.int32),
        "starts": np.zeros(129, np.int32),
        "staged": np.zeros(rows, np.int32),
        "total": np.zeros(2, np.int64),
        "load": np.zeros((4, brokers), np.int64),
        "pending": pending,
        "pressure": np.zeros(brokers, np.float64),
        "free": columns(draw, st.integers(-4, 30), np.int64, brokers),
        "stage": np.full(rows, -1, np.int32),
    }


def results_of(module: Any, name: str, values: dict[str, Any]) -> tuple[int, dict[str, Any]]:
    """The result and the arguments after a call."""
    copies = {key: values[key].copy() for key in inspect.signature(getattr(reference, name)).parameters}
    return getattr(module, name)(*copies.values()), copies


@given(schedules())
def test_stage_schedule_equals_reference(arguments: dict[str, Any]) -> None:
    compiled, expected = (results_of(module, "schedule_stages", arguments) for module in (kernels, reference))
    assert compiled[0] == expected[0]
    for name in RESULTS:
        np.testing.assert_array_equal(compiled[1][name], expected[1][name], name)


@st.composite
def changes(draw: st.DrawFn) -> dict[str, Any]:
    """Arguments of ``count_harmed``: up to 6 brokers and 6 partitions, before and after any change."""
    brokers, rows = draw(st.integers(1, 6)), draw(st.integers(0, 6))
    values: dict[str, Any] = {
        "group": columns(draw, st.integers(0, 2), np.int32, rows),
        "unclean": columns(draw, st.integers(0, 1), np.uint8, rows),
        "registered": columns(draw, st.integers(0, 1), np.uint8, brokers),
        "rack": np.full(brokers, -1, np.int32),
        "harm": np.zeros((3, brokers + 1, 3), np.int32),
    }
    for prefix in ("", "new_"):
        replicas = [draw(st.permutations(range(brokers)))[: draw(st.integers(1, 4))] for _ in range(rows)]
        in_sync = [draw(st.lists(st.sampled_from(list_), unique=True)) for list_ in replicas]
        partitions = Partitions()
        numbers = np.arange(rows, dtype=np.int32)
        leaders = [draw(st.sampled_from([-1, *list_])) for list_ in replicas]
        partitions.append(
            numbers, numbers, Ragged.of(replicas), Ragged.of(in_sync), {"leader": np.array(leaders, np.int16)}
        )
        names = ("leader", "slot_start", "replica_count", "isr_count", "replica", "isr")
        values |= {prefix + name: getattr(partitions, name) for name in names}
        values[f"{prefix}min_isr"] = columns(draw, st.integers(0, 3), np.int32, rows)
    return values


@given(changes())
def test_harmed_counts_equal_reference(arguments: dict[str, Any]) -> None:
    compiled, expected = (results_of(module, "count_harmed", arguments) for module in (kernels, reference))
    assert compiled[0] == expected[0]
    np.testing.assert_array_equal(compiled[1]["harm"], expected[1]["harm"])
