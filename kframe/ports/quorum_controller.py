"""A controller of a cluster whose metadata is in the log of a quorum. A plugin offers it by ``kframe_controllers``."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

from kframe.model.elections import LeaderSelector
from kframe.model.ids import ElectionKind

if TYPE_CHECKING:
    from kframe.model.kraft.record_versions import RecordAndVersion


class CommittedDecision(Protocol):
    """A decision whose records are committed."""

    @property
    def records(self) -> list[RecordAndVersion]:
        """The records in the order of the log. They are made when they are asked for."""


@runtime_checkable
class CommitObserver(Protocol):
    """Receives the decisions of a KRaft controller in the order of the log. It changes nothing."""

    def committed(self, offset: int, decision: CommittedDecision) -> None:
        """A decision that has records is committed; the first one has this offset. A client may wait for the return."""


@runtime_checkable
class QuorumController(Protocol):
    """Leads its quorum from ``start`` to ``stop``, and serves brokers and clients itself."""

    @property
    def node_id(self) -> int:
        """The id of the node."""

    @property
    def addresses(self) -> Mapping[str, str]:
        """HOST:PORT by listener name while it serves."""

    @property
    def failure(self) -> str | None:
        """Why it has given its role up; None while it leads."""

    def problems(self) -> Sequence[str]:
        """Why it does not serve brokers and clients; nothing while it does. Thread-safe."""

    def details(self) -> Mapping[str, Any]:
        """Its identity, role and position in the log, as JSON data. Thread-safe."""

    def metrics(self) -> Mapping[str, float]:
        """Values by exported name, as ``MeasuredServer.metrics``. Thread-safe."""

    def start(
        self, selectors: Mapping[ElectionKind, LeaderSelector] = {}, observer: CommitObserver | None = None
    ) -> None:
        """Open the log, lead, and serve. Raises ConfigError, InputError for a log that cannot be used, StoreError.

        Elections without a selector follow Kafka's rule. ``observer`` raises nothing.
        """

    def stop(self) -> None:
        """Resign, and close all connections. May be called again."""

    @property
    def log_end(self) -> int:
        """The offset of the next record; -1 before ``start``."""

    def submit(self, event: Callable[[Any], Any]) -> Future[Any]:
        """Decide an event: a function of a KraftContext that returns a ControllerResult. Thread-safe.

        The future has the response once the records are committed, or the refusal. Raises StoreError unless it runs.
        """

    def summary(self) -> str:
        """What it leads, in a sentence for the log."""
