"""Arrays of the cluster's size are allocated once, not for each batch."""

from __future__ import annotations

import pytest

from kframe.wire.scratch import Scratch

pytestmark = pytest.mark.kernel


def test_arrays_are_reused_after_error() -> None:
    scratch = Scratch()
    with scratch.reserve(100) as (size, offset):
        assert (len(size), len(offset)) == (100, 100)
        size[:], offset[:] = 7, 8
    with scratch.reserve(60) as (size, offset):
        assert size.tolist() == [7] * 60
        assert offset.tolist() == [8] * 60
    try:
        with scratch.reserve(80) as (size, _):
            raise RuntimeError("somebody else's")
    except RuntimeError:
        pass
    with scratch.reserve(80) as (again, _):
        assert again.base is size.base


def test_nested_reservations_get_separate_arrays() -> None:
    scratch = Scratch()
    with scratch.reserve(10) as (first, first_at), scratch.reserve(10) as (second, second_at):
        first[:], first_at[:], second[:], second_at[:] = 1, 2, 3, 4
        assert first.tolist() == [1] * 10
        assert first_at.tolist() == [2] * 10


def test_arrays_grow_with_the_cluster() -> None:
    scratch = Scratch()
    with scratch.reserve(8):
        pass
    with scratch.reserve(1_000) as (size, offset):
        assert (len(size), len(offset)) == (1_000, 1_000)
