"""Liveness and readiness of a controller, with reasons."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from kframe.model.ids import NO_LEADER

if TYPE_CHECKING:
    from kframe.runtime.controller import Controller


@dataclass(frozen=True, slots=True)
class HealthStatus:
    """The result of a health check. ``reasons`` are the problems."""

    reasons: tuple[str, ...]
    details: dict[str, Any]

    @property
    def good(self) -> bool:
        """Whether there is no problem."""
        return not self.reasons

    def document(self) -> dict[str, Any]:
        """As JSON data."""
        return {"status": "ok" if self.good else "failing", "reasons": list(self.reasons), **self.details}


def alive(controller: Controller) -> HealthStatus:
    """Whether its thread handles events. A controller without should be restarted. Thread-safe."""
    return HealthStatus(
        () if controller.running else ("the thread that handles events has ended",), _details(controller)
    )


def ready(controller: Controller) -> HealthStatus:
    """Whether it has a session, and is active or knows the active controller. Thread-safe."""
    status, reasons = controller.status(), list(alive(controller).reasons)
    if not controller.store.connected():
        reasons.append("no live session with storage")
    if not status.active and status.active_controller == NO_LEADER:
        reasons.append("no known controller")
    return HealthStatus(tuple(reasons), _details(controller))


def _details(controller: Controller) -> dict[str, Any]:
    status = controller.status()
    return {
        "controller_id": status.controller_id,
        "active": status.active,
        "active_controller": status.active_controller,
        "controller_epoch": status.controller_epoch,
        "state": status.state.name.lower(),
        "events_waiting": status.events_waiting,
    }
