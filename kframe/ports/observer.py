"""An observer of a ZooKeeper controller. A plugin offers it by ``kframe_observers``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol, runtime_checkable

from kframe.model.effects import Effect
from kframe.model.events import EffectResult, Event


@runtime_checkable
class Observer(Protocol):
    """Receives every step of a ZooKeeper controller. It changes nothing. Its exceptions are logged."""

    def stepped(self, cause: Event | EffectResult, effects: Sequence[Effect]) -> None:
        """The controller has handled ``cause``. ``effects`` are to be performed in this order."""
