"""The servers that receive requests for a controller."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol, TypeVar, runtime_checkable

Controller_contra = TypeVar("Controller_contra", contravariant=True)


@runtime_checkable
class Server(Protocol[Controller_contra]):
    """Receives requests in a thread of its own and passes them to a controller.

    It starts after the controller's store and before the election. It stops after the resignation, so that it answers
    NOT_CONTROLLER meanwhile.
    """

    def start(self, controller: Controller_contra) -> None:
        """Bind, and serve until ``stop``. Raises ConfigError if it cannot bind."""

    def stop(self) -> None:
        """Close all listeners and connections. A further call, or a call before ``start``, does nothing."""

    @property
    def addresses(self) -> Mapping[str, str]:
        """HOST:PORT by listener name while it serves. Port 0 is replaced by the port that the system chose."""


@runtime_checkable
class MeasuredServer(Protocol):
    """A server with metrics of its own."""

    def metrics(self) -> Mapping[str, float]:
        """Values by exported name, as in ``Controller.metrics``. Thread-safe."""
