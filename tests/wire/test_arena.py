"""An arena lends every byte once."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from kframe.wire.arena import BLOCK_BYTES_MAX, FIRST_BLOCK_BYTES, Arena


@given(st.lists(st.one_of(st.integers(0, 100), st.integers(0, 3 * FIRST_BLOCK_BYTES)), max_size=20))
def test_no_two_loans_overlap(sizes: list[int]) -> None:
    arena = Arena()
    loans = [arena.lend(size) for size in sizes]
    for number, loan in enumerate(loans):
        loan[:] = number
    assert [len(loan) for loan in loans] == sizes
    assert all(np.all(loan == number) for number, loan in enumerate(loans))


def test_a_loan_larger_than_any_block() -> None:
    assert len(Arena().lend(BLOCK_BYTES_MAX + 1)) == BLOCK_BYTES_MAX + 1


def test_blocks_grow_to_a_limit() -> None:
    arena = Arena()
    loans = [arena.lend(FIRST_BLOCK_BYTES) for _ in range(600)]
    lengths = list({id(loan.base): len(loan.base) for loan in loans if loan.base is not None}.values())
    assert lengths[:4] == [FIRST_BLOCK_BYTES << step for step in range(4)]
    assert max(lengths) == BLOCK_BYTES_MAX
