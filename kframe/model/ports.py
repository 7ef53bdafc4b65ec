"""What the engine needs from outside, as protocols: where state is kept, how requests travel, what time it is."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from kframe.model.brokers import Registration
from kframe.model.changes import StateChange, StoredStates, WriteCode, WriteResult
from kframe.model.cluster import ClusterState
from kframe.model.columns import Int32
from kframe.model.events import Event, TopicPartition
from kframe.model.requests import ControlRequests
from kframe.model.tables import Notifications, Targets, TopicSettings, TopicTable

#: How a port tells that something happened; safe to call from any thread.
Notify = Callable[[Event], None]
#: Whether what is done now is still done in the role: ``Store.may_act``. Safe to call from any thread.
MayAct = Callable[[], bool]
#: What is done with the registrations of brokers that were read.
Met = Callable[[Sequence[Registration]], None]


@runtime_checkable
class Store(Protocol):
    """Where leadership is written down and found again. One instance serves one controller.

    Every write between ``claim`` and ``release`` is fenced: it raises ControllerFenced, and changes nothing, once
    another controller has claimed the role. Other failures of the whole call raise StoreError.
    The contract suite ``kframe.testing.store_contract`` says the rest.
    """

    def open(self, notify: Notify) -> None:
        """Connect. From now on ControllerChanged, Elect, BrokersChanged... are notified, at most once until the thing
        is read again (one-shot watches)."""

    def close(self) -> None:
        """Disconnect; what was ephemeral goes."""

    def connected(self) -> bool:
        """Whether our session lives, for certain as far as we can know. Callable from any thread."""

    def claim(self, controller_id: int) -> int | None:
        """Become controller and return the new controller epoch; None if the role is taken. Arms the watch on it."""

    def take_over(self, controller_id: int, brokers_only: bool = False) -> int | None:
        """``claim``, also from a controller that holds the role, which hears of it by ControllerChanged or Elect. None
        if yet another one was faster.

        ``brokers_only``: only from a broker. The controller record belongs to a broker if the same session owns the
        registration of that broker id; the record that was read is the one that is replaced, or nothing is.
        """

    def controller(self) -> int:
        """Id of the present controller, -1 if there is none. Arms the watch on it."""

    def owns_role(self) -> bool:
        """Whether our own session holds the controller record; an equal id alone proves nothing.

        Waits for storage. ``may_act`` reflects the answer afterwards: a role that was only uncertain is certain again.
        """

    def may_act(self) -> bool:
        """Whether what is done now is still done in the role (``docs/reference/invariants.md`` I3).

        True from a claim that was won until the role was given up, was heard to be lost, or may be lost because our
        session may have ended: a controller that was asleep learns by this, not by an event, that it must be silent.
        Answers at once, from what is known here. Callable from any thread.
        """

    def prepare(self) -> None:
        """Settle the feature record, and drop pending log-dir and ISR notifications (failover steps 0 to 3)."""

    def load(self) -> ClusterState:
        """Read everything. Broken records are left out and reported, never raised.

        A store that knows when states were written says so in ``ClusterState.written_at``.
        """

    def read_brokers(self) -> tuple[Registration, ...]:
        """All registrations. Arms the watch on them.

        One that can be read no longer, of the broker epoch that it had when it was read last, is given as it was then:
        its broker lives. Others that cannot be read are left out and reported.
        """

    def write_states(self, cluster: ClusterState, change: StateChange) -> WriteResult:
        """Create or compare-and-set each row of ``change``; rows fare independently of each other."""

    def read_states(self, cluster: ClusterState, rows: Int32) -> StoredStates:
        """Read the states of these rows."""

    def read_topic_names(self) -> frozenset[str]:
        """The topics that exist. Arms the watch on them (TopicsChanged)."""

    def read_topics(self, names: tuple[str, ...]) -> TopicTable:
        """Ids and assignments of topics; those that are gone or broken are left out. Arms a watch on each
        (TopicModified)."""

    def give_topic_ids(self, names: tuple[str, ...]) -> tuple[bytes, ...]:
        """Store a new random id for each of these topics, and return the ids."""

    def create_topics(
        self, table: TopicTable, configs: tuple[Mapping[str, str], ...], *, with_ids: bool = True
    ) -> tuple[WriteCode, ...]:
        """Store new topics and their configs: OK or EXISTS for each. Not fenced, as in Kafka.

        ``with_ids``: those that the table gives no id get a random one; without, they are stored without an id.
        """

    def write_assignments(self, table: TopicTable) -> tuple[WriteCode, ...]:
        """Replace whole assignments: OK; STALE if somebody else wrote the topic since we read it; MISSING."""

    def read_topic_settings(self, names: tuple[str, ...]) -> tuple[TopicSettings, ...]:
        """The settings of topics that a controller acts on."""

    def read_configs(self, topic: str | None) -> Mapping[str, str]:
        """All settings of a topic, or of all brokers (None). Changes are notified by TopicSettingsChanged and
        BrokerDefaultsChanged."""

    def write_configs(self, topic: str | None, config: Mapping[str, str]) -> None:
        """Replace those settings and leave word of it."""

    def queue_deletions(self, names: tuple[str, ...]) -> None:
        """Mark topics for deletion. Not fenced."""

    def read_deletions(self) -> frozenset[str]:
        """The topics marked for deletion. Arms the watch on them (DeletionsMarked)."""

    def drop_deletions(self, names: tuple[str, ...]) -> None:
        """Take marks away."""

    def delete_topics(self, names: tuple[str, ...]) -> None:
        """Delete topics with their states, configs and marks."""

    def read_reassignments(self) -> Targets | None:
        """What an operator has left to be reassigned. Arms the watch on it (ReassignmentsLeft)."""

    def write_reassignments(self, targets: Targets) -> None:
        """Replace that record; an empty one is taken away."""

    def read_preferred_election(self) -> tuple[TopicPartition, ...] | None:
        """Partitions whose preferred leaders an operator wants. Arms the watch on it (PreferredElectionLeft)."""

    def drop_preferred_election(self) -> None:
        """Take that record away."""

    def read_isr_changes(self) -> Notifications[TopicPartition]:
        """ISRs that leaders changed by themselves. Arms the watch on them (IsrChangesLeft)."""

    def read_log_dir_events(self) -> Notifications[int]:
        """Brokers (ids) that lost a log directory. Arms the watch on them (LogDirEventsLeft)."""

    def drop_notifications(self, paths: tuple[str, ...]) -> None:
        """Take notifications away; those that are gone already are passed over."""

    def allocate_producer_ids(self, broker_id: int) -> int:
        """Set the next 1,000 producer ids aside for a broker; return the first."""

    def release(self) -> None:
        """Give the role up if it is still ours."""

    def quarantined(self) -> Mapping[str, str]:
        """What could not be read and is left out until it can be: names to reasons. Callable from any thread."""


@runtime_checkable
class Contending(Protocol):
    """A store that can claim the role at the notification that it is free, before any event is handled."""

    def contend(self, controller_id: int) -> None:
        """Claim the role for this controller as soon as the present one loses it, or its process has ended.

        For a standby that was notified of another controller; holds for one election. What was won is invisible until
        the next ``claim`` or ``take_over`` returns it; if none comes, the role is given up again. Called by the active
        controller, it lets standbys notice the end of its process. Raises StoreError.
        """


@runtime_checkable
class WritingAhead(Protocol):
    """A store that can begin with a write before the one in front of it has been answered."""

    def write_ahead(self, cluster: ClusterState, change: StateChange, following: StateChange) -> WriteResult:
        """``write_states`` of ``change``, and begin with ``following``: other rows, that have a state and are to be
        written behind it whatever comes of it.

        The write that later asks for these rows as they stand in ``following``, perhaps with others, is told what
        became of them; what that raises is not raised here. Perhaps nobody asks: the claim may be lost before.
        """


@runtime_checkable
class Foretelling(Protocol):
    """A store that may tell, while it reads everything, which brokers it has found."""

    def foretell(self, met: Met) -> None:
        """Have every ``load`` from now on call ``met`` with all registrations, in the thread that loads, as soon as
        there is time for it."""


@runtime_checkable
class Expecting(Protocol):
    """A transport that may get ready for brokers before it is to connect them."""

    def expect(self, registrations: Sequence[Registration]) -> None:
        """``connect`` may come for these, or ``close``: what takes time may be begun, but nothing is to be sent. Who is
        expected anew takes the place of all who were. Waits for nobody; called by the thread that calls ``connect``."""


@runtime_checkable
class Acknowledging(Protocol):
    """A transport that reports which batches brokers have answered."""

    @property
    def acknowledges(self) -> bool:
        """Whether each UpdateMetadataAnswered carries the controller epoch and the batch that the broker answered. The
        controller then answers CreateTopics, CreatePartitions and DeleteTopics only after live brokers did."""


@runtime_checkable
class StoreReader(Protocol):
    """A transport that reads its controller's store, such as the cluster id."""

    def attach_store(self, store: Store) -> None:
        """Called once, when a controller is built, before ``open``. The store is open while the transport is."""


