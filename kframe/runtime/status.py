"""What a controller says of itself to anybody who asks, from any thread."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from kframe.model.events import ControllerState


@dataclass(frozen=True, slots=True)
class Status:
    """How things stood after the last event; ``state`` and ``events_waiting`` are of the moment of asking."""

    controller_id: int
    active: bool
    """Whether this is the controller."""
    active_controller: int
    """Id of whoever is controller as far as this one knows; -1 for nobody."""
    controller_epoch: int
    """-1 while this is not the controller."""
    state: ControllerState
    """What it is busy with."""
    events_waiting: int
    gauges: Mapping[str, int]
    """By Kafka's name; all 0 while this is not the controller."""
    meters: Mapping[str, int]
    """What happened since the start, by Kafka's name."""
    selector_faults: Mapping[str, int]
    """Partitions that the built-in rule decided because the selector in charge failed, by its name."""
    observer_failures: Mapping[str, int]
    """What observers have raised, by name."""
