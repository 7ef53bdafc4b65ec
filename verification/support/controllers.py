"""Controllers to drive by hand in tests: a loop on a store and a transport, with Kafka's own leader selection."""

from __future__ import annotations

from collections.abc import Mapping

from kframe.core.controller import ControllerCore
from kframe.core.selectors.leader_selection import Selection
from kframe.model.config import ControllerConfig
from kframe.ports.clock import Clock
from kframe.ports.store import Store
from kframe.ports.transport import Transport
from kframe.runtime.clock import SystemClock
from kframe.runtime.loop import ControllerLoop

__all__ = ["ControllerLoop", "controller_loop"]


def controller_loop(
    controller_id: int,
    store: Store,
    transport: Transport,
    clock: Clock | None = None,
    config: Mapping[str, object] | None = None,
) -> ControllerLoop:
    """The loop of a controller, not opened yet. ``config`` has values by Kafka's keys. Raises ConfigError."""
    controller = ControllerCore(controller_id, ControllerConfig(config or {}), Selection({}))
    return ControllerLoop(controller, store, transport, clock or SystemClock())
