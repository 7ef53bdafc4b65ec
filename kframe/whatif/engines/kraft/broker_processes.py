"""What a what-if knows of the processes of brokers beside their registrations."""

from __future__ import annotations

from dataclasses import dataclass, field
from uuid import UUID


@dataclass(slots=True)
class BrokerProcesses:
    """How brokers stopped, and which of their log directories failed in this what-if."""

    failed: set[int] = field(default_factory=set)
    """Brokers whose last stop was not clean."""
    clean_shutdown_epochs: dict[int, int] = field(default_factory=dict)
    """Broker epochs of brokers after a controlled shutdown, which they send when they register again."""
    failed_directories: dict[int, frozenset[UUID]] = field(default_factory=dict)
    """The log directories that brokers reported as failed."""
