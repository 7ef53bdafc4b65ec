"""What a plugin gives the contract of transports: a transport with brokers that count, record or answer requests."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol, TypeAlias

from kframe.embedded.describe import Request
from kframe.ports.transport import Transport

#: (requests, partitions in them) by broker id and api.
Counts: TypeAlias = dict[int, dict[str, tuple[int, int]]]


class CountingFixture(Protocol):
    """A transport, and counts of the requests that brokers received."""

    @property
    def transport(self) -> Transport:
        """The transport, always the same."""

    def settle(self) -> None:
        """Return when all requests have a response."""

    def counts(self) -> Counts:
        """Requests received since the last call, by broker. Brokers without requests are omitted."""


class RecordingFixture(CountingFixture, Protocol):
    """A transport, and the requests that brokers received."""

    def received(self) -> Sequence[Request]:
        """Requests received since the last call, as in a trace. Those to the same broker are in order."""


class RespondingFixture(RecordingFixture, Protocol):
    """A transport whose brokers respond to every request without error."""


@dataclass(slots=True)
class SenderRole:
    """Whether the controller that sends may act."""

    owned: bool = True


def counts_of(received: Sequence[Request]) -> Counts:
    """The counts of a RecordingFixture."""
    counts: Counts = {}
    for request in received:
        of_broker = counts.setdefault(request["broker"], {})
        requests, partitions = of_broker.get(request["api"], (0, 0))
        of_broker[request["api"]] = requests + 1, partitions + len(request["partitions"])
    return counts
