"""Results of topics to create or delete."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from kframe.errors import ErrorCode


class TopicStatus(StrEnum):
    """The status of a requested creation, deletion or reassignment."""

    COMPLETED = "completed"
    WAITING = "waiting"
    """Begun, but it cannot complete until the cluster changes."""
    REFUSED = "refused"


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

    def record(self) -> dict[str, Any]:
        """The topic as data."""
        return {
            "topic": self.topic,
            "status": str(self.status),
            "error": self.error.name,
            "partitions": self.partitions,
            "replicas": self.replicas,
            "waiting_for": list(self.waiting_for),
            "reason": self.reason,
        }
