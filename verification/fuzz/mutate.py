"""Mutations of messages: a case depends on the seed and on its number alone."""

from __future__ import annotations

from typing import Final

import numpy as np

from kframe.model.arrays import Int64, UInt8

__all__ = ["mutate"]

_EDGES: Final = (0, 1, 2, 0x7F, 0x80, 0x81, 0xFE, 0xFF)
_LENGTHS: Final = (-1, 0, 1, 0x7FFF, 0x10000, 0x7FFFFFFF, -(2**31), 0x01010101)
_WORD: Final = 2**64


def mutate(
    corpus: UInt8,
    corpus_offsets: Int64,
    pieces: UInt8,
    piece_offsets: Int64,
    seed: int,
    first: int,
    max_length: int,
    case_offsets: Int64,
    out: UInt8,
) -> int:
    """Fill a batch: case ``first + i`` is message ``(first + i) % c`` of the corpus, mutated one to three times.

    Writes the bytes of the cases to ``out`` (bytes,) and their offsets to ``case_offsets`` (cases + 1,). Each has at
    most ``max_length`` bytes. Returns how many fit.
    """
    messages, parts = _split(corpus, corpus_offsets), _split(pieces, piece_offsets)
    i = start = 0
    while i < len(case_offsets) - 1 and start + max_length <= len(out):
        case = _Case(messages[(first + i) % len(messages)], max_length, (seed * 0xD1342543DE82EF95 + first + i) % _WORD)
        for _ in range(1 + case.draw(3)):
            case.mutate_once(messages, parts)
        case_offsets[i] = start
        out[start : start + len(case.data)] = np.frombuffer(case.data, np.uint8)
        start += len(case.data)
        i += 1
    case_offsets[i] = start
    return i


def _split(data: UInt8, offsets: Int64) -> list[bytes]:
    return [data[offsets[i] : offsets[i + 1]].tobytes() for i in range(len(offsets) - 1)]


class _Case:
    """A case under construction."""

    def __init__(self, message: bytes, max_length: int, state: int) -> None:
        self.data = bytearray(message)
        self._max_length = max_length
        self._state = state

    def draw(self, below: int) -> int:
        self._state = mixed = (self._state + 0x9E3779B97F4A7C15) % _WORD
        mixed = (mixed ^ mixed >> 30) * 0xBF58476D1CE4E5B9 % _WORD
        mixed = (mixed ^ mixed >> 27) * 0x94D049BB133111EB % _WORD
        return (mixed ^ mixed >> 31) % below

    def mutate_once(self, messages: list[bytes], parts: list[bytes]) -> None:
        kind, offset = self.draw(16), self.draw(len(self.data) + 1)
        if offset == len(self.data) and (kind <= 5 or kind == 15):
            return
        if kind <= 5:
            self._mutate_byte(kind, offset)
        elif kind <= 7:
            self._put(offset, 1 + self.draw(8), b"")
        elif kind == 8:
            size = min(1 + self.draw(16), len(self.data) - offset)
            self._put(offset + size, 0, self.data[offset : offset + size])
        elif kind <= 12:
            part = parts[self.draw(len(parts))]
            self._put(offset, self.draw(13) if kind > 10 else 0, part)
        elif kind == 13:
            del self.data[offset:]
        elif kind == 14:
            other = messages[self.draw(len(messages))]
            self._put(offset, len(self.data) - offset, other[self.draw(len(other)) :])
        else:
            self._mutate_length(offset)

    def _mutate_byte(self, kind: int, offset: int) -> None:
        digit = next((i for i in range(offset, len(self.data)) if self.data[i] in b"0123456789"), None)
        if kind <= 2 and digit is not None:
            self.data[digit] = 48 + self.draw(10)
        elif kind <= 3:
            self.data[offset] = self.draw(256)
        elif kind == 4:
            self.data[offset] ^= 1 << self.draw(8)
        else:
            self.data[offset] = _EDGES[self.draw(8)]

    def _mutate_length(self, offset: int) -> None:
        value = _LENGTHS[self.draw(8)]
        size = 2 + 2 * self.draw(2)
        written = (value % 2 ** (8 * size)).to_bytes(size, "big")[: len(self.data) - offset]
        self.data[offset : offset + len(written)] = written

    def _put(self, offset: int, removed: int, piece: bytes | bytearray) -> None:
        removed = min(removed, len(self.data) - offset)
        if len(self.data) - removed + len(piece) <= self._max_length:
            self.data[offset : offset + removed] = piece
