"""Results of topics to create or delete."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum

from msgspec import Struct

from kframe.errors import ErrorCode


class TopicStatus(StrEnum):
    """The status of a requested creation, deletion or reassignment."""

    COMPLETED = "completed"
    WAITING = "waiting"
    """Begun, but it cannot complete until the cluster changes."""
    REFUSED = "refused"


class TopicOutcomeRecord(Struct):
    """The outcome of the creation or deletion of a topic."""

    topic: str
    status: TopicStatus
    error: str
    partitions: int
    replicas: int
    waiting_for: list[int]
    reason: str | None


@dataclass(frozen=True, slots=True)
class TopicResult:
    """One topic. ``partitions`` and ``replicas`` count what is created or deleted; of a refused one they are 0.

    ``waiting_for`` are the brokers (ids) without which it goes no further. ``reason`` is why it is refused.
    """

    topic: str
    status: TopicStatus
    error: ErrorCode
    partitions: int
    replicas: int
    waiting_for: tuple[int, ...] = ()
    reason: str | None = field(default=None, compare=False)

    def record(self) -> TopicOutcomeRecord:
        """The topic as data."""
        counts, waiting_for = (self.partitions, self.replicas), list(self.waiting_for)
        return TopicOutcomeRecord(self.topic, self.status, self.error.name, *counts, waiting_for, self.reason)
