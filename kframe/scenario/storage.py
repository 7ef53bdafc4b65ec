"""What a scenario needs of the storage that it is played in, whichever store that is."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Protocol, TypeAlias

from kframe.model.brokers import Registration
from kframe.model.cluster import ClusterState
from kframe.model.events import TopicPartition
from kframe.model.ports import Store
from kframe.model.tables import Targets


class ScenarioStorage(Protocol):
    """Storage with a store for the controller, and what operators and brokers do in it.

    ``kframe.embedded.MemoryEnsemble`` is one.
    """

    def connect(self) -> Store:
        """A store for the controller, not open yet."""

    def stored(self) -> ClusterState:
        """Topics, assignments and states as they are stored now; only to be read, and until something changes."""

    def registrations(self) -> tuple[Registration, ...]:
        """All brokers that are registered now, by id."""

    def settle(self) -> None:
        """Return when all that has happened has been notified."""

    def drop_controller(self) -> None:
        """Delete the record of who is controller; its holder's session goes on."""

    def register_brokers(self, registrations: Iterable[Registration]) -> tuple[int, ...]:
        """Register brokers in one instant; return their broker epochs."""

    def unregister_brokers(self, broker_ids: Iterable[int]) -> None:
        """Let registrations vanish in one instant."""

    def bounce_brokers(self, broker_ids: Iterable[int]) -> tuple[int, ...]:
        """Replace registrations by equal ones in one instant; return the new broker epochs."""

    def write_state(self, topic: str, partition: int, *, isr: Sequence[int]) -> int:
        """Write another ISR as a leader does, past the controller; return the new version."""

    def configure_topic(self, name: str, config: Mapping[str, str]) -> None:
        """Change settings of a topic, and leave word of it."""

    def mark_for_deletion(self, names: Iterable[str]) -> None:
        """Mark topics for deletion in one instant."""

    def leave_reassignments(self, targets: Targets) -> None:
        """Leave partitions to be reassigned."""

    def leave_preferred_election(self, partitions: Iterable[TopicPartition]) -> None:
        """Leave partitions whose preferred leaders are wanted."""

    def notify_isr_changes(self, partitions: Iterable[TopicPartition]) -> None:
        """Leave word of ISRs that leaders have changed."""

    def notify_log_dir_event(self, broker_id: int) -> None:
        """Leave word of a broker that lost a log directory."""


#: Makes storage that holds a cluster.
StorageFactory: TypeAlias = Callable[[ClusterState], ScenarioStorage]
