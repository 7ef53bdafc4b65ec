"""Arrays of the size of the cluster are made once, not for each batch."""

from __future__ import annotations

from kframe.wire.scratch import Scratch


def test_the_same_memory_is_lent_again_also_after_an_error() -> None:
    scratch = Scratch()
    with scratch.lend(100) as (size, at):
        assert (len(size), len(at)) == (100, 100)
        size[:], at[:] = 7, 8
    with scratch.lend(60) as (size, at):
        assert size.tolist() == [7] * 60
        assert at.tolist() == [8] * 60
    try:
        with scratch.lend(80) as (size, _):
            raise RuntimeError("somebody else's")
    except RuntimeError:
        pass
    with scratch.lend(80) as (again, _):
        assert again.base is size.base


def test_who_borrows_at_the_same_time_gets_other_memory() -> None:
    scratch = Scratch()
    with scratch.lend(10) as (first, first_at), scratch.lend(10) as (second, second_at):
        first[:], first_at[:], second[:], second_at[:] = 1, 2, 3, 4
        assert first.tolist() == [1] * 10
        assert first_at.tolist() == [2] * 10


def test_it_grows_with_the_cluster() -> None:
    scratch = Scratch()
    with scratch.lend(8):
        pass
    with scratch.lend(1_000) as (size, at):
        assert (len(size), len(at)) == (1_000, 1_000)
