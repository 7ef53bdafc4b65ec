"""Passes each step, or each committed decision, of a controller to its observers."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Generic, TypeGuard, TypeVar

from kframe.errors import PluginError
from kframe.model.effects import Effect
from kframe.model.events import EffectResult, Event
from kframe.ports.observer import Observer
from kframe.ports.quorum_controller import CommitObserver, CommittedDecision

if TYPE_CHECKING:
    from kframe.registry.registry import Registry

_log = logging.getLogger("kframe.runtime")
AnyObserver = TypeVar("AnyObserver", Observer, CommitObserver)


def is_observer(offer: object) -> TypeGuard[Observer]:
    """Whether an object observes ZooKeeper controllers."""
    return isinstance(offer, Observer)


def is_commit_observer(offer: object) -> TypeGuard[CommitObserver]:
    """Whether an object observes KRaft controllers."""
    return isinstance(offer, CommitObserver)


def named_observers(
    given: Iterable[AnyObserver | str],
    is_kind: Callable[[object], TypeGuard[AnyObserver]],
    plugins: Callable[[], Registry],
) -> list[tuple[str, AnyObserver]]:
    """Each observer with its name; those given by name are made. Raises PluginError for one of another kind."""
    observers = []
    for each in given:
        observer = plugins().observer(each) if isinstance(each, str) else each
        name = each if isinstance(each, str) else str(getattr(each, "name", type(each).__name__))
        if not is_kind(observer):
            raise PluginError(f"observer {name!r} is for controllers of the other mode")
        observers.append((name, observer))
    return observers


class _IsolatedObservers(Generic[AnyObserver]):
    """Observers whose exceptions affect neither each other nor the controller. Names need not be unique."""

    def __init__(self, observers: Iterable[tuple[str, AnyObserver]]) -> None:
        self._observers: tuple[tuple[str, AnyObserver], ...] = tuple(observers)
        self.failures: Counter[str] = Counter()
        """Exceptions of observers by name. Only the first of each is logged."""

    def _count_failure(self, name: str, cause: str) -> None:
        """Count the exception that is being handled."""
        self.failures[name] += 1
        if self.failures[name] == 1:
            _log.exception("observer %s failed on %s; further failures are only counted", name, cause)


class Observers(_IsolatedObservers[Observer]):
    """The observers of a ZooKeeper controller."""

    def stepped(self, cause: Event | EffectResult, effects: Sequence[Effect]) -> None:
        """Pass a step to all observers."""
        for name, observer in self._observers:
            try:
                observer.stepped(cause, tuple(effects))
            except Exception:
                self._count_failure(name, type(cause).__name__)


class CommitObservers(_IsolatedObservers[CommitObserver]):
    """The observers of a KRaft controller."""

    def committed(self, offset: int, decision: CommittedDecision) -> None:
        """See ``CommitObserver``."""
        for name, observer in self._observers:
            try:
                observer.committed(offset, decision)
            except Exception:
                self._count_failure(name, f"offset {offset}")
