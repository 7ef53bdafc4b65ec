"""The progress of a call that reads much."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

#: Called with (done, total), in bytes of the file, in rows or in steps. A total of 0 is not known yet. What it raises
#: ends the call.
Progress: TypeAlias = Callable[[int, int], None]


def ignore_progress(done: int, total: int) -> None:
    """Discard progress."""
