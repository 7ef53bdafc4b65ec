"""Fuzz targets with planted defects."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence

from verification.fuzz import Base, Batch, Outcome

MEBIBYTE = 2**20


class FuzzTarget:
    """Decodes messages with one function."""

    share = 1
    pieces = (b"!",)
    bases = (Base("plain", b"0123456789"), Base("plain", b"abcdef"))

    def __init__(self, name: str, read: Callable[[bytes], Outcome]) -> None:
        self.name = name
        self._read = read

    def evaluate(self, batch: Batch) -> list[Outcome]:
        return [self._read(batch[i]) for i in range(len(batch))]


def sound(raw: bytes) -> Outcome:
    return None if b"!" not in raw else f"{len(raw)} bytes with a mark in them"


def escaping(raw: bytes) -> Outcome:
    if raw.endswith(b"!"):
        raise KeyError(raw)
    return sound(raw)


def dying(raw: bytes) -> Outcome:
    if raw.endswith(b"!!"):
        os._exit(7)
    return sound(raw)


def greedy(raw: bytes) -> Outcome:
    return None if bytearray(80 * MEBIBYTE if raw.endswith(b"!!") else 1) else "empty"


def all_valid() -> Sequence[FuzzTarget]:
    return [FuzzTarget("first", sound), FuzzTarget("second", sound)]


def escaping_target() -> Sequence[FuzzTarget]:
    return [FuzzTarget("sound", sound), FuzzTarget("escaping", escaping)]


def dying_target() -> Sequence[FuzzTarget]:
    return [FuzzTarget("dying", dying)]


def greedy_target() -> Sequence[FuzzTarget]:
    return [FuzzTarget("greedy", greedy)]
