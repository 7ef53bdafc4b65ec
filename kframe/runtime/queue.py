"""The event queue: first in, first out, one consumer (Kafka 3.9 ``ControllerEventManager``)."""

from __future__ import annotations

import threading
from collections import deque
from dataclasses import dataclass
from typing import Final

from kframe.model.events import BrokersChanged, ControllerChanged, Event, Reelect
from kframe.ports.clock import Clock
from kframe.runtime.samples import Samples

#: Events without data: the queue has at most one of each.
EVENTS_WITHOUT_DATA: Final = (Reelect, ControllerChanged, BrokersChanged)
#: After this time without an event the queue times are reset (Kafka 3.9: 300 s).
FORGET_AFTER_MS: Final = 300_000.0


@dataclass(frozen=True, slots=True)
class QueuedEvent:
    """An event and the time at which it was queued."""

    event: Event
    put_ms: float


class EventQueue:
    """Events for the controller. Any thread may call ``put``. Only the controller's thread calls ``take``."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._events: deque[QueuedEvent] = deque()
        self._changed = threading.Condition()
        self.times = Samples()
        """Waiting times of events (EventQueueTimeMs)."""
        self._taken_ms = clock.now_ms()

    def __len__(self) -> int:
        return len(self._events)

    def waiting(self) -> tuple[Event, ...]:
        """The queued events, in order."""
        with self._changed:
            return tuple(queued.event for queued in self._events)

    def put(self, event: Event) -> None:
        """Queue an event. An event without data is dropped if an equal event is queued already."""
        with self._changed:
            if isinstance(event, EVENTS_WITHOUT_DATA) and any(queued.event == event for queued in self._events):
                return
            self._events.append(QueuedEvent(event, self._clock.now_ms()))
            self._changed.notify()

    def clear_and_put(self, event: Event) -> list[Event]:
        """Drain the queue and queue ``event``. Return the drained events, which the controller only answers."""
        with self._changed:
            drained = [queued.event for queued in self._events]
            self._events.clear()
            self._events.append(QueuedEvent(event, self._clock.now_ms()))
            self._changed.notify()
            return drained

    def take(self, timeout_s: float | None = 0.0) -> Event | None:
        """The next event. None if none came within ``timeout_s`` (None waits for ever)."""
        with self._changed:
            if not self._changed.wait_for(lambda: bool(self._events), timeout_s):
                return None
            queued = self._events.popleft()
            if queued.put_ms - self._taken_ms >= FORGET_AFTER_MS:
                self.times.forget()
            self._taken_ms = self._clock.now_ms()
            self.times.add(self._taken_ms - queued.put_ms)
            return queued.event
