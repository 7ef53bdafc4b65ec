"""Simulated time: callbacks in order of time, then of scheduling."""

from __future__ import annotations

import heapq
from collections.abc import Callable
from typing import TypeAlias

#: A scheduled function.
Callback: TypeAlias = Callable[[], None]


class Scheduler:
    """The event queue of one thread. It is the only way to wait in a simulation."""

    def __init__(self) -> None:
        self.now_ms = 0.0
        """Milliseconds since the simulation began."""
        self.happened = 0
        """The number of events so far."""
        self._heap: list[tuple[float, int, Callback]] = []
        self._planned = 0

    def after(self, delay_ms: float, callback: Callback) -> None:
        """Schedule a callback ``delay_ms`` from now. A negative delay counts as 0."""
        self._planned += 1
        heapq.heappush(self._heap, (self.now_ms + max(delay_ms, 0.0), self._planned, callback))

    def at(self, time_ms: float, callback: Callback) -> None:
        """Schedule a callback at a time. A past time counts as now."""
        self.after(time_ms - self.now_ms, callback)

    def next_ms(self) -> float:
        """The time of the next event. Infinity if there is none."""
        return self._heap[0][0] if self._heap else float("inf")

    def step(self) -> None:
        """Advance to the next event and call it. Raises IndexError if there is none."""
        self.now_ms, _, callback = heapq.heappop(self._heap)
        self.happened += 1
        callback()


class ProcessClock:
    """Implements ``ports.Clock`` for one process: the simulated time plus the jumps of this machine's clock.

    Timers fire while the process runs. A timer that falls due during a pause fires when the process continues
    (``held``).
    """

    def __init__(self, scheduler: Scheduler) -> None:
        self._scheduler = scheduler
        self._offset_ms = 0.0
        self._timers: dict[str, tuple[float, Callback]] = {}
        self._paused = False

    def now_ms(self) -> float:
        """The time of this clock."""
        return self._scheduler.now_ms + self._offset_ms

    def schedule(self, name: str, delay_ms: float, fire: Callback) -> None:
        """Call ``fire`` once, ``delay_ms`` from now. A timer with the same name is replaced."""
        timer = (self.now_ms() + delay_ms, fire)
        self._timers[name] = timer
        self._scheduler.after(delay_ms, lambda: self._due(name, timer))

    def cancel(self, name: str) -> None:
        """Cancel a timer, if it is set."""
        self._timers.pop(name, None)

    def is_set(self, name: str) -> bool:
        """Whether a timer is set."""
        return name in self._timers

    def jump(self, offset_ms: float) -> None:
        """Advance this clock. A suspended machine does that when it resumes."""
        self._offset_ms += offset_ms
        self._fire_due()

    def hold(self) -> None:
        """The process is paused."""
        self._paused = True

    def resume(self) -> None:
        """The process continues."""
        self._paused = False
        self._fire_due()

    def stop(self) -> None:
        """The process has ended."""
        self._timers.clear()

    def _due(self, name: str, timer: tuple[float, Callback]) -> None:
        if self._timers.get(name) is timer and not self._paused:
            del self._timers[name]
            timer[1]()

    def _fire_due(self) -> None:
        """Fire all due timers."""
        for name, timer in sorted(self._timers.items(), key=lambda item: item[1][0]):
            if timer[0] <= self.now_ms():
                self._due(name, timer)
