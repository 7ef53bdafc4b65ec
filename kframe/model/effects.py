"""Everything that the core can ask the world for, as frozen records.

Effects are performed in the order in which ``Controller.step`` returns them. An effect with ``answered`` true ends the
list: the core goes on only when its answer is handed to ``step``. Nothing reaches a broker before storage has accepted
the state that it announces, since a Send is born only from a WriteStates that was answered.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from kframe.model.changes import StateChange
from kframe.model.columns import Int32
from kframe.model.events import Event
from kframe.model.requests import ControlRequests


@dataclass(frozen=True, slots=True)
class Effect:
    """Base of what the core asks for."""

    answered: ClassVar[bool] = False


@dataclass(frozen=True, slots=True)
class ReadController(Effect):
    """Read who is controller, and watch for the next change → Held."""

    answered: ClassVar[bool] = True


@dataclass(frozen=True, slots=True)
class Claim(Effect):
    """Try to become controller → Claimed, or Held if it is taken."""

    answered: ClassVar[bool] = True


@dataclass(frozen=True, slots=True)
class Prepare(Effect):
    """Before a failover loads: settle ``/feature``, drop log-dir and ISR notifications, arm all watches → Done."""

    answered: ClassVar[bool] = True


@dataclass(frozen=True, slots=True)
class Load(Effect):
    """Read the whole cluster → Loaded."""

    answered: ClassVar[bool] = True


@dataclass(frozen=True, slots=True)
class ReadBrokers(Effect):
    """Read all registrations, and watch for the next change → BrokersRead."""

    answered: ClassVar[bool] = True


@dataclass(frozen=True, slots=True, eq=False)
class WriteStates(Effect):
    """Store these states if our controller epoch and each row's version still hold → StatesWritten."""

    change: StateChange
    answered: ClassVar[bool] = True


@dataclass(frozen=True, slots=True, eq=False)
class ReadStates(Effect):
    """Read the states of these rows → StatesRead."""

    rows: Int32
    answered: ClassVar[bool] = True


@dataclass(frozen=True, slots=True, eq=False)
class Send(Effect):
    """Hand this batch to the transport, which reads the columns now → Done."""

    requests: ControlRequests
    answered: ClassVar[bool] = True


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
class SetTimer(Effect):
    """Put ``event`` in the queue ``delay_ms`` from now; a timer of the same name is replaced."""

    name: str
    delay_ms: float
    event: Event


@dataclass(frozen=True, slots=True)
class Resigned(Effect):
    """We are not controller any more: close all channels, drop all queues and timers, unwatch.

    ``release`` asks to delete our ``/controller`` record so that another controller may take over at once.
    """

    reason: str
    release: bool
