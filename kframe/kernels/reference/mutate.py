"""The kernel of ``_bend.pyx`` again, in plain Python: same name, arguments and cases."""

from __future__ import annotations

from typing import Final

from kframe.model.columns import Int64, UInt8

__all__ = ["mutate"]

_EDGES: Final = (0, 1, 2, 0x7F, 0x80, 0x81, 0xFE, 0xFF)
_LENGTHS: Final = (-1, 0, 1, 0x7FFF, 0x10000, 0x7FFFFFFF, -(2**31), 0x01010101)
_WORD: Final = 2**64


def mutate(
    corpus: UInt8, corpus_at: Int64, pieces: UInt8, piece_at: Int64, seed: int, first: int, most: int, case_at: Int64,
    out: UInt8,
) -> int:  # fmt: skip
    """Make cases: number ``i`` is message ``i % c`` of the corpus, bent one to three times."""
    messages, parts = _split(corpus, corpus_at), _split(pieces, piece_at)
    i = start = 0
    while i < len(case_at) - 1 and start + most <= len(out):
        case = _Case(messages[(first + i) % len(messages)], most, (seed * 0xD1342543DE82EF95 + first + i) % _WORD)
        for _ in range(1 + case.draw(3)):
            case.bend_once(messages, parts)
        case_at[i] = start
        out[start : start + len(case.data)] = list(case.data)
        start += len(case.data)
        i += 1
    case_at[i] = start
    return i


def _split(data: UInt8, at: Int64) -> list[bytes]:
    return [data[at[i] : at[i + 1]].tobytes() for i in range(len(at) - 1)]


class _Case:
    """One case while it is made."""

    def __init__(self, message: bytes, most: int, state: int) -> None:
        self.data = bytearray(message)
        self._most = most
        self._state = state

    def draw(self, below: int) -> int:
        self._state = mixed = (self._state + 0x9E3779B97F4A7C15) % _WORD
        mixed = (mixed ^ mixed >> 30) * 0xBF58476D1CE4E5B9 % _WORD
        mixed = (mixed ^ mixed >> 27) * 0x94D049BB133111EB % _WORD
        return (mixed ^ mixed >> 31) % below

    def bend_once(self, messages: list[bytes], parts: list[bytes]) -> None:
        way, at = self.draw(16), self.draw(len(self.data) + 1)
        if at == len(self.data) and (way <= 5 or way == 15):
            return
        if way <= 5:
            self._bend_byte(way, at)
        elif way <= 7:
            self._put(at, 1 + self.draw(8), b"")
        elif way == 8:
            size = min(1 + self.draw(16), len(self.data) - at)
            self._put(at + size, 0, self.data[at : at + size])
        elif way <= 12:
            part = parts[self.draw(len(parts))]
            self._put(at, self.draw(13) if way > 10 else 0, part)
        elif way == 13:
            del self.data[at:]
        elif way == 14:
            other = messages[self.draw(len(messages))]
            self._put(at, len(self.data) - at, other[self.draw(len(other)) :])
        else:
            self._bend_length(at)

    def _bend_byte(self, way: int, at: int) -> None:
        digit = next((i for i in range(at, len(self.data)) if self.data[i] in b"0123456789"), None)
        if way <= 2 and digit is not None:
            self.data[digit] = 48 + self.draw(10)
        elif way <= 3:
            self.data[at] = self.draw(256)
        elif way == 4:
            self.data[at] ^= 1 << self.draw(8)
        else:
            self.data[at] = _EDGES[self.draw(8)]

    def _bend_length(self, at: int) -> None:
        value = _LENGTHS[self.draw(8)]
        size = 2 + 2 * self.draw(2)
        written = (value % 2 ** (8 * size)).to_bytes(size, "big")[: len(self.data) - at]
        self.data[at : at + len(written)] = written

    def _put(self, at: int, removed: int, piece: bytes | bytearray) -> None:
        removed = min(removed, len(self.data) - at)
        if len(self.data) - removed + len(piece) <= self._most:
            self.data[at : at + removed] = piece
