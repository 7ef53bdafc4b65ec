"""The network between processes: delays and one-way partitions."""

from __future__ import annotations

from random import Random

from kframe_simulator.simulation.scheduler import Callback, Scheduler

#: The ensemble's index in the network; controllers and brokers have their ids.
ENSEMBLE = -1
#: The index of all clients outside the cluster.
OUTSIDE = -2


class Network:
    """Directed links. A message is lost if its direction is cut when it is sent. Other messages have random delays, and
    stay in order on each link."""

    def __init__(self, scheduler: Scheduler, random: Random, delay_ms: tuple[float, float]) -> None:
        self._scheduler = scheduler
        self._random = random
        self._delay_ms = delay_ms
        self._cut: dict[tuple[int, int], float] = {}
        self._last: dict[tuple[int, int], float] = {}

    def deliver(self, source: int, target: int, arrive: Callback, extra_ms: float = 0.0) -> bool:
        """Send a message. Returns whether it will arrive. ``extra_ms`` is added to its delay."""
        if self.is_cut(source, target):
            return False
        delay = extra_ms + self._random.uniform(*self._delay_ms)
        due = max(self._scheduler.now_ms + delay, self._last.get((source, target), 0.0))
        self._last[source, target] = due
        self._scheduler.at(due, arrive)
        return True

    def is_cut(self, source: int, target: int) -> bool:
        """Whether this direction is cut now."""
        return self._cut.get((source, target), 0.0) > self._scheduler.now_ms

    def cut(self, source: int, target: int, for_ms: float) -> None:
        """Cut this direction for a while."""
        self._cut[source, target] = max(self._cut.get((source, target), 0.0), self._scheduler.now_ms + for_ms)

    def heal(self) -> None:
        """Restore all links."""
        self._cut.clear()
