"""One side of a differential history: a storage and the sessions of its controllers.

Two storages may assign different topic ids, broker epochs, notification paths and producer id blocks. Results replace
each of them by the order in which it was first seen.
"""

from __future__ import annotations

import logging
import time
from collections import Counter
from collections.abc import Callable, Hashable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import Any, Final, Protocol

from kframe.errors import ControllerFenced, KframeError, StoreError
from kframe.model.brokers import Registration
from kframe.model.cluster import ClusterState
from kframe.model.events import ControllerChanged, Event, Reelect, SessionExpired
from kframe.ports.store import Store

#: The event of a session that held the role and does not know yet that it lost it.
_OF_ROLES: Final = ("role", "SessionExpired()")
#: The interval of checks for events.
_POLL_S: Final = 0.01


@dataclass(frozen=True, slots=True)
class StorageDifference:
    """The first difference between the store and the model, and its step."""

    seed: int
    step: int
    operation: str
    expected: str
    actual: str

    def __str__(self) -> str:
        return f"seed {self.seed}, step {self.step}: {self.operation}: found {self.actual}, expected {self.expected}"


@contextmanager
def quiet() -> Iterator[None]:
    """Silence the logs of expected failures. These are a lost role and a stopped broker."""
    before = logging.root.manager.disable
    logging.disable(logging.CRITICAL)
    try:
        yield
    finally:
        logging.disable(before)


class Storage(Protocol):
    """The methods that a side needs, from ``kframe.ports.storage.ExternalChanges``. A side also uses the other
    methods of that protocol if they exist."""

    def connect(self) -> Store:
        """A new, unopened store for another controller."""

    def settle(self) -> None:
        """Return when all notifications have been delivered."""


@dataclass(slots=True)
class OpenStore:
    """The open store of one controller."""

    controller_id: int
    store: Store
    received: list[Event] = field(default_factory=list)
    cluster: ClusterState | None = None
    """The result of the last load."""
    topic_ids: dict[str, bytes | None] = field(default_factory=dict)
    """The ids of the topics that were read."""
    paths: tuple[str, ...] = ()
    """The paths of the notifications that were read."""


class Side:
    """A storage, and the sessions of three controllers."""

    def __init__(self, storage: Storage, timeout_s: float = 0.0) -> None:
        """``timeout_s`` is the longest wait for notifications if the storage cannot tell when all are delivered."""
        self.storage = storage
        self.timeout_s = timeout_s
        self.sessions: dict[int, OpenStore] = {}
        self._ordinals: dict[tuple[str, Hashable], int] = {}
        self._counts: Counter[str] = Counter()

    def perform(self, action: Callable[[Side], Any]) -> Any:
        """The result of a step, or its error."""
        try:
            result = action(self)
            self.storage.settle()
        except ControllerFenced:
            return "refused: ControllerFenced"
        except StoreError:
            return "refused: StoreError"
        except KframeError as error:
            return f"refused: {type(error).__name__}"
        except Exception as error:
            return f"raised {type(error).__name__}: {error}"
        return result

    def retry_until(self, action: Callable[[Side], Any], expected: object) -> Any:
        """Repeat a read until it returns the expected result or the time is up. Returns the last result."""
        end = time.monotonic() + self.timeout_s
        while (result := self.perform(action)) != expected and time.monotonic() < end:
            time.sleep(_POLL_S)
        return result

    def open(self, number: int, controller_id: int) -> None:
        """Open a session."""
        self.sessions[number] = session = OpenStore(controller_id, self.storage.connect())
        session.store.open(session.received.append)

    def close(self, number: int | None = None) -> None:
        """Close one session, or all."""
        for item in [number] if number is not None else list(self.sessions):
            session = self.sessions.pop(item)
            session.store.close()

    def end(self) -> None:
        """Close everything and ignore errors."""
        with suppress(Exception):
            self.close()
        close = getattr(self.storage, "close", None)
        if close is not None:
            close()

    def received_events(self, number: int, only_roles: bool, expected: Counter[str]) -> Counter[str]:
        """The events of a session since the last call. Waits for the expected ones within the time limit."""
        session = self.sessions[number]
        end = time.monotonic() + self.timeout_s
        while True:
            result = Counter(_name(event) for event in session.received)
            if not expected - result or time.monotonic() >= end:
                break
            time.sleep(_POLL_S)
        session.received.clear()
        return Counter({name: count for name, count in result.items() if not only_roles or name in _OF_ROLES})

    def ordinal(self, kind: str, value: Hashable) -> int:
        """The order number of a value among the values of its kind."""
        if (kind, value) not in self._ordinals:
            self._counts[kind] += 1
            self._ordinals[kind, value] = self._counts[kind]
        return self._ordinals[kind, value]

    def topic_id(self, value: bytes | None) -> int | None:
        """The order number of a topic id. None if the topic has none."""
        return None if value is None or value == bytes(16) else self.ordinal("topic id", value)

    def registration(self, registration: Registration) -> tuple[Any, ...]:
        """A broker's registration in comparable form."""
        return (
            registration.broker_id,
            self.ordinal("broker epoch", registration.broker_epoch),
            registration.endpoints,
            registration.rack,
        )


def missing_events(expected: Mapping[str, int], result: Mapping[str, int]) -> tuple[str, str] | None:
    """The expected and the actual events of a session if they do not match. An event without a change is allowed. A
    repeated event before the next read is not: the controller would read twice each time."""
    for name, count in expected.items():
        if not 1 <= result.get(name, 0) <= count:
            return f"{name} notified {_times(count)}", _times(result.get(name, 0))
    return None


def _times(count: int) -> str:
    return "once" if count == 1 else f"{count} times"


def _name(event: Event) -> str:
    """The name of an event. Two events mean the end of a role; both have one name."""
    if isinstance(event, (Reelect, ControllerChanged)):
        return "role"
    return "SessionExpired()" if isinstance(event, SessionExpired) else repr(event)
