"""The values that clients write."""

from __future__ import annotations

from typing import NamedTuple


class Value(NamedTuple):
    """The value of one record: there is none like it. ``transaction`` is -1 outside of any."""

    producer: int
    number: int
    transaction: int = -1
