"""One of the storages that a history is played in: the sessions of its controllers, and what it shows of itself.

What two storages may number as they like (topic ids, broker epochs, paths of notifications, blocks of producer ids) is
shown by the order in which it was first seen.
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
from kframe.model.events import ControllerChanged, Elect, Event, SessionExpired
from kframe.model.ports import Store

#: What a session hears that held the role and does not know yet that it has lost it.
_OF_ROLES: Final = ("role", "SessionExpired()")
#: How often is looked whether something has been heard.
_LOOK_S: Final = 0.01


@dataclass(frozen=True, slots=True)
class Difference:
    """What a store did otherwise than the model, and where."""

    seed: int
    step: int
    did: str
    expected: str
    found: str

    def __str__(self) -> str:
        return f"seed {self.seed}, step {self.step}: {self.did}: found {self.found}, expected {self.expected}"


@contextmanager
def quiet() -> Iterator[None]:
    """What is tried on purpose (a broken role, a broker that is gone) need not be logged."""
    before = logging.root.manager.disable
    logging.disable(logging.CRITICAL)
    try:
        yield
    finally:
        logging.disable(before)


class Storage(Protocol):
    """What a side needs: ``kframe.model.surroundings.ClusterContext`` has it. Whatever else that one does is done, too,
    where it is there."""

    def connect(self) -> Store:
        """A store for one more controller, not open yet."""

    def settle(self) -> None:
        """Return when all that has happened has been notified."""


@dataclass(slots=True)
class Session:
    """One controller's store, as long as it is open."""

    controller_id: int
    store: Store
    heard: list[Event] = field(default_factory=list)
    cluster: ClusterState | None = None
    """As it was last loaded."""
    topic_ids: dict[str, bytes | None] = field(default_factory=dict)
    """Of the topics that were read."""
    paths: tuple[str, ...] = ()
    """Notifications that were read."""


class Side:
    """A storage, and three controllers' sessions with it."""

    def __init__(self, storage: Storage, patience_s: float = 0.0) -> None:
        """``patience_s``: how long what was done may take to be notified, where the storage cannot tell."""
        self.storage = storage
        self.patience_s = patience_s
        self.sessions: dict[int, Session] = {}
        self._ordinals: dict[tuple[str, Hashable], int] = {}
        self._counts: Counter[str] = Counter()

    def do(self, deed: Callable[[Side], Any]) -> Any:
        """What a deed gives, or how it was refused."""
        try:
            given = deed(self)
            self.storage.settle()
        except ControllerFenced:
            return "refused: ControllerFenced"
        except StoreError:
            return "refused: StoreError"
        except KframeError as error:
            return f"refused: {type(error).__name__}"
        except Exception as error:
            return f"raised {type(error).__name__}: {error}"
        return given

    def patiently(self, deed: Callable[[Side], Any], expected: object) -> Any:
        """What a deed gives in the end, as long as it may take to give what is expected."""
        end = time.monotonic() + self.patience_s
        while (given := self.do(deed)) != expected and time.monotonic() < end:
            time.sleep(_LOOK_S)
        return given

    def open(self, number: int, controller_id: int) -> None:
        """Begin a session."""
        self.sessions[number] = session = Session(controller_id, self.storage.connect())
        session.store.open(session.heard.append)

    def close(self, number: int | None = None) -> None:
        """End a session, or all of them."""
        for item in [number] if number is not None else list(self.sessions):
            session = self.sessions.pop(item)
            session.store.close()

    def end(self) -> None:
        """End all that there is, whatever it raises."""
        with suppress(Exception):
            self.close()
        close = getattr(self.storage, "close", None)
        if close is not None:
            close()

    def heard(self, number: int, only_roles: bool, expected: Counter[str]) -> Counter[str]:
        """What a session was notified of since the last call; waits for what is expected as long as that may take."""
        session = self.sessions[number]
        end = time.monotonic() + self.patience_s
        while True:
            result = Counter(_name(event) for event in session.heard)
            if not expected - result or time.monotonic() >= end:
                break
            time.sleep(_LOOK_S)
        session.heard.clear()
        return Counter({name: count for name, count in result.items() if not only_roles or name in _OF_ROLES})

    def ordinal(self, kind: str, value: Hashable) -> int:
        """The how-manieth of its kind a value is."""
        if (kind, value) not in self._ordinals:
            self._counts[kind] += 1
            self._ordinals[kind, value] = self._counts[kind]
        return self._ordinals[kind, value]

    def topic_id(self, value: bytes | None) -> int | None:
        """A topic's id as it is shown; None if it has none."""
        return None if value is None or value == bytes(16) else self.ordinal("topic id", value)

    def registration(self, registration: Registration) -> tuple[Any, ...]:
        """A broker's registration as it is shown."""
        return (
            registration.broker_id,
            self.ordinal("broker epoch", registration.broker_epoch),
            registration.endpoints,
            registration.rack,
        )


def missed(expected: Mapping[str, int], result: Mapping[str, int]) -> tuple[str, str] | None:
    """What a session should have heard and has, if that is wrong. Hearing of what has not changed harms nobody, hearing
    of one thing twice before it is read again does: the controller would read it twice each time."""
    for name, count in expected.items():
        if not 1 <= result.get(name, 0) <= count:
            return f"{name} notified {_times(count)}", _times(result.get(name, 0))
    return None


def _times(count: int) -> str:
    return "once" if count == 1 else f"{count} times"


def _name(event: Event) -> str:
    """The end of a role may be notified in either of two ways."""
    if isinstance(event, (Elect, ControllerChanged)):
        return "role"
    return "SessionExpired()" if isinstance(event, SessionExpired) else repr(event)
