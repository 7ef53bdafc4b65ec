"""Fuzz targets and their cases, reproducible from seed and number."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple, Protocol, TypeAlias

import numpy as np

from kframe.model.columns import Int64, UInt8, offsets_of
from kframe_simulator._mutate import mutate

#: Cases that are made and evaluated at a time.
BATCH: Final = 1024
#: A case may be longer than the longest base by as much: there is room for the longest piece.
_GROWTH: Final = 16 * 1024

#: None of what was decoded, the reason of what was refused.
Outcome: TypeAlias = str | None


class Base(NamedTuple):
    """A message that cases are made of, and the name of its kind, which tells a target how to read it."""

    kind: str
    raw: bytes


@dataclass(frozen=True, slots=True, eq=False)
class Batch:
    """Some cases: case ``i`` is ``data[at[i]:at[i + 1]]``, and was made of a base of ``kinds[i]``."""

    kinds: Sequence[str]
    data: UInt8
    at: Int64

    def __len__(self) -> int:
        return len(self.kinds)

    def __getitem__(self, index: int) -> bytes:
        """The bytes of one case."""
        return self.data[self.at[index] : self.at[index + 1]].tobytes()

    def part(self, first: int, last: int) -> Batch:
        """The cases from ``first`` to ``last``, not included, with no byte of any other beside them."""
        begin, end = int(self.at[first]), int(self.at[last])
        return Batch(self.kinds[first:last], self.data[begin:end].copy(), self.at[first : last + 1] - begin)

    @staticmethod
    def of(bases: Sequence[Base]) -> Batch:
        """Messages as they are."""
        data, at = packed([base.raw for base in bases])
        return Batch([base.kind for base in bases], data, at)


class Target(Protocol):
    """Something that reads messages of others."""

    @property
    def name(self) -> str:
        """What it is called on command lines and in reports."""
        ...

    @property
    def bases(self) -> Sequence[Base]:
        """What cases are made of; none of them empty."""
        ...

    @property
    def pieces(self) -> Sequence[bytes]:
        """What breaks such a reader; put into messages here and there. None of them empty."""
        ...

    @property
    def share(self) -> int:
        """How many cases it gets for one that a target with a share of 1 gets."""
        ...

    def evaluate(self, batch: Batch) -> list[Outcome]:
        """What became of each case; each is decoded or refused, and evaluated the same in any company.

        Anything raised is a defect, an AssertionError too: of one case at least.
        """
        ...


class Cases:
    """The cases of one target and seed, by number."""

    def __init__(self, target: Target, seed: int) -> None:
        self._kinds = [base.kind for base in target.bases]
        self._corpus, self._corpus_at = packed([base.raw for base in target.bases])
        self._pieces, self._piece_at = packed(target.pieces)
        self._seed = seed
        self._most = int(np.diff(self._corpus_at).max()) + _GROWTH
        self._out = np.empty(8 * self._most + 512 * BATCH, np.uint8)

    def batches(self, first: int, count: int) -> Iterator[tuple[int, Batch]]:
        """``count`` cases from number ``first`` on, with the number that each batch begins at. A batch is good until
        the next."""
        done = 0
        while done < count:
            at = np.empty(min(BATCH, count - done) + 1, np.int64)
            made = mutate(
                self._corpus, self._corpus_at, self._pieces, self._piece_at, self._seed, first + done, self._most, at,
                self._out,
            )  # fmt: skip
            kinds = [self._kinds[number % len(self._kinds)] for number in range(first + done, first + done + made)]
            yield first + done, Batch(kinds, self._out[: at[made]], at[: made + 1])
            done += made


def packed(messages: Sequence[bytes]) -> tuple[UInt8, Int64]:
    """Messages one behind the other, and where each begins. Raises ValueError if one is empty."""
    if not messages or not all(messages):
        raise ValueError("there must be messages, and none of them empty")
    return np.frombuffer(b"".join(messages), np.uint8), offsets_of([len(message) for message in messages]).astype(
        np.int64
    )
