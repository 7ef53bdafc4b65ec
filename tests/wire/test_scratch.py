"""Arrays of the cluster's size are allocated once, not for each batch, and two batches at a time share none."""

from __future__ import annotations

import pytest

from kframe.wire.scratch import Scratch

pytestmark = pytest.mark.kernel


def test_arrays_grow_with_the_cluster_and_are_reused() -> None:
    scratch = Scratch()
    with scratch.reserve(60):
        pass
    with scratch.reserve(100) as (size, offset):
        assert (len(size), len(offset)) == (100, 100)
    with scratch.reserve(80) as (again, _):
        assert again.base is size.base


def test_nested_reservations_get_separate_arrays() -> None:
    scratch = Scratch()
    with scratch.reserve(10) as first, scratch.reserve(10) as second:
        assert len({id(array.base) for array in (*first, *second)}) == 4
