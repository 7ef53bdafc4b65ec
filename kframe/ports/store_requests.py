"""The requests to a store: one record each, with the type of its reply, and the table with which a store handles them.

The core creates these records, and the runtime passes them to ``Store.perform``. The base of a record says who may make
the request: any client a ``StoreRead`` or a ``StoreWrite``, only the active controller a ``FencedWrite``.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import cache
from typing import Any, Generic, Self, TypeVar

from msgspec import Struct

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


class Handler(Struct, Generic[StoreT_contra], frozen=True):
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


class StoreRequest(Ask[Reply_co], frozen=True):
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


class StoreRead(StoreRequest[Reply_co], frozen=True):
    """A request that changes nothing."""


class StoreWrite(StoreRequest[Reply_co], frozen=True):
    """A request that changes storage. Any client may make it, as in Kafka, unless it is a FencedWrite."""


class FencedWrite(StoreWrite[Reply_co], frozen=True):
    """A write of the active controller. Before a claim, and once another controller has claimed the role, it raises
    ControllerFenced and changes nothing."""


# -- the role


class Holder(Struct, frozen=True):
    """The id of the active controller, -1 if there is none. ``ours`` only if our own session holds the role."""

    controller_id: int
    ours: bool


class ReadController(StoreRead[Holder], frozen=True):
    """Read the active controller. Arms the watch on it (ControllerChanged, Reelect)."""


class OwnsRole(StoreRead[bool], frozen=True):
    """Read whether our own session holds the controller record; an equal id alone proves nothing.

    Waits for storage. Afterwards ``may_act`` reflects the response: an uncertain role can become certain again.
    """


class Claim(StoreWrite[int | None], frozen=True):
    """Become controller. The reply is our new controller epoch, or None if the role is taken. Arms the watch on it.

    The request replaces exactly the controller record that it read, or nothing. A deposed controller is notified
    (ControllerChanged or Reelect).
    """

    controller_id: int
    takeover: bool = False
    """Take the role also from an active controller."""
    brokers_only: bool = False
    """Take it only from a broker: one session owns the controller record and the registration of that broker id."""


class ReleaseRole(FencedWrite[None], frozen=True):
    """Release the role if we still hold it. Does not raise if another controller has it."""


class Prepare(FencedWrite[None], frozen=True):
    """Before a failover loads the cluster: set ``/feature``, and delete pending log-dir and ISR notifications (steps 0
    to 3)."""


class Load(StoreRead[ClusterState], frozen=True):
    """Read the whole cluster. The caller owns the reply. Malformed records are omitted and reported, never raised.

    A store that tracks when states were written provides it in ``ClusterState.state_zxid``. Notifications that brokers
    have created since ``Prepare`` are notified.
    """


# -- brokers and states


class ReadBrokers(StoreRead[tuple[Registration, ...]], frozen=True):
    """Read all registrations. Arms the watch on them (BrokersChanged, BrokerModified).

    An unreadable registration whose broker epoch is unchanged is returned as last read: its broker is alive. Other
    unreadable registrations are omitted and reported.
    """


class WriteStates(FencedWrite[WriteResult], frozen=True, eq=False):
    """Create or compare-and-set the state of each row of ``change``, independently of the other rows.

    Our controller epoch and the version of each row must be current.
    """

    cluster: ClusterState
    """The columns of the rows."""
    change: StateChange
    following: StateChange | None = None
    """Other rows with a state, which a later request will contain for any result of this one. A store may begin to
    write them at once. The later request, perhaps with further rows, then returns their results, and raises their
    errors. It may never come, for example if the role is lost first."""

    def __repr__(self) -> str:
        return f"WriteStates(change={self.change!r}, following={self.following!r})"


class ReadStates(StoreRead[StoredStates], frozen=True, eq=False):
    """Read the states of rows of ``cluster``. A stored broker that is new to it gets an index there.

    ``StoredStates.zxid`` is set if ``Load`` sets ``ClusterState.state_zxid``.
    """

    cluster: ClusterState
    rows: Int32

    def __repr__(self) -> str:
        return f"ReadStates(rows={self.rows!r})"


# -- topics


class ReadTopicNames(StoreRead[frozenset[str]], frozen=True):
    """Read which topics exist. Arms the watch on them (TopicsChanged)."""


class ReadTopics(StoreRead[TopicTable], frozen=True):
    """Read ids and assignments of topics. Missing and malformed topics are omitted. Arms a watch on each
    (TopicModified)."""

    names: tuple[str, ...]


class AssignTopicIds(FencedWrite[tuple[bytes, ...]], frozen=True):
    """Store a new random id for each of these topics. The reply has the ids."""

    names: tuple[str, ...]


class CreateTopics(StoreWrite[tuple[WriteCode, ...]], frozen=True, eq=False):
    """Store new topics with their configs (one mapping per topic): OK or EXISTS for each."""

    table: TopicTable
    configs: tuple[Mapping[str, str], ...]
    with_ids: bool = True
    """Topics without an id in the table get a random one. Otherwise all are stored without an id."""


class WriteAssignments(FencedWrite[tuple[WriteCode, ...]], frozen=True, eq=False):
    """Replace whole assignments of topics: OK; STALE if another client wrote the topic since we read it; MISSING."""

    table: TopicTable


class ReadTopicSettings(StoreRead[tuple[TopicSettings, ...]], frozen=True):
    """Read the settings of topics that a controller acts on. Arms the watch on changes (TopicSettingsChanged)."""

    names: tuple[str, ...]


class ReadConfigs(StoreRead[Mapping[str, str]], frozen=True):
    """Read all settings of a topic, or of all brokers if ``topic`` is None. TopicSettingsChanged and
    BrokerDefaultsChanged notify of changes."""

    topic: str | None


class WriteConfigs(StoreWrite[None], frozen=True):
    """Replace the settings of a topic, or of all brokers. Write a config change notification."""

    topic: str | None
    config: Mapping[str, str]


class QueueDeletions(StoreWrite[None], frozen=True):
    """Mark topics for deletion, as DeleteTopics does."""

    names: tuple[str, ...]


class ReadDeletions(StoreRead[frozenset[str]], frozen=True):
    """Read which topics are marked for deletion. Arms the watch on them (DeletionsMarked)."""


class DropDeletions(FencedWrite[None], frozen=True):
    """Remove deletion marks without deleting the topics."""

    names: tuple[str, ...]


class DeleteTopics(FencedWrite[None], frozen=True):
    """Delete topics with their states, configs and deletion marks."""

    names: tuple[str, ...]


# -- requests and notifications of operators and brokers


class ReadReassignments(StoreRead[Targets | None], frozen=True):
    """Read the reassignments that an operator has requested, None if there are none. Arms the watch on them
    (ReassignmentsStored)."""


class WriteReassignments(FencedWrite[None], frozen=True):
    """Replace the record of requested reassignments. An empty ``targets`` deletes it."""

    targets: Targets


class ReadPreferredElection(StoreRead[tuple[TopicPartition, ...] | None], frozen=True):
    """Read the partitions of a requested preferred election, None if there is none. Arms the watch on the record
    (PreferredElectionStored)."""


class DropPreferredElection(FencedWrite[None], frozen=True):
    """Delete the record of the requested preferred election."""


class ReadIsrChanges(StoreRead[Notifications[TopicPartition]], frozen=True):
    """Read which ISRs leaders have changed directly in storage. Arms the watch on them (IsrChangesNotified)."""


class ReadLogDirEvents(StoreRead[Notifications[int]], frozen=True):
    """Read the ids of brokers that have lost a log directory. Arms the watch on them (LogDirEventsNotified)."""


class DropNotifications(FencedWrite[None], frozen=True):
    """Delete notifications that were read. Missing ones are ignored."""

    paths: tuple[str, ...]


class AllocateProducerIds(StoreWrite[int], frozen=True):
    """Reserve the next 1,000 producer ids for a broker. The reply is the first."""

    broker_id: int
