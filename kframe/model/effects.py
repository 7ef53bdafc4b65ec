"""Everything that the core can request from its runtime, as frozen records.

The runtime performs effects in the order in which ``ControllerCore.step`` returns them. An ``Ask`` ends the list: the
core continues only when ``step`` receives the result. A Send is created only after its WriteStates has succeeded. So no
request reaches a broker before storage has accepted the state that it announces. ``ports/store_requests.py`` has
the requests to storage.
"""

from __future__ import annotations

from typing import Any, Generic, TypeVar

from msgspec import Struct

from kframe.model.events import Event
from kframe.model.requests import ControlRequests

Value_co = TypeVar("Value_co", covariant=True)


class Effect(Struct, frozen=True):
    """Base of the requests of the core."""


class Ask(Effect, Generic[Value_co], frozen=True):
    """An effect with a result: ``events.Done`` with a value, or ``events.Failed``."""


class Send(Ask[bool], frozen=True, eq=False):
    """Pass this batch to the transport, which reads the columns immediately. The result is whether the transport will
    report that brokers have acknowledged the batch (``ports.Acknowledging``)."""

    requests: ControlRequests


class OpenChannels(Effect, frozen=True):
    """Connect to these newly registered brokers (indexes). Requests queued for an earlier registration are dropped."""

    brokers: tuple[int, ...]


class CloseChannels(Effect, frozen=True):
    """Drop the queues and connections of these brokers (indexes)."""

    brokers: tuple[int, ...]


class Reply(Effect, frozen=True):
    """Answer the caller that waits under ``token``."""

    token: int
    response: Any


class Enqueue(Effect, frozen=True):
    """Append ``event`` to the event queue."""

    event: Event


class SetTimer(Effect, frozen=True):
    """Append ``event`` to the event queue after ``delay_ms``. Replaces a timer of the same name."""

    name: str
    delay_ms: float
    event: Event


class CancelTimer(Effect, frozen=True):
    """Cancel the timer of this name, if it is set."""

    name: str


class Resigned(Effect, frozen=True):
    """We are no longer controller. Close all channels, drop all queues and timers, remove watches.

    ``release`` requests the deletion of our ``/controller`` record, so that another controller can take over
    immediately.
    """

    reason: str
    release: bool
