"""The event queue: first in, first out, one consumer (Kafka 3.9 ``ControllerEventManager``)."""

from __future__ import annotations

import threading
from collections import deque
from dataclasses import dataclass
from typing import Final

from kframe.model.events import BrokersChanged, ControllerChanged, Elect, Event
from kframe.model.ports import Clock
from kframe.runtime.samples import Samples

#: Events that say only "look again": one of a kind in the queue is enough.
LOOK_AGAIN: Final = (Elect, ControllerChanged, BrokersChanged)
#: Without an event for this long the queue times are forgotten (Kafka 3.9: 300 s).
FORGET_AFTER_MS: Final = 300_000.0


@dataclass(frozen=True, slots=True)
class QueuedEvent:
    """An event and when it was put."""

    event: Event
    put_ms: float


class EventQueue:
    """Events that wait for the controller. ``put`` may be called from any thread, ``take`` from one."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._events: deque[QueuedEvent] = deque()
        self._changed = threading.Condition()
        self.times = Samples()
        """How long events have waited: EventQueueTimeMs."""
        self._taken_ms = clock.now_ms()

    def __len__(self) -> int:
        return len(self._events)

    def waiting(self) -> tuple[Event, ...]:
        """The events that wait, in order."""
        with self._changed:
            return tuple(queued.event for queued in self._events)

    def put(self, event: Event) -> None:
        """Queue an event, unless it only says "look again" and one like it waits already."""
        with self._changed:
            if isinstance(event, LOOK_AGAIN) and any(queued.event == event for queued in self._events):
                return
            self._events.append(QueuedEvent(event, self._clock.now_ms()))
            self._changed.notify()

    def clear_and_put(self, event: Event) -> list[Event]:
        """Drain the queue and put ``event`` alone; return what was drained, to be preempted (answered, not handled)."""
        with self._changed:
            drained = [queued.event for queued in self._events]
            self._events.clear()
            self._events.append(QueuedEvent(event, self._clock.now_ms()))
            self._changed.notify()
            return drained

    def take(self, timeout_s: float | None = 0.0) -> Event | None:
        """The next event; None if none came within ``timeout_s`` (None waits for ever)."""
        with self._changed:
            if not self._changed.wait_for(lambda: bool(self._events), timeout_s):
                return None
            queued = self._events.popleft()
            if queued.put_ms - self._taken_ms >= FORGET_AFTER_MS:
                self.times.forget()
            self._taken_ms = self._clock.now_ms()
            self.times.add(self._taken_ms - queued.put_ms)
            return queued.event
