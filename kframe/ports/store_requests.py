"""The requests to a store: one record each, with the type of its reply, and the table with which a store handles them.

The core creates these records, and the runtime passes them to ``Store.perform``. The base of a record says who may make
the request: any client a ``StoreRead`` or a ``StoreWrite``, only the active controller a ``FencedWrite``.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any, Generic, Self, TypeVar

from kframe.errors import StoreError
from kframe.model.arrays import Int32
from kframe.model.brokers import Registration
from kframe.model.changes import StateChange, StoredStates, WriteCode, WriteResult
from kframe.model.cluster import ClusterState
from kframe.model.effects import Ask
from kframe.model.events import TopicPartition
from kframe.model.tables import Notifications, Targets, TopicSettings, TopicTable

Reply = TypeVar("Reply")
Reply_co = TypeVar("Reply_co", covariant=True)
StoreT = TypeVar("StoreT")
StoreT_contra = TypeVar("StoreT_contra", contravariant=True)


@dataclass(frozen=True, slots=True)
class Handler(Generic[StoreT_contra]):
    """How a store handles the requests of a class."""

    request: type[StoreRequest[Any]]
    handle: Callable[[StoreT_contra, Any], Any]


class Handlers(Generic[StoreT]):
    """How a store handles each class of requests: the table of its functions.

    ::

        class MyStore:
            def perform(self, request: StoreRequest[Reply]) -> Reply:
                return HANDLERS.perform(self, request)

            def _read_topic_names(self, request: ReadTopicNames) -> frozenset[str]: ...

        HANDLERS = Handlers(ReadTopicNames.handled_by(MyStore._read_topic_names), ...)
    """

    def __init__(self, *handlers: Handler[StoreT]) -> None:
        self._handlers: Mapping[type[StoreRequest[Any]], Callable[[StoreT, Any], Any]] = {
            handler.request: handler.handle for handler in handlers
        }

    def perform(self, store: StoreT, request: StoreRequest[Reply]) -> Reply:
        """The reply of ``store`` to a request. Raises StoreError if the table lacks its class."""
        handle = self._handlers.get(type(request))
        if handle is None:
            raise StoreError(f"{request.name}: this store does not know the request")
        reply: Reply = handle(store, request)
        return reply


@dataclass(frozen=True, slots=True)
class StoreRequest(Ask[Reply_co]):
    """A request to a store."""

    @classmethod
    def handled_by(cls, handle: Callable[[StoreT, Self], Reply_co]) -> Handler[StoreT]:
        """The row of ``Handlers`` for this class. Type checkers compare the types of request and reply."""
        return Handler(cls, handle)

    @property
    def name(self) -> str:
        """The request in messages, such as ``write_states``."""
        return _name(type(self).__name__)


@cache
def _name(class_name: str) -> str:
    return re.sub(r"(?<=[a-z])(?=[A-Z])", "_", class_name).lower()


@dataclass(frozen=True, slots=True)
class StoreRead(StoreRequest[Reply_co]):
    """A request that changes nothing."""


@dataclass(frozen=True, slots=True)
class StoreWrite(StoreRequest[Reply_co]):
    """A request that changes storage. Any client may make it, as in Kafka, unless it is a FencedWrite."""


@dataclass(frozen=True, slots=True)
class FencedWrite(StoreWrite[Reply_co]):
    """A write of the active controller. Before a claim, and once another controller has claimed the role, it raises
    ControllerFenced and changes nothing."""


# -- the role


@dataclass(frozen=True, slots=True)
class Holder:
    """The id of the active controller, -1 if there is none. ``ours`` only if our own session holds the role."""

    controller_id: int
    ours: bool


@dataclass(frozen=True, slots=True)
class ReadController(StoreRead[Holder]):
    """Read the active controller. Arms the watch on it (ControllerChanged, Reelect)."""


@dataclass(frozen=True, slots=True)
class OwnsRole(StoreRead[bool]):
    """Read whether our own session holds the controller record; an equal id alone proves nothing.

    Waits for storage. Afterwards ``may_act`` reflects the response: an uncertain role can become certain again.
    """


@dataclass(frozen=True, slots=True)
class Claim(StoreWrite[int | None]):
    """Become controller. The reply is our new controller epoch, or None if the role is taken. Arms the watch on it.

    The request replaces exactly the controller record that it read, or nothing. A deposed controller is notified
    (ControllerChanged or Reelect).
    """

    controller_id: int
    takeover: bool = False
    """Take the role also from an active controller."""
    brokers_only: bool = False
    """Take it only from a broker: one session owns the controller record and the registration of that broker id."""


@dataclass(frozen=True, slots=True)
class ReleaseRole(FencedWrite[None]):
    """Release the role if we still hold it. Does not raise if another controller has it."""


@dataclass(frozen=True, slots=True)
class Prepare(FencedWrite[None]):
    """Before a failover loads the cluster: set ``/feature``, and delete pending log-dir and ISR notifications (steps 0
    to 3)."""


@dataclass(frozen=True, slots=True)
class Load(StoreRead[ClusterState]):
    """Read the whole cluster. The caller owns the reply. Malformed records are omitted and reported, never raised.

    A store that tracks when states were written provides it in ``ClusterState.state_zxid``. Notifications that brokers
    have created since ``Prepare`` are notified.
    """


# -- brokers and states


@dataclass(frozen=True, slots=True)
class ReadBrokers(StoreRead[tuple[Registration, ...]]):
    """Read all registrations. Arms the watch on them (BrokersChanged, BrokerModified).

    An unreadable registration whose broker epoch is unchanged is returned as last read: its broker is alive. Other
    unreadable registrations are omitted and reported.
    """


@dataclass(frozen=True, slots=True, eq=False)
class WriteStates(FencedWrite[WriteResult]):
    """Create or compare-and-set the state of each row of ``change``, independently of the other rows.

    Our controller epoch and the version of each row must be current.
    """

    cluster: ClusterState = field(repr=False)
    """The columns of the rows."""
    change: StateChange
    following: StateChange | None = None
    """Other rows with a state, which a later request will contain for any result of this one. A store may begin to
    write them at once. The later request, perhaps with further rows, then returns their results, and raises their
    errors. It may never come, for example if the role is lost first."""


@dataclass(frozen=True, slots=True, eq=False)
class ReadStates(StoreRead[StoredStates]):
    """Read the states of rows of ``cluster``. A stored broker that is new to it gets an index there.

    ``StoredStates.zxid`` is set if ``Load`` sets ``ClusterState.state_zxid``.
    """

    cluster: ClusterState = field(repr=False)
    rows: Int32


# -- topics


@dataclass(frozen=True, slots=True)
class ReadTopicNames(StoreRead[frozenset[str]]):
    """Read which topics exist. Arms the watch on them (TopicsChanged)."""


@dataclass(frozen=True, slots=True)
class ReadTopics(StoreRead[TopicTable]):
    """Read ids and assignments of topics. Missing and malformed topics are omitted. Arms a watch on each
    (TopicModified)."""

    names: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class AssignTopicIds(FencedWrite[tuple[bytes, ...]]):
    """Store a new random id for each of these topics. The reply has the ids."""

    names: tuple[str, ...]


@dataclass(frozen=True, slots=True, eq=False)
class CreateTopics(StoreWrite[tuple[WriteCode, ...]]):
    """Store new topics with their configs (one mapping per topic): OK or EXISTS for each."""

    table: TopicTable
    configs: tuple[Mapping[str, str], ...]
    with_ids: bool = True
    """Topics without an id in the table get a random one. Otherwise all are stored without an id."""


@dataclass(frozen=True, slots=True, eq=False)
class WriteAssignments(FencedWrite[tuple[WriteCode, ...]]):
    """Replace whole assignments of topics: OK; STALE if another client wrote the topic since we read it; MISSING."""

    table: TopicTable


@dataclass(frozen=True, slots=True)
class ReadTopicSettings(StoreRead[tuple[TopicSettings, ...]]):
    """Read the settings of topics that a controller acts on. Arms the watch on changes (TopicSettingsChanged)."""

    names: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ReadConfigs(StoreRead[Mapping[str, str]]):
    """Read all settings of a topic, or of all brokers if ``topic`` is None. TopicSettingsChanged and
    BrokerDefaultsChanged notify of changes."""

    topic: str | None


@dataclass(frozen=True, slots=True)
class WriteConfigs(StoreWrite[None]):
    """Replace the settings of a topic, or of all brokers. Write a config change notification."""

    topic: str | None
    config: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class QueueDeletions(StoreWrite[None]):
    """Mark topics for deletion, as DeleteTopics does."""

    names: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ReadDeletions(StoreRead[frozenset[str]]):
    """Read which topics are marked for deletion. Arms the watch on them (DeletionsMarked)."""


@dataclass(frozen=True, slots=True)
class DropDeletions(FencedWrite[None]):
    """Remove deletion marks without deleting the topics."""

    names: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class DeleteTopics(FencedWrite[None]):
    """Delete topics with their states, configs and deletion marks."""

    names: tuple[str, ...]


# -- requests and notifications of operators and brokers


@dataclass(frozen=True, slots=True)
class ReadReassignments(StoreRead[Targets | None]):
    """Read the reassignments that an operator has requested, None if there are none. Arms the watch on them
    (ReassignmentsStored)."""


@dataclass(frozen=True, slots=True)
class WriteReassignments(FencedWrite[None]):
    """Replace the record of requested reassignments. An empty ``targets`` deletes it."""

    targets: Targets


@dataclass(frozen=True, slots=True)
class ReadPreferredElection(StoreRead[tuple[TopicPartition, ...] | None]):
    """Read the partitions of a requested preferred election, None if there is none. Arms the watch on the record
    (PreferredElectionStored)."""


@dataclass(frozen=True, slots=True)
class DropPreferredElection(FencedWrite[None]):
    """Delete the record of the requested preferred election."""


@dataclass(frozen=True, slots=True)
class ReadIsrChanges(StoreRead[Notifications[TopicPartition]]):
    """Read which ISRs leaders have changed directly in storage. Arms the watch on them (IsrChangesNotified)."""


@dataclass(frozen=True, slots=True)
class ReadLogDirEvents(StoreRead[Notifications[int]]):
    """Read the ids of brokers that have lost a log directory. Arms the watch on them (LogDirEventsNotified)."""


@dataclass(frozen=True, slots=True)
class DropNotifications(FencedWrite[None]):
    """Delete notifications that were read. Missing ones are ignored."""

    paths: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class AllocateProducerIds(StoreWrite[int]):
    """Reserve the next 1,000 producer ids for a broker. The reply is the first."""

    broker_id: int
