"""What operators and brokers do in a storage, past its controller: scenarios and contract suites play them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Protocol

from kframe.model.brokers import Registration
from kframe.model.events import TopicPartition
from kframe.model.ports import Store
from kframe.model.tables import Targets


class ClusterContext(Protocol):
    """Storage from outside: it has stores for controllers, and operators and brokers do things in it."""

    def connect(self) -> Store:
        """A store for one more controller, not open yet."""

    def settle(self) -> None:
        """Return when all that has happened has been notified."""

    def drop_controller(self) -> None:
        """Delete the record of who is controller; its holder's session goes on."""

    def register_brokers(self, registrations: Iterable[Registration]) -> tuple[int, ...]:
        """Register brokers in one instant; return their broker epochs."""

    def unregister_brokers(self, broker_ids: Iterable[int]) -> None:
        """Let registrations vanish in one instant."""

    def bounce_brokers(self, broker_ids: Iterable[int]) -> tuple[int, ...]:
        """Replace registrations in one instant; return the new broker epochs."""

    def write_state(self, topic: str, partition: int, *, isr: Sequence[int]) -> int:
        """Write another ISR as a leader does, past the controller; return the new version."""

    def configure_topic(self, name: str, config: Mapping[str, str]) -> None:
        """Change settings of a topic, and leave word of it."""

    def mark_for_deletion(self, names: Iterable[str]) -> None:
        """Mark topics for deletion in one instant."""

    def leave_reassignments(self, targets: Targets) -> None:
        """Leave partitions to be reassigned in storage, where nothing is left yet."""

    def leave_preferred_election(self, partitions: Iterable[TopicPartition]) -> None:
        """Leave partitions whose preferred leaders are wanted, where nothing is left yet."""

    def notify_isr_changes(self, partitions: Iterable[TopicPartition]) -> None:
        """Leave word of ISRs that leaders have changed."""

    def notify_log_dir_event(self, broker_id: int) -> None:
        """Leave word of a broker that lost a log directory."""
