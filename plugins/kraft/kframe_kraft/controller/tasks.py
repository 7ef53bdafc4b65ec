"""The periodic tasks of an active controller (Kafka ``PeriodicTaskControlManager``)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final

from kframe_kraft.controller.decider import Event

#: A task that has more to do runs again after this time.
AGAIN_MS: Final = 10
#: A task that failed runs again after this time.
FAILED_MS: Final = 300_000


@dataclass(frozen=True, slots=True)
class PeriodicTask:
    """A task with its period. The response of ``event`` is whether there is more to do."""

    name: str
    period_ms: int
    event: Event[bool]


class TaskSchedule:
    """When each task is due, on a clock in milliseconds. The first run is one period after the beginning."""

    def __init__(self, tasks: Iterable[PeriodicTask], now: int) -> None:
        self._due = {task: now + task.period_ms for task in tasks}

    @property
    def deadline(self) -> int | None:
        """When the next task is due. None without tasks."""
        return min(self._due.values(), default=None)

    def due(self, now: int) -> Iterator[PeriodicTask]:
        """The tasks that are due, the earliest first. The caller reports each of them."""
        yield from sorted((task for task, due in self._due.items() if due <= now), key=self._due.__getitem__)

    def ran(self, task: PeriodicTask, now: int, *, has_more: bool) -> None:
        """A task has run."""
        self._due[task] = now + (AGAIN_MS if has_more else task.period_ms)

    def failed(self, task: PeriodicTask, now: int) -> None:
        """A task has failed."""
        self._due[task] = now + FAILED_MS
