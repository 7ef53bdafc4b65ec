"""The storage of leadership state, and what a store may offer beyond it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Protocol, runtime_checkable

from kframe.model.brokers import Registration
from kframe.model.events import Event
from kframe.ports.store_requests import Reply, StoreRequest

#: Callback of a port for each event; safe to call from any thread.
Notify = Callable[[Event], None]
#: Whether this controller still holds the role: ``Store.may_act``. Safe to call from any thread.
MayAct = Callable[[], bool]
#: Callback for the broker registrations of a load.
BrokersLoaded = Callable[[Sequence[Registration]], None]


@runtime_checkable
class Store(Protocol):
    """Storage of leadership state. One instance serves one controller.

    The contract suite ``kframe.testing.store_contract`` specifies the details.
    """

    def open(self, notify: Notify) -> None:
        """Connect. From now on the store notifies ControllerChanged, Reelect, BrokersChanged..., at most once until the
        record is read again (one-shot watches)."""

    def close(self) -> None:
        """Disconnect. Ephemeral records are removed."""

    def connected(self) -> bool:
        """Whether our session is alive, as far as this process can know. Callable from any thread."""

    def may_act(self) -> bool:
        """Whether this controller still holds the role (``docs/reference/invariants.md`` I3).

        True after a successful claim, until the role is released or known to be lost, or until our session may have
        expired. A controller that was suspended thus learns that it must not send, before it receives any event.
        Answers immediately, from local knowledge. Callable from any thread.
        """

    def quarantined(self) -> Mapping[str, str]:
        """Unreadable records, omitted until they can be read: names to reasons. Callable from any thread."""

    def perform(self, request: StoreRequest[Reply]) -> Reply:
        """The reply to a request; ``store_requests`` has one record for each. Failures of the whole request raise
        StoreError."""


@runtime_checkable
class Contending(Protocol):
    """A store that can claim the role as soon as it is notified that the role is free. It does so before it handles any
    event."""

    def contend(self, controller_id: int) -> None:
        """Claim the role for this controller as soon as the active controller loses it, or its process has ended.

        For a standby that was notified of another controller; valid for one election. The next ``Claim`` returns the
        epoch that was won; if neither comes, the role is released. If the active controller
        calls this, standbys notice the end of its process. Raises StoreError.
        """


@runtime_checkable
class ReportingBrokers(Protocol):
    """A store that can report registrations while a load is in progress."""

    def report_brokers(self, callback: BrokersLoaded) -> None:
        """Let every later ``Load`` call ``callback`` with all registrations, in its thread, as early as it can."""
