"""The network between processes: delays and one-way partitions."""

from __future__ import annotations

from random import Random

from kframe_simulator.simulation.scheduler import Callback, Scheduler

#: The ensemble's place in the network; controllers and brokers are there by their ids.
ENSEMBLE = -1
#: Whoever asks from outside.
OUTSIDE = -2


class Network:
    """Directed links. A message that sets out while its direction is cut is lost; others arrive, each after its own
    delay, those between the same two places in order."""

    def __init__(self, scheduler: Scheduler, random: Random, delay_ms: tuple[float, float]) -> None:
        self._scheduler = scheduler
        self._random = random
        self._delay_ms = delay_ms
        self._cut: dict[tuple[int, int], float] = {}
        self._last: dict[tuple[int, int], float] = {}
        self.lost = 0
        """Messages that did not arrive."""

    def carry(self, source: int, target: int, arrive: Callback, extra_ms: float = 0.0) -> bool:
        """Send something; return whether it will arrive. ``extra_ms`` is added to its delay."""
        if self.is_cut(source, target):
            self.lost += 1
            return False
        delay = extra_ms + self._random.uniform(*self._delay_ms)
        due = max(self._scheduler.now_ms + delay, self._last.get((source, target), 0.0))
        self._last[source, target] = due
        self._scheduler.at(due, arrive)
        return True

    def is_cut(self, source: int, target: int) -> bool:
        """Whether nothing gets through in this direction now."""
        return self._cut.get((source, target), 0.0) > self._scheduler.now_ms

    def cut(self, source: int, target: int, for_ms: float) -> None:
        """Let nothing through in this direction for a while."""
        self._cut[source, target] = max(self._cut.get((source, target), 0.0), self._scheduler.now_ms + for_ms)

    def heal(self) -> None:
        """Let everything through."""
        self._cut.clear()
