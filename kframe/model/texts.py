"""Counts, values and endings of sentences."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

#: The end of an assumption that the user has stated.
AS_STATED: Final = ", as stated"


def counted(count: int, noun: str, plural: str | None = None) -> str:
    """``1 partition`` or ``1,234 partitions``. ``plural`` is for nouns that do not end in s."""
    return f"{count:,} {noun if count == 1 else plural or f'{noun}s'}"


def ids_text(ids: Iterable[int]) -> str:
    """``1, 4, 7``; ``none`` if there are none."""
    return ", ".join(map(str, ids)) or "none"


def short_repr(value: object) -> str:
    """``repr(value)``, at most 80 characters of it, for error messages."""
    text = repr(value)
    return text if len(text) <= 80 else f"{text[:77]}..."


def duration_text(seconds: float) -> str:
    """A duration in its two largest units, such as ``2 h 5 min``."""
    remaining, parts = round(seconds), list[str]()
    for unit, size in (("d", 86_400), ("h", 3_600), ("min", 60), ("s", 1)):
        count, remaining = divmod(remaining, size)
        if count:
            parts.append(f"{count} {unit}")
    return " ".join(parts[:2]) or "0 s"
