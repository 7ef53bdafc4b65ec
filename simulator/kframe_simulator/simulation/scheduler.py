"""Simulated time: callbacks in order of time, then of scheduling."""

from __future__ import annotations

import heapq
from collections.abc import Callable
from typing import TypeAlias

#: Something that happens.
Callback: TypeAlias = Callable[[], None]


class Scheduler:
    """One thread's future. Nothing in a simulation waits in another way than by standing in here."""

    def __init__(self) -> None:
        self.now_ms = 0.0
        """Milliseconds since the simulation began."""
        self.happened = 0
        """Events that have happened: each counts, whatever it was."""
        self._heap: list[tuple[float, int, Callback]] = []
        self._planned = 0

    def after(self, delay_ms: float, callback: Callback) -> None:
        """Let something happen ``delay_ms`` from now; a negative delay is none."""
        self._planned += 1
        heapq.heappush(self._heap, (self.now_ms + max(delay_ms, 0.0), self._planned, callback))

    def at(self, time_ms: float, callback: Callback) -> None:
        """Let something happen at a time; one that is past is now."""
        self.after(time_ms - self.now_ms, callback)

    def next_ms(self) -> float:
        """When the next event is due; infinity if none is planned."""
        return self._heap[0][0] if self._heap else float("inf")

    def step(self) -> None:
        """Move on to the next event and let it happen. Raises IndexError if none is planned."""
        self.now_ms, _, callback = heapq.heappop(self._heap)
        self.happened += 1
        callback()


class ProcessClock:
    """Implements ``ports.Clock`` for one process: the simulation's time, and how far this machine's clock has jumped
    ahead.

    What is set goes off while the process runs; what falls due while it is paused, when it goes on (``held``).
    """

    def __init__(self, scheduler: Scheduler) -> None:
        self._scheduler = scheduler
        self._ahead_ms = 0.0
        self._timers: dict[str, tuple[float, Callback]] = {}
        self._held = False

    def now_ms(self) -> float:
        """Milliseconds by this clock."""
        return self._scheduler.now_ms + self._ahead_ms

    def schedule(self, name: str, delay_ms: float, fire: Callback) -> None:
        """Call ``fire`` once, ``delay_ms`` from now; a timer of the same name is replaced."""
        timer = (self.now_ms() + delay_ms, fire)
        self._timers[name] = timer
        self._scheduler.after(delay_ms, lambda: self._due(name, timer))

    def cancel(self, name: str) -> None:
        """Forget a timer, if it is set."""
        self._timers.pop(name, None)

    def is_set(self, name: str) -> bool:
        """Whether a timer waits."""
        return name in self._timers

    def jump(self, ahead_ms: float) -> None:
        """Let this clock leap ahead, as after a suspended machine has woken."""
        self._ahead_ms += ahead_ms
        self._look()

    def hold(self) -> None:
        """The process is paused."""
        self._held = True

    def go_on(self) -> None:
        """The process goes on."""
        self._held = False
        self._look()

    def stop(self) -> None:
        """The process is gone."""
        self._timers.clear()

    def _due(self, name: str, timer: tuple[float, Callback]) -> None:
        if self._timers.get(name) is timer and not self._held:
            del self._timers[name]
            timer[1]()

    def _look(self) -> None:
        """Let go off what has fallen due while nobody looked."""
        for name, timer in sorted(self._timers.items(), key=lambda item: item[1][0]):
            if timer[0] <= self.now_ms():
                self._due(name, timer)