class WaitingTimes(Protocol):
    """How long requests waited in a queue, in milliseconds; ``kframe.runtime.samples.Samples`` is one."""

    @property
    def count(self) -> int:
        """How many there were."""

    def quantiles(self, wanted: tuple[float, ...]) -> list[float]:
        """Quantiles (0 to 1) of the last ones; zeros before the first."""


@dataclass(frozen=True, slots=True)
class BrokerQueue:
    """The requests for one broker: how many wait, the one in flight not counted (Kafka: QueueSize), and how long those
    that were taken had waited (RequestRateAndQueueTimeMs). A request sent again has not waited again."""

    waiting: int
    times: WaitingTimes


@runtime_checkable
class Transport(Protocol):
    """How control requests reach brokers. Keeps one queue a broker, in order, one request in flight."""

    def open(self, notify: Notify, may_act: MayAct) -> None:
        """Get ready; answers of brokers are notified as events.

        ``send`` is called by one who may act (``Store.may_act``). That is to be asked again right before a request
        leaves that has waited in a queue, or leaves once more. While the answer is no, nothing leaves. Either storage
        answers and the role is certain again, or the controller resigns, which closes the transport.
        """

    def close(self) -> None:
        """Drop every queue and connection."""

    def connect(self, cluster: ClusterState, brokers: tuple[int, ...]) -> None:
        """These brokers (indexes) have registered; anything queued for an earlier registration is dropped."""

    def disconnect(self, cluster: ClusterState, brokers: tuple[int, ...]) -> None:
        """These brokers (indexes) are gone."""

    def send(self, cluster: ClusterState, requests: ControlRequests) -> None:
        """Queue a batch. Must have read the columns when it returns; must not wait for any broker."""

    def queues(self) -> Mapping[int, BrokerQueue]:
        """The queue of each connected broker, by id; a transport that queues nothing has none. Callable from any
        thread."""


@runtime_checkable
class Clock(Protocol):
    """Monotonic time, and timers on it."""

    def now_ms(self) -> float:
        """Milliseconds since some fixed moment."""

    def schedule(self, name: str, delay_ms: float, fire: Callable[[], None]) -> None:
        """Call ``fire`` once, ``delay_ms`` from now; a timer of the same name is replaced."""

    def cancel(self, name: str) -> None:
        """Forget a timer, if it is set."""
