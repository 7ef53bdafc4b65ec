"""A storage from outside: actions of operators and brokers that bypass its controller, for scenarios and tests."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Protocol, TypeAlias

from kframe.model.brokers import Registration
from kframe.model.cluster import ClusterState
from kframe.model.events import TopicPartition
from kframe.model.tables import Targets
from kframe.ports.store import Store


class ExternalChanges(Protocol):
    """A storage from outside: it has stores for controllers, and methods for actions of operators and brokers."""

    def connect(self) -> Store:
        """A store for one more controller, not open yet."""

    def settle(self) -> None:
        """Return when all pending changes have been notified."""

    def drop_controller(self) -> None:
        """Delete the controller record. The session of its holder stays alive."""

    def register_brokers(self, registrations: Iterable[Registration]) -> tuple[int, ...]:
        """Register brokers at once. Return their broker epochs."""

    def unregister_brokers(self, broker_ids: Iterable[int]) -> None:
        """Remove registrations at once."""

    def bounce_brokers(self, broker_ids: Iterable[int]) -> tuple[int, ...]:
        """Replace registrations at once. Return the new broker epochs."""

    def write_state(self, topic: str, partition: int, *, isr: Sequence[int]) -> int:
        """Write another ISR as a leader does, without the controller. Return the new version."""

    def configure_topic(self, name: str, config: Mapping[str, str]) -> None:
        """Change settings of a topic, and write a config change notification."""

    def mark_for_deletion(self, names: Iterable[str]) -> None:
        """Mark topics for deletion at once."""

    def request_reassignments(self, targets: Targets) -> None:
        """Write a reassignment request to storage, which must have none yet."""

    def request_preferred_election(self, partitions: Iterable[TopicPartition]) -> None:
        """Write a preferred election request to storage, which must have none yet."""

    def notify_isr_changes(self, partitions: Iterable[TopicPartition]) -> None:
        """Write notifications of ISRs that leaders have changed."""

    def notify_log_dir_event(self, broker_id: int) -> None:
        """Write a notification of a broker that lost a log directory."""


class ScenarioStorage(ExternalChanges, Protocol):
    """Storage whose content can be inspected, such as ``kframe.embedded.MemoryEnsemble``."""

    def stored(self) -> ClusterState:
        """The stored topics, assignments and states. Read-only, and valid until the next change."""

    def registrations(self) -> tuple[Registration, ...]:
        """All registered brokers, by id."""


#: Makes storage that holds a cluster.
StorageFactory: TypeAlias = Callable[[ClusterState], ScenarioStorage]
