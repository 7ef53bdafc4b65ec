"""The brokers with which ``kframe plugins check`` tests a transport."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from kframe.embedded import EmbeddedBrokers, Request, VirtualClock
from kframe.embedded.brokers import NONE, REQUEST_TIMEOUT_MS, SILENT
from kframe.model.cluster import ClusterState
from kframe.ports.transport import Transport


class TransportSandbox(Protocol):
    """Brokers, and a transport to them that is not open.

    Brokers respond without error unless they are silent. Where brokers never respond, ``silence``, ``respond`` and
    ``lose_next`` are missing. ``close`` is optional.
    """

    @property
    def transport(self) -> Transport:
        """The transport, always the same."""

    def settle(self) -> None:
        """Return when all requests have arrived. All brokers that are not silent have responded."""

    def received(self) -> Sequence[Request]:
        """Requests received since the last call, as in a trace. Those to the same broker are in order."""

    def silence(self, broker_id: int) -> None:
        """Let a broker receive requests without responding."""

    def respond(self, broker_id: int) -> None:
        """Let a broker respond again, including the requests that it received while silent."""

    def lose_next(self, broker_id: int) -> None:
        """Lose the response to the next request of a broker, and the connection."""


class EmbeddedSandbox:
    """``TransportSandbox`` of the embedded brokers."""

    def __init__(self, transport: EmbeddedBrokers, clock: VirtualClock) -> None:
        self.transport, self._clock = transport, clock
        self._losing: set[int] = set()

    @staticmethod
    def make() -> EmbeddedSandbox:
        """New brokers with a clock of their own."""
        clock = VirtualClock()
        return EmbeddedSandbox(EmbeddedBrokers(clock), clock)

    def settle(self) -> None:
        """Advance the clock until lost requests are sent again."""
        if self._losing:
            self._clock.advance(REQUEST_TIMEOUT_MS / 1000)
        for broker_id in self._losing:
            self.transport.respond_with(broker_id, NONE)
        self._losing.clear()

    def received(self) -> Sequence[Request]:
        """See ``TransportSandbox``."""
        return self.transport.take()

    def silence(self, broker_id: int) -> None:
        """See ``TransportSandbox``."""
        self.transport.respond_with(broker_id, SILENT)

    def respond(self, broker_id: int) -> None:
        """See ``TransportSandbox``."""
        self.transport.respond_with(broker_id, NONE)

    def lose_next(self, broker_id: int) -> None:
        """See ``TransportSandbox``; the next request times out once."""
        self._losing.add(broker_id)
        self.silence(broker_id)


def embedded_sandbox(url: str, cluster: ClusterState) -> EmbeddedSandbox:
    """``TransportSandbox`` of the transport ``embedded``."""
    return EmbeddedSandbox.make()
