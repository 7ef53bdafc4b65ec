"""What others reach a running controller by."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Protocol, runtime_checkable

if TYPE_CHECKING:
    from kframe.api.controller import Controller


@runtime_checkable
class Server(Protocol):
    """Serves one controller: takes requests in a thread of its own, and asks the controller by its futures.

    It starts when its controller's store is open, before that stands for election, and stops after the role was given
    up, so that those who ask meanwhile hear that this is not the controller.
    """

    def start(self, controller: Controller) -> None:
        """Bind, and serve until ``stop``. Raises ConfigError where it cannot bind."""

    def stop(self) -> None:
        """Close every listener and connection. Stopping twice, or before it was started, is no error."""

    @property
    def addresses(self) -> Mapping[str, str]:
        """HOST:PORT of each listener by its name, while it serves: with port 0 the system has chosen one."""


@runtime_checkable
class MeasuredServer(Protocol):
    """A server with metrics of its own."""

    def metrics(self) -> Mapping[str, float]:
        """Values by exported name, as ``Controller.metrics`` has them. Callable from any thread."""
