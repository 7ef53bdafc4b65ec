"""Whole numbers in texts of users: ASCII digits alone, without a sign, a space or an underscore, and bounded."""

from __future__ import annotations

from typing import Final

INT32_MAX: Final = 2**31 - 1
INT64_MAX: Final = 2**63 - 1
#: Python refuses to convert longer texts.
_DIGITS_MAX: Final = 20


def parse_whole(text: str, maximum: int = INT32_MAX) -> int | None:
    """The number that a text has in ASCII digits, from 0 to ``maximum``; None for any other text."""
    if not (text.isascii() and text.isdecimal()) or len(text) > _DIGITS_MAX:
        return None
    number = int(text)
    return number if number <= maximum else None
