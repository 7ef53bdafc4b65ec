"""Telling observers of each step, and surviving them."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Iterable, Sequence

from kframe.model.effects import Effect
from kframe.model.events import Answer, Event
from kframe.registry.specs import Observer

_log = logging.getLogger("kframe.runtime")


class Observers:
    """Those who watch one controller, by name; names need not differ."""

    def __init__(self, observers: Iterable[tuple[str, Observer]]) -> None:
        self._observers = tuple(observers)
        self.failures: Counter[str] = Counter()
        """What each has raised, counted by its name. The first failure of each is logged."""

    def stepped(self, cause: Event | Answer, effects: Sequence[Effect]) -> None:
        """Show all of them one step; whatever one raises concerns neither the others nor the controller."""
        for name, observer in self._observers:
            try:
                observer.stepped(cause, tuple(effects))
            except Exception:
                self.failures[name] += 1
                if self.failures[name] == 1:
                    _log.exception("observer %s failed at %s; from now on it is only counted", name, _name(cause))


def _name(cause: Event | Answer) -> str:
    return type(cause).__name__
