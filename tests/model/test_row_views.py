"""Values of rows are those that NumPy's indexing gives; only consecutive rows need no copy."""

from __future__ import annotations

import numpy as np
import pytest

from kframe.model.row_views import span_of, values_at


@pytest.mark.parametrize(
    "rows, is_view",
    [
        ([], False),
        ([3], True),
        ([0, 1, 2, 3, 4], True),
        ([2, 3], True),
        ([4, 3], False),
        ([1, 3], False),
        ([1, 4, 3], False),  # the first and last row are as far apart as in a block
        ([1, 1, 3], False),
        ([-1], False),
        ([-1, 0, 1], False),
    ],
)
def test_consecutive_rows_are_a_view_of_the_column(rows: list[int], is_view: bool) -> None:
    column = np.array([10, 11, 12, 13, 14], np.int32)
    values = values_at(column, np.array(rows, np.int32))
    assert values.tolist() == column[rows].tolist()
    assert np.shares_memory(values, column) is is_view


@pytest.mark.parametrize(
    ("rows", "index"),
    [([], None), ([4, 5, 5, 6], slice(4, 7)), ([6, 4, 4], slice(4, 7)), ([4, 9], None), ([3], slice(3, 4))],
)
def test_span_has_no_more_elements_than_rows(rows: list[int], index: slice | None) -> None:
    given = np.array(rows, np.int32)
    span = span_of(given)
    assert span is given if index is None else span == index
