"""The clock of a controller."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol, runtime_checkable


@runtime_checkable
class Clock(Protocol):
    """Monotonic time, and timers on it."""

    def now_ms(self) -> float:
        """Milliseconds since an arbitrary fixed time."""

    def schedule(self, name: str, delay_ms: float, fire: Callable[[], None]) -> None:
        """Call ``fire`` once, ``delay_ms`` from now. A timer of the same name is replaced."""

    def cancel(self, name: str) -> None:
        """Cancel a timer, if it is set."""
