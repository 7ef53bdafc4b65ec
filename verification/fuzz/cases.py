"""Fuzz targets and their cases, reproducible from seed and number."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple, Protocol, TypeAlias

import numpy as np

from kframe.model.arrays import Int64, UInt8, offsets_of
from verification.fuzz.mutate import mutate

#: Cases in a batch.
BATCH: Final = 1024
#: How much longer than the longest base a case may be; the longest piece fits.
_GROWTH: Final = 16 * 1024

#: None for a decoded case, the reason for a refused one.
Outcome: TypeAlias = str | None


class Base(NamedTuple):
    """A message that cases are mutations of. The target decodes the message by its ``kind``."""

    kind: str
    raw: bytes


@dataclass(frozen=True, slots=True, eq=False)
class Batch:
    """Some cases: case ``i`` is ``data[offsets[i]:offsets[i + 1]]``, a mutation of a base of ``kinds[i]``."""

    kinds: Sequence[str]
    data: UInt8
    offsets: Int64

    def __len__(self) -> int:
        return len(self.kinds)

    def __getitem__(self, index: int) -> bytes:
        """The bytes of one case."""
        return self.data[self.offsets[index] : self.offsets[index + 1]].tobytes()

    def part(self, first: int, last: int) -> Batch:
        """The cases from ``first`` up to but excluding ``last``, in a buffer without other bytes."""
        begin, end = int(self.offsets[first]), int(self.offsets[last])
        return Batch(self.kinds[first:last], self.data[begin:end].copy(), self.offsets[first : last + 1] - begin)

    @staticmethod
    def of(bases: Sequence[Base]) -> Batch:
        """A batch of unchanged messages."""
        data, offsets = packed([base.raw for base in bases])
        return Batch([base.kind for base in bases], data, offsets)


class DecoderTarget(Protocol):
    """A decoder of untrusted messages."""

    @property
    def name(self) -> str:
        """The name on command lines and in reports."""

    @property
    def bases(self) -> Sequence[Base]:
        """The messages that cases are mutations of. None is empty."""

    @property
    def pieces(self) -> Sequence[bytes]:
        """Byte strings that decoders often mishandle, inserted at random. None is empty."""

    @property
    def share(self) -> int:
        """The number of cases, relative to a target with a share of 1."""

    def evaluate(self, batch: Batch) -> list[Outcome]:
        """The outcome of each case, decoded or refused. It does not depend on the other cases of the batch.

        Any exception is a defect of at least one case, AssertionError included.
        """


class Cases:
    """The numbered cases of one target and seed."""

    def __init__(self, target: DecoderTarget, seed: int) -> None:
        self._kinds = [base.kind for base in target.bases]
        self._corpus, self._corpus_offsets = packed([base.raw for base in target.bases])
        self._pieces, self._piece_offsets = packed(target.pieces)
        self._seed = seed
        self._max_length = int(np.diff(self._corpus_offsets).max()) + _GROWTH
        self._out = np.empty(8 * self._max_length + 512 * BATCH, np.uint8)

    def batches(self, first: int, count: int) -> Iterator[tuple[int, Batch]]:
        """``count`` cases from number ``first``, with the first number of each batch. A batch is valid until the next
        one."""
        done = 0
        while done < count:
            offsets = np.empty(min(BATCH, count - done) + 1, np.int64)
            mutated = mutate(
                self._corpus,
                self._corpus_offsets,
                self._pieces,
                self._piece_offsets,
                self._seed,
                first + done,
                self._max_length,
                offsets,
                self._out,
            )
            kinds = [self._kinds[number % len(self._kinds)] for number in range(first + done, first + done + mutated)]
            yield first + done, Batch(kinds, self._out[: offsets[mutated]], offsets[: mutated + 1])
            done += mutated


def packed(messages: Sequence[bytes]) -> tuple[UInt8, Int64]:
    """The concatenated messages, and the offset of each. Raises ValueError if one is empty."""
    if not messages or not all(messages):
        raise ValueError("there must be messages, and none of them empty")
    return np.frombuffer(b"".join(messages), np.uint8), offsets_of([len(message) for message in messages]).astype(
        np.int64
    )
