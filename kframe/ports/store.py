"""The storage of leadership state, and what a store may offer beyond it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Protocol, runtime_checkable

from kframe.model.brokers import Registration
from kframe.model.changes import StateChange, StoredStates, WriteCode, WriteResult
from kframe.model.cluster import ClusterState
from kframe.model.columns import Int32
from kframe.model.events import Event, TopicPartition
from kframe.model.tables import Notifications, Targets, TopicSettings, TopicTable

#: Callback of a port for each event; safe to call from any thread.
Notify = Callable[[Event], None]
#: Whether this controller still holds the role: ``Store.may_act``. Safe to call from any thread.
MayAct = Callable[[], bool]
#: Callback for the broker registrations of a load.
BrokersLoaded = Callable[[Sequence[Registration]], None]


@runtime_checkable
class Store(Protocol):
    """Storage of leadership state. One instance serves one controller.

    Every write between ``claim`` and ``release`` is fenced: once another controller has claimed the role, it raises
    ControllerFenced and changes nothing. Other failures of the whole call raise StoreError. The contract suite
    ``kframe.testing.store_contract`` specifies the details.
    """

    def open(self, notify: Notify) -> None:
        """Connect. From now on the store notifies ControllerChanged, Reelect, BrokersChanged..., at most once until the
        record is read again (one-shot watches)."""

    def close(self) -> None:
        """Disconnect. Ephemeral records are removed."""

    def connected(self) -> bool:
        """Whether our session is alive, as far as this process can know. Callable from any thread."""

    def claim(self, controller_id: int) -> int | None:
        """Become controller and return the new controller epoch; None if the role is taken. Arms the watch on it."""

    def take_over(self, controller_id: int, brokers_only: bool = False) -> int | None:
        """Like ``claim``, but also takes the role from an active controller, which is notified (ControllerChanged or
        Reelect). None if another process claimed the role first.

        ``brokers_only``: only from a broker. The controller record belongs to a broker if the same session owns the
        registration of that broker id. The call replaces exactly the record that it read, or nothing.
        """

    def controller(self) -> int:
        """Id of the active controller, -1 if there is none. Arms the watch on it."""

    def owns_role(self) -> bool:
        """Whether our own session holds the controller record; an equal id alone proves nothing.

        Waits for storage. Afterwards ``may_act`` reflects the response: an uncertain role can become certain again.
        """

    def may_act(self) -> bool:
        """Whether this controller still holds the role (``docs/reference/invariants.md`` I3).

        True after a successful claim, until the role is released or known to be lost, or until our session may have
        expired. A controller that was suspended thus learns that it must not send, before it receives any event.
        Answers immediately, from local knowledge. Callable from any thread.
        """

    def prepare(self) -> None:
        """Set the feature record, and delete pending log-dir and ISR notifications (failover steps 0 to 3)."""

    def load(self) -> ClusterState:
        """Read everything. Malformed records are omitted and reported, never raised.

        A store that tracks when states were written provides it in ``ClusterState.state_zxid``. Notifications that
        brokers have created since ``prepare`` are notified.
        """

    def read_brokers(self) -> tuple[Registration, ...]:
        """All registrations. Arms the watch on them.

        An unreadable registration whose broker epoch is unchanged is returned as last read: its broker is alive. Other
        unreadable registrations are omitted and reported.
        """

    def write_states(self, cluster: ClusterState, change: StateChange) -> WriteResult:
        """Create or compare-and-set each row of ``change``, independently of the other rows."""

    def read_states(self, cluster: ClusterState, rows: Int32) -> StoredStates:
        """Read the states of these rows. ``StoredStates.zxid`` is set if ``load`` sets ``ClusterState.state_zxid``."""

    def read_topic_names(self) -> frozenset[str]:
        """The topics that exist. Arms the watch on them (TopicsChanged)."""

    def read_topics(self, names: tuple[str, ...]) -> TopicTable:
        """Ids and assignments of topics; missing and malformed topics are omitted. Arms a watch on each
        (TopicModified)."""

    def assign_topic_ids(self, names: tuple[str, ...]) -> tuple[bytes, ...]:
        """Store a new random id for each of these topics, and return the ids."""

    def create_topics(
        self, table: TopicTable, configs: tuple[Mapping[str, str], ...], *, with_ids: bool = True
    ) -> tuple[WriteCode, ...]:
        """Store new topics and their configs. The result is OK or EXISTS for each. Not fenced, as in Kafka.

        ``with_ids``: topics without an id in the table get a random one. Otherwise all are stored without an id.
        """

    def write_assignments(self, table: TopicTable) -> tuple[WriteCode, ...]:
        """Replace whole assignments: OK. STALE if another client wrote the topic since we read it; MISSING."""

    def read_topic_settings(self, names: tuple[str, ...]) -> tuple[TopicSettings, ...]:
        """The settings of topics that a controller acts on."""

    def read_configs(self, topic: str | None) -> Mapping[str, str]:
        """All settings of a topic, or of all brokers (None). TopicSettingsChanged and BrokerDefaultsChanged notify of
        changes."""

    def write_configs(self, topic: str | None, config: Mapping[str, str]) -> None:
        """Replace those settings and write a config change notification."""

    def queue_deletions(self, names: tuple[str, ...]) -> None:
        """Mark topics for deletion. Not fenced."""

    def read_deletions(self) -> frozenset[str]:
        """The topics marked for deletion. Arms the watch on them (DeletionsMarked)."""

    def drop_deletions(self, names: tuple[str, ...]) -> None:
        """Remove deletion marks."""

    def delete_topics(self, names: tuple[str, ...]) -> None:
        """Delete topics with their states, configs and marks."""

    def read_reassignments(self) -> Targets | None:
        """The reassignments that an operator has requested. Arms the watch on them (ReassignmentsStored)."""

    def write_reassignments(self, targets: Targets) -> None:
        """Replace that record; an empty ``targets`` deletes it."""

    def read_preferred_election(self) -> tuple[TopicPartition, ...] | None:
        """Partitions for which an operator has requested a preferred election. Arms the watch on them
        (PreferredElectionStored)."""

    def drop_preferred_election(self) -> None:
        """Delete that record."""

    def read_isr_changes(self) -> Notifications[TopicPartition]:
        """ISRs that leaders changed directly in storage. Arms the watch on them (IsrChangesNotified)."""

    def read_log_dir_events(self) -> Notifications[int]:
        """Brokers (ids) that lost a log directory. Arms the watch on them (LogDirEventsNotified)."""

    def drop_notifications(self, paths: tuple[str, ...]) -> None:
        """Delete notifications; missing ones are ignored."""

    def allocate_producer_ids(self, broker_id: int) -> int:
        """Reserve the next 1,000 producer ids for a broker. Return the first."""

    def release(self) -> None:
        """Release the role if we still hold it."""

    def quarantined(self) -> Mapping[str, str]:
        """Unreadable records, omitted until they can be read: names to reasons. Callable from any thread."""


@runtime_checkable
class Contending(Protocol):
    """A store that can claim the role as soon as it is notified that the role is free. It does so before it handles any
    event."""

    def contend(self, controller_id: int) -> None:
        """Claim the role for this controller as soon as the active controller loses it, or its process has ended.

        For a standby that was notified of another controller; valid for one election. The next ``claim`` or
        ``take_over`` returns the epoch that was won; if neither comes, the role is released. If the active controller
        calls this, standbys notice the end of its process. Raises StoreError.
        """


@runtime_checkable
class Pipelining(Protocol):
    """A store that can start a write before the previous write was answered."""

    def write_pipelined(self, cluster: ClusterState, change: StateChange, following: StateChange) -> WriteResult:
        """``write_states`` of ``change``. Also start the write of ``following``: other rows with a state, to be written
        after ``change`` for any result of it.

        A later ``write_states`` with these rows unchanged, perhaps with further rows, returns their results. This call
        raises no error of ``following``. The later write may never come, for example when the role is lost first.
        """


@runtime_checkable
class ReportingBrokers(Protocol):
    """A store that can report registrations while a load is in progress."""

    def report_brokers(self, callback: BrokersLoaded) -> None:
        """Let every later ``load`` call ``callback`` with all registrations, in its thread, as early as it can."""
