"""A clock that advances only on request."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

from kframe.errors import InputError


@dataclass(frozen=True, slots=True)
class _Timer:
    due_ms: float
    number: int
    fire: Callable[[], None]


class VirtualClock:
    """Implements ``ports.Clock``. Timers fire in the order of their times. Timers with equal times in the order of
    creation."""

    def __init__(self, now_ms: float = 0.0) -> None:
        self._now_ms = now_ms
        self._timers: dict[str, _Timer] = {}
        self._timers_set = 0

    def now_ms(self) -> float:
        """Milliseconds since the start of the clock."""
        return self._now_ms

    @property
    def pending(self) -> dict[str, float]:
        """Names of the active timers, soonest first. Times are in milliseconds."""
        return {name: timer.due_ms for name, timer in sorted(self._timers.items(), key=_by_time)}

    def schedule(self, name: str, delay_ms: float, fire: Callable[[], None]) -> None:
        """Call ``fire`` once, ``delay_ms`` from now. A timer of the same name is replaced.

        Raises InputError for a delay that is negative or not finite.
        """
        _check_span(f"timer {name}", delay_ms, "milliseconds")
        self._timers_set += 1
        self._timers[name] = _Timer(self._now_ms + delay_ms, self._timers_set, fire)

    def cancel(self, name: str) -> None:
        """Cancel a timer, if it is set."""
        self._timers.pop(name, None)

    def advance(self, seconds: float, settle: Callable[[], None] | None = None) -> None:
        """Advance the clock, and fire the timers that are due, including timers set in the meantime.

        ``settle`` is called after each timer, at the time of the timer, to handle the effects of the timer. Raises
        InputError for a duration that is negative or not finite.
        """
        _check_span("advance", seconds, "seconds")
        until_ms = self._now_ms + seconds * 1000.0
        while self._timers:
            name, timer = min(self._timers.items(), key=_by_time)
            if timer.due_ms > until_ms:
                break
            del self._timers[name]
            self._now_ms = timer.due_ms
            timer.fire()
            if settle is not None:
                settle()
        self._now_ms = until_ms


def _by_time(item: tuple[str, _Timer]) -> tuple[float, int]:
    return item[1].due_ms, item[1].number


def _check_span(where: str, span: float, unit: str) -> None:
    if not (math.isfinite(span) and span >= 0):
        raise InputError(where, f"{span} {unit}", "a finite number that is not negative")
