"""What a transport is tried in: brokers at its far end that a history directs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from kframe.embedded import EmbeddedBrokers, Request, VirtualClock
from kframe.embedded.brokers import NONE, REQUEST_TIMEOUT_MS, SILENT
from kframe.model.cluster import ClusterState
from kframe.model.ports import Transport


class FarEnd(Protocol):
    """Brokers, and a transport to them that is not open yet. Brokers answer everything without error, unless they are
    silent. A far end that nobody answers at has none of the last three; a ``close`` is called where there is one."""

    @property
    def transport(self) -> Transport:
        """The transport, always the same."""

    def settle(self) -> None:
        """Return when all that can arrive has arrived, and been answered by brokers that are not silent."""

    def received(self) -> Sequence[Request]:
        """What brokers have received since the last call, as a trace shows it; for one broker in order."""

    def silence(self, broker_id: int) -> None:
        """From now on a broker takes requests and does not answer."""

    def answer(self, broker_id: int) -> None:
        """A broker answers again, also what it has taken."""

    def lose_next(self, broker_id: int) -> None:
        """The answer to the next request for a broker is lost, and the connection with it."""


class EmbeddedFarEnd:
    """Implements ``FarEnd`` for the embedded brokers: the model, and what they are tried in themselves."""

    def __init__(self, transport: EmbeddedBrokers, clock: VirtualClock) -> None:
        self.transport, self._clock = transport, clock
        self._losing: set[int] = set()

    @staticmethod
    def make() -> EmbeddedFarEnd:
        """One with its own clock."""
        clock = VirtualClock()
        return EmbeddedFarEnd(EmbeddedBrokers(clock), clock)

    def settle(self) -> None:
        """Wait for what was lost to be sent again."""
        if self._losing:
            self._clock.advance(REQUEST_TIMEOUT_MS / 1000)
        for broker_id in self._losing:
            self.transport.answer(broker_id, NONE)
        self._losing.clear()

    def received(self) -> Sequence[Request]:
        """All of it."""
        return self.transport.take()

    def silence(self, broker_id: int) -> None:
        """Take, and do not answer."""
        self.transport.answer(broker_id, SILENT)

    def answer(self, broker_id: int) -> None:
        """Answer what was held back."""
        self.transport.answer(broker_id, NONE)

    def lose_next(self, broker_id: int) -> None:
        """The next request times out once."""
        self._losing.add(broker_id)
        self.silence(broker_id)


def embedded_far_end(url: str, cluster: ClusterState) -> EmbeddedFarEnd:
    """What the embedded brokers are tried in."""
    return EmbeddedFarEnd.make()
