"""Each mutated case depends on its number alone, and every mutation is applied."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from verification.fuzz import packed
from verification.fuzz.mutate import mutate

MESSAGES = st.lists(st.binary(min_size=1, max_size=40) | st.just(b'{"a":12,"b":[3]}'), min_size=1, max_size=4)
WORDS = st.integers(0, 2**64 - 1)
#: The bytes after the buffer for cases, which must not change.
GUARD = 0x5A


def cases(messages: list[bytes], pieces: list[bytes], seed: int, first: int, most: int) -> list[bytes]:
    """The cases that fit in the buffer, at most eight."""
    offsets, out = np.zeros(9, np.int64), np.full(4 * most + 16, GUARD, np.uint8)
    made = mutate(*packed(messages), *packed(pieces), seed, first, most, offsets, out[:-16])
    assert (out[-16:] == GUARD).all()
    assert made >= 4
    return [out[offsets[i] : offsets[i + 1]].tobytes() for i in range(made)]


@given(MESSAGES, MESSAGES, WORDS, st.integers(0, 2**62), st.integers(0, 30))
def test_cases_fit_in_their_length(
    messages: list[bytes], pieces: list[bytes], seed: int, first: int, room: int
) -> None:
    most = max(map(len, messages)) + room
    assert max(map(len, cases(messages, pieces, seed, first, most))) <= most


@given(MESSAGES, WORDS, st.integers(0, 2**62))
def test_case_depends_only_on_seed_and_number(messages: list[bytes], seed: int, first: int) -> None:
    many = cases(messages, [b"x"], seed, first, 64)
    for index, case in enumerate(many):
        assert cases(messages, [b"x"], seed, first + index, 64)[0] == case


def test_every_mutation_is_applied() -> None:
    message = bytes(range(32, 96))
    made = [case for seed in range(200) for case in cases([message], [b"PIECE", b"Q"], seed, 0, 200)]
    lengths = {len(case) for case in made}
    assert {63, 64, 65, 66} <= lengths  # Removed, changed and inserted bytes.
    assert min(lengths) < 20  # Truncated.
    assert max(lengths) > 75  # Duplicated.
    assert any(b"PIECE" in case for case in made)
    assert any(b"\x7f\xff\xff\xff" in case for case in made)
    assert sum(case == message for case in made) < len(made) / 5
    assert len(set(made)) > len(made) * 3 / 4
