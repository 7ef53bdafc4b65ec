"""Everything that the core can request from its runtime, as frozen records.

The runtime performs effects in the order in which ``ControllerCore.step`` returns them. An ``Ask`` ends the list: the
core continues only when ``step`` receives the result. A Send is created only after its WriteStates has succeeded. So no
request reaches a broker before storage has accepted the state that it announces. ``ports/store_requests.py`` has
the requests to storage.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from kframe.model.events import Event
from kframe.model.requests import ControlRequests

Value_co = TypeVar("Value_co", covariant=True)


@dataclass(frozen=True, slots=True)
class Effect:
    """Base of the requests of the core."""


@dataclass(frozen=True, slots=True)
class Ask(Effect, Generic[Value_co]):
    """An effect with a result: ``events.Done`` with a value, or ``events.Failed``."""


@dataclass(frozen=True, slots=True, eq=False)
class Send(Ask[bool]):
    """Pass this batch to the transport, which reads the columns immediately. The result is whether the transport will
    report that brokers have acknowledged the batch (``ports.Acknowledging``)."""

    requests: ControlRequests


@dataclass(frozen=True, slots=True)
class OpenChannels(Effect):
    """Connect to these newly registered brokers (indexes). Requests queued for an earlier registration are dropped."""

    brokers: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class CloseChannels(Effect):
    """Drop the queues and connections of these brokers (indexes)."""

    brokers: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Reply(Effect):
    """Answer the caller that waits under ``token``."""

    token: int
    response: Any


@dataclass(frozen=True, slots=True)
class Enqueue(Effect):
    """Append ``event`` to the event queue."""

    event: Event


@dataclass(frozen=True, slots=True)
class SetTimer(Effect):
    """Append ``event`` to the event queue after ``delay_ms``. Replaces a timer of the same name."""

    name: str
    delay_ms: float
    event: Event


@dataclass(frozen=True, slots=True)
class CancelTimer(Effect):
    """Cancel the timer of this name, if it is set."""

    name: str


@dataclass(frozen=True, slots=True)
class Resigned(Effect):
    """We are no longer controller. Close all channels, drop all queues and timers, remove watches.

    ``release`` requests the deletion of our ``/controller`` record, so that another controller can take over
    immediately.
    """

    reason: str
    release: bool
