"""The values that clients write."""

from __future__ import annotations

from typing import NamedTuple


class Value(NamedTuple):
    """The unique value of one record. ``transaction`` is -1 outside of transactions."""

    producer: int
    number: int
    transaction: int = -1
