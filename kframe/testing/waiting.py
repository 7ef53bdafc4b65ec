"""Conditions that a test waits for: a step of a test takes long on a busy machine."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Final

#: Seconds that a step of a test may take on a busy machine.
PATIENCE_S: Final = 240.0
#: Seconds between two checks of a condition. After a slow check the pause is longer, to save CPU for the processes
#: under test.
_POLL_S: Final = 0.02
_PAUSE_FACTOR: Final = 4.0
_PAUSE_MAX_S: Final = 0.5


def until(holds: Callable[[], bool], seconds: float = PATIENCE_S) -> bool:
    """Wait until ``holds``. Return false after ``seconds``."""
    end = time.monotonic() + seconds
    while True:
        begun = time.monotonic()
        if holds():
            return True
        now = time.monotonic()
        if now > end:
            return False
        time.sleep(max(_POLL_S, min(_PAUSE_FACTOR * (now - begun), _PAUSE_MAX_S)))


def wait_until(holds: Callable[[], bool], describe: Callable[[], str] = lambda: "it is still false") -> None:
    """Wait until ``holds``. Raises AssertionError with the result of ``describe`` after PATIENCE_S."""
    assert until(holds), describe()
