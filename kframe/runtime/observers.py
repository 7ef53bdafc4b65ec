"""Passes each step of a controller to its observers."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Iterable, Sequence

from kframe.model.effects import Effect
from kframe.model.events import EffectResult, Event
from kframe.registry.specs import Observer

_log = logging.getLogger("kframe.runtime")


class Observers:
    """The observers of a controller. Names need not be unique."""

    def __init__(self, observers: Iterable[tuple[str, Observer]]) -> None:
        self._observers = tuple(observers)
        self.failures: Counter[str] = Counter()
        """Exceptions of observers by name. Only the first of each is logged."""

    def stepped(self, cause: Event | EffectResult, effects: Sequence[Effect]) -> None:
        """Pass a step to all observers. An exception affects neither other observers nor the controller."""
        for name, observer in self._observers:
            try:
                observer.stepped(cause, tuple(effects))
            except Exception:
                self.failures[name] += 1
                if self.failures[name] == 1:
                    _log.exception("observer %s failed on %s; further failures are only counted", name, _name(cause))


def _name(cause: Event | EffectResult) -> str:
    return type(cause).__name__
