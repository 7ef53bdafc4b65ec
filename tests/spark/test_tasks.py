"""Inputs are assigned to the tasks of a job round-robin."""

from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kframe.spark.tasks import InputTasks


def batch(*tasks: int) -> pa.RecordBatch:
    return pa.RecordBatch.from_pydict({"id": pa.array(tasks, pa.int64())})


@pytest.mark.parametrize(
    "inputs, tasks, rows, numbers",
    [
        (5, 5, [3], [3]),
        (5, 2, [0], [0, 2, 4]),
        (5, 2, [1], [1, 3]),
        (3, 2, [0, 1], [0, 2, 1]),
        (0, 1, [0], []),
    ],
)
def test_a_task_has_every_nth_input(inputs: int, tasks: int, rows: list[int], numbers: list[int]) -> None:
    assert list(InputTasks(inputs, tasks).numbers([batch(*rows)])) == numbers


@given(inputs=st.integers(0, 50), tasks=st.integers(1, 20))
def test_each_input_has_a_task(inputs: int, tasks: int) -> None:
    assigned = InputTasks(inputs, tasks)
    assert sorted(assigned.numbers(batch(task) for task in range(tasks))) == list(range(inputs))
