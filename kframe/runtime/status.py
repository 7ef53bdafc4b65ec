"""The status of a controller, for any thread."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from kframe.model.events import ControllerState


@dataclass(frozen=True, slots=True)
class Status:
    """The status after the last event. ``state`` and ``events_waiting`` are current."""

    controller_id: int
    active: bool
    """Whether this is the active controller."""
    active_controller: int
    """Id of the active controller as far as known. -1 for none."""
    controller_epoch: int
    """-1 while this is not the active controller."""
    state: ControllerState
    """The kind of event being handled."""
    events_waiting: int
    gauges: Mapping[str, int]
    """By Kafka's name. All 0 while this is not the active controller."""
    meters: Mapping[str, int]
    """Counts since the start, by Kafka's name."""
    selector_faults: Mapping[str, int]
    """Partitions by the name of the failed selector. The built-in rule decided them."""
    observer_failures: Mapping[str, int]
    """Exceptions of observers, by name."""
