"""Store requests of the core: one record per request, with the call of the port that answers it.

The core only creates these records; the runtime calls ``perform``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeVar

from kframe.model.brokers import Registration
from kframe.model.changes import StateChange, StoredStates, WriteCode, WriteResult
from kframe.model.cluster import ClusterState
from kframe.model.columns import Int32
from kframe.model.effects import Ask
from kframe.model.events import TopicPartition
from kframe.model.tables import Notifications, Targets, TopicSettings, TopicTable
from kframe.ports.store import Pipelining, Store

Value = TypeVar("Value")


@dataclass(frozen=True, slots=True)
class StoreRequest(Ask[Value]):
    """A request to storage. ``perform`` makes the matching call of the port; the core itself never calls it."""

    def perform(self, store: Store, cluster: ClusterState) -> Value:
        """Send the request to ``store``. The rows of the effect are rows of ``cluster``."""
        raise NotImplementedError


@dataclass(frozen=True, slots=True)
class Holder:
    """The id of the active controller, -1 if there is none. ``ours`` only if our own session holds the role."""

    controller_id: int
    ours: bool


@dataclass(frozen=True, slots=True)
class ReadController(StoreRequest[Holder]):
    """Read the id of the active controller, and watch for the next change."""

    def perform(self, store: Store, cluster: ClusterState) -> Holder:
        """``Store.controller`` and ``Store.owns_role``."""
        return Holder(store.controller(), store.owns_role())


@dataclass(frozen=True, slots=True)
class Claim(StoreRequest[int | None]):
    """Try to become controller. The value is our new controller epoch, or None if the role is taken.

    ``takeover``: take the role even if another controller holds it; ``brokers_only``: only if that holder is a broker.
    """

    controller_id: int
    takeover: bool = False
    brokers_only: bool = False

    def perform(self, store: Store, cluster: ClusterState) -> int | None:
        """``Store.claim`` or ``Store.take_over``."""
        if self.takeover:
            return store.take_over(self.controller_id, self.brokers_only)
        return store.claim(self.controller_id)


@dataclass(frozen=True, slots=True)
class Prepare(StoreRequest[None]):
    """Before a failover loads the cluster: set ``/feature``, delete log-dir and ISR notifications."""

    def perform(self, store: Store, cluster: ClusterState) -> None:
        """``Store.prepare``."""
        store.prepare()


@dataclass(frozen=True, slots=True)
class Load(StoreRequest[ClusterState]):
    """Read the whole cluster. The core owns the result."""

    def perform(self, store: Store, cluster: ClusterState) -> ClusterState:
        """``Store.load``."""
        return store.load()


@dataclass(frozen=True, slots=True)
class ReadBrokers(StoreRequest[tuple[Registration, ...]]):
    """Read all registrations, and watch for the next change."""

    def perform(self, store: Store, cluster: ClusterState) -> tuple[Registration, ...]:
        """``Store.read_brokers``."""
        return store.read_brokers()


@dataclass(frozen=True, slots=True, eq=False)
class WriteStates(StoreRequest[WriteResult]):
    """Store these states. Our controller epoch and the version of each row must be current.

    ``following``: rows that a later write will request regardless of this result. A store may start that write early.
    """

    change: StateChange
    following: StateChange | None = None

    def perform(self, store: Store, cluster: ClusterState) -> WriteResult:
        """``Store.write_states``, or ``Pipelining.write_pipelined``."""
        if self.following is not None and isinstance(store, Pipelining):
            return store.write_pipelined(cluster, self.change, self.following)
        return store.write_states(cluster, self.change)


@dataclass(frozen=True, slots=True, eq=False)
class ReadStates(StoreRequest[StoredStates]):
    """Read the states of these rows."""

    rows: Int32

    def perform(self, store: Store, cluster: ClusterState) -> StoredStates:
        """``Store.read_states``."""
        return store.read_states(cluster, self.rows)


@dataclass(frozen=True, slots=True)
class ReadTopicNames(StoreRequest[frozenset[str]]):
    """Read which topics exist. Watch for the next change."""

    def perform(self, store: Store, cluster: ClusterState) -> frozenset[str]:
        """``Store.read_topic_names``."""
        return store.read_topic_names()


@dataclass(frozen=True, slots=True)
class ReadTopics(StoreRequest[TopicTable]):
    """Read ids and assignments of topics. Watch each for the next change. Deleted topics are omitted."""

    names: tuple[str, ...]

    def perform(self, store: Store, cluster: ClusterState) -> TopicTable:
        """``Store.read_topics``."""
        return store.read_topics(self.names)


@dataclass(frozen=True, slots=True)
class AssignTopicIds(StoreRequest[tuple[bytes, ...]]):
    """Assign random ids to topics that have none. Store the ids."""

    names: tuple[str, ...]

    def perform(self, store: Store, cluster: ClusterState) -> tuple[bytes, ...]:
        """``Store.assign_topic_ids``."""
        return store.assign_topic_ids(self.names)


@dataclass(frozen=True, slots=True, eq=False)
class CreateTopics(StoreRequest[tuple[WriteCode, ...]]):
    """Store new topics with their configs (one mapping per topic): OK, EXISTS or FAILED for each. ``with_ids`` assigns
    random ids to topics that have none."""

    table: TopicTable
    configs: tuple[Mapping[str, str], ...]
    with_ids: bool

    def perform(self, store: Store, cluster: ClusterState) -> tuple[WriteCode, ...]:
        """``Store.create_topics``."""
        return store.create_topics(self.table, self.configs, with_ids=self.with_ids)


@dataclass(frozen=True, slots=True, eq=False)
class WriteAssignments(StoreRequest[tuple[WriteCode, ...]]):
    """Replace whole assignments of topics: OK for each, STALE if another client wrote the topic since we read it."""

    table: TopicTable

    def perform(self, store: Store, cluster: ClusterState) -> tuple[WriteCode, ...]:
        """``Store.write_assignments``."""
        return store.write_assignments(self.table)


@dataclass(frozen=True, slots=True)
class QueueDeletions(StoreRequest[None]):
    """Mark topics for deletion, as DeleteTopics does."""

    names: tuple[str, ...]

    def perform(self, store: Store, cluster: ClusterState) -> None:
        """``Store.queue_deletions``."""
        store.queue_deletions(self.names)


@dataclass(frozen=True, slots=True)
class ReadDeletions(StoreRequest[frozenset[str]]):
    """Read which topics are marked for deletion, and watch for the next mark."""

    def perform(self, store: Store, cluster: ClusterState) -> frozenset[str]:
        """``Store.read_deletions``."""
        return store.read_deletions()


@dataclass(frozen=True, slots=True)
class DropDeletions(StoreRequest[None]):
    """Remove deletion marks without deleting the topics."""

    names: tuple[str, ...]

    def perform(self, store: Store, cluster: ClusterState) -> None:
        """``Store.drop_deletions``."""
        store.drop_deletions(self.names)


@dataclass(frozen=True, slots=True)
class DeleteTopics(StoreRequest[None]):
    """Delete topics with their states, configs and deletion marks."""

    names: tuple[str, ...]

    def perform(self, store: Store, cluster: ClusterState) -> None:
        """``Store.delete_topics``."""
        store.delete_topics(self.names)


@dataclass(frozen=True, slots=True)
class ReadReassignments(StoreRequest[Targets | None]):
    """Read the reassignments that an operator has requested, None if there are none, and watch for the next request."""

    def perform(self, store: Store, cluster: ClusterState) -> Targets | None:
        """``Store.read_reassignments``."""
        return store.read_reassignments()


@dataclass(frozen=True, slots=True)
class WriteReassignments(StoreRequest[None]):
    """Replace the record of requested reassignments. An empty ``targets`` deletes the record."""

    targets: Targets

    def perform(self, store: Store, cluster: ClusterState) -> None:
        """``Store.write_reassignments``."""
        store.write_reassignments(self.targets)


@dataclass(frozen=True, slots=True)
class ReadPreferredElection(StoreRequest[tuple[TopicPartition, ...] | None]):
    """Read the partitions of a requested preferred election, None if there is none, and watch for the next request."""

    def perform(self, store: Store, cluster: ClusterState) -> tuple[TopicPartition, ...] | None:
        """``Store.read_preferred_election``."""
        return store.read_preferred_election()


@dataclass(frozen=True, slots=True)
class DropPreferredElection(StoreRequest[None]):
    """Delete the record of the requested preferred election."""

    def perform(self, store: Store, cluster: ClusterState) -> None:
        """``Store.drop_preferred_election``."""
        store.drop_preferred_election()


@dataclass(frozen=True, slots=True)
class ReadIsrChanges(StoreRequest[Notifications[TopicPartition]]):
    """Read which ISRs leaders have changed directly in storage, and watch for the next change."""

    def perform(self, store: Store, cluster: ClusterState) -> Notifications[TopicPartition]:
        """``Store.read_isr_changes``."""
        return store.read_isr_changes()


@dataclass(frozen=True, slots=True)
class ReadLogDirEvents(StoreRequest[Notifications[int]]):
    """Read the ids of brokers that have lost a log directory, and watch for the next notification."""

    def perform(self, store: Store, cluster: ClusterState) -> Notifications[int]:
        """``Store.read_log_dir_events``."""
        return store.read_log_dir_events()


@dataclass(frozen=True, slots=True)
class DropNotifications(StoreRequest[None]):
    """Delete notifications that were read."""

    paths: tuple[str, ...]

    def perform(self, store: Store, cluster: ClusterState) -> None:
        """``Store.drop_notifications``."""
        store.drop_notifications(self.paths)


@dataclass(frozen=True, slots=True)
class ReadTopicSettings(StoreRequest[tuple[TopicSettings, ...]]):
    """Read the settings of topics that a controller acts on."""

    names: tuple[str, ...]

    def perform(self, store: Store, cluster: ClusterState) -> tuple[TopicSettings, ...]:
        """``Store.read_topic_settings``."""
        return store.read_topic_settings(self.names)


@dataclass(frozen=True, slots=True)
class ReadConfigs(StoreRequest[Mapping[str, str]]):
    """Read all settings of a topic, or of all brokers if ``topic`` is None. Empty where there are none."""

    topic: str | None

    def perform(self, store: Store, cluster: ClusterState) -> Mapping[str, str]:
        """``Store.read_configs``."""
        return store.read_configs(self.topic)


@dataclass(frozen=True, slots=True)
class WriteConfigs(StoreRequest[None]):
    """Replace the settings of a topic, or of all brokers. Write a config change notification."""

    topic: str | None
    config: Mapping[str, str]

    def perform(self, store: Store, cluster: ClusterState) -> None:
        """``Store.write_configs``."""
        store.write_configs(self.topic, self.config)


@dataclass(frozen=True, slots=True)
class AllocateProducerIds(StoreRequest[int]):
    """Reserve the next block of producer ids for a broker. The value is the first id of the block."""

    broker_id: int

    def perform(self, store: Store, cluster: ClusterState) -> int:
        """``Store.allocate_producer_ids``."""
        return store.allocate_producer_ids(self.broker_id)
