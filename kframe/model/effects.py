"""Everything that the core can ask the world for, as frozen records.

Effects are performed in the order in which ``Controller.step`` returns them. An ``Ask`` ends the list: the core goes on
only when its answer is handed to ``step``. Nothing reaches a broker before storage has accepted the state that it
announces, since a Send is born only from a WriteStates that was answered. What is asked of storage stands in
``asks.py``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from kframe.model.events import Event
from kframe.model.requests import ControlRequests

Value = TypeVar("Value")


@dataclass(frozen=True, slots=True)
class Effect:
    """Base of what the core asks for."""


@dataclass(frozen=True, slots=True)
class Ask(Effect, Generic[Value]):
    """An effect that is answered, by ``events.Done`` with its value or by ``events.Failed``."""


@dataclass(frozen=True, slots=True, eq=False)
class Send(Ask[bool]):
    """Hand this batch to the transport, which reads the columns now. The answer is whether the transport will report
    when brokers have answered the batch (``ports.Acknowledging``)."""

    requests: ControlRequests


@dataclass(frozen=True, slots=True)
class OpenChannels(Effect):
    """Connect to these newly registered brokers (indexes); what was queued for an earlier registration is dropped."""

    brokers: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class CloseChannels(Effect):
    """Drop the queues and connections of these brokers (indexes)."""

    brokers: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Reply(Effect):
    """Answer the caller who waits under ``token``."""

    token: int
    response: Any


@dataclass(frozen=True, slots=True)
class Enqueue(Effect):
    """Put ``event`` in the queue, behind what waits there."""

    event: Event


@dataclass(frozen=True, slots=True)
class SetTimer(Effect):
    """Put ``event`` in the queue ``delay_ms`` from now; a timer of the same name is replaced."""

    name: str
    delay_ms: float
    event: Event


@dataclass(frozen=True, slots=True)
class CancelTimer(Effect):
    """Cancel the timer of this name, if it is set."""

    name: str


@dataclass(frozen=True, slots=True)
class Resigned(Effect):
    """We are not controller any more: close all channels, drop all queues and timers, unwatch.

    ``release`` asks to delete our ``/controller`` record so that another controller may take over at once.
    """

    reason: str
    release: bool
