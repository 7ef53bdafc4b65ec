"""The observations of a run. Each type triggers the invariants that name it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from kframe.core.operations.alter_partition import AlterPartitionResponse
from kframe.model.cluster import ClusterState
from kframe.model.events import AlterPartitionRequested, Event, TopicPartition
from kframe.ports.store_requests import StoreRequest
from kframe_simulator.broker.log import Log
from kframe_simulator.broker.messages import ControlResponse, Fetched, LeaderAndIsr
from kframe_simulator.broker.outgoing import ControlledShutdown, ControlledShutdownResponseData
from kframe_simulator.replication.control_requests import ControlRequest, Row
from kframe_simulator.simulation.cluster import BrokerView
from kframe_simulator.simulation.controllers import ControllerProcess


class RoleClaimed(NamedTuple):
    """A process claimed the role."""

    process: ControllerProcess
    controller_epoch: int


class StoreWritten(NamedTuple):
    """A process did a store write."""

    process: ControllerProcess
    request: StoreRequest[Any]


class StateWritten(NamedTuple):
    """A state was stored. ``process`` None: by another client."""

    key: TopicPartition
    before: Row | None
    after: Row
    process: ControllerProcess | None
    cluster: ClusterState | None


class TopicWritten(NamedTuple):
    """A topic was stored; partitions by number. ``process`` None: by another client."""

    name: str
    before: Mapping[int, Row]
    after: Mapping[int, Row]
    topic_id: bytes
    process: ControllerProcess | None


class RequestQueued(NamedTuple):
    """A controller has queued a request for a broker."""

    process: ControllerProcess
    request: ControlRequest


class RequestSent(NamedTuple):
    """A request leaves its controller, for the first time or again."""

    process: ControllerProcess
    request: ControlRequest


class ResponseSent(NamedTuple):
    """A broker's response to a request."""

    broker: BrokerView
    request: ControlRequest
    response: ControlResponse


class ChannelOpened(NamedTuple):
    """A channel was opened. An earlier channel to the same broker may still be open."""

    process: ControllerProcess
    broker_id: int
    open_epoch: int | None


class RequestCompleted(NamedTuple):
    """A client's request got a response. ``times`` counts the responses. ``whole`` says whether every item has an error
    code."""

    description: str
    times: int
    whole: bool


class WriteRefused(NamedTuple):
    """A controller's write of a state was refused for its version."""

    process: ControllerProcess
    key: TopicPartition


class EventStarted(NamedTuple):
    """A controller takes an event."""

    process: ControllerProcess
    event: Event


class AlterPartitionCompleted(NamedTuple):
    """A leader's AlterPartition got its response. ``written``: the partitions that this event has written so far."""

    process: ControllerProcess
    event: AlterPartitionRequested
    response: AlterPartitionResponse
    written: frozenset[TopicPartition]


@dataclass(slots=True)
class EventCompleted:
    """A controller event. Its effects are recorded from its start on, and checked when it has ended."""

    process: ControllerProcess
    event: Any
    registered: Mapping[int, int] = field(default_factory=dict)
    """Broker epoch by broker of the channels before the event."""
    knowledge: bytes = b""
    """The controller's memory before a broker's response. Empty for other events."""
    failures: int = 0
    """Failed operations and calls before the event."""

    # -- Effects.

    written: list[TopicPartition] = field(default_factory=list)
    topics: dict[str, Mapping[int, Row]] = field(default_factory=dict)
    """Written topics, before the event."""
    created: dict[TopicPartition, tuple[int, ...]] = field(default_factory=dict)
    """Partitions that got their first state: its ISR."""
    deposed: list[tuple[TopicPartition, int]] = field(default_factory=list)
    """Partitions with a new leader, and the previous leader."""
    overwritten: set[TopicPartition] = field(default_factory=set)
    """Partitions whose states other clients have written during the event."""
    read_behind: set[TopicPartition] = field(default_factory=set)
    """Partitions whose states a lagging server has returned in an earlier version when the event last read them."""
    requests: Counter[type[StoreRequest[Any]]] = field(default_factory=Counter)
    """The number of store requests by class. Failed writes count."""
    reassignments: Mapping[TopicPartition, tuple[int, ...]] = field(default_factory=dict)
    """The content of ``/admin/reassign_partitions`` before the event first wrote it."""
    elections: set[TopicPartition] = field(default_factory=set)
    """Partitions of the preferred election that the event has read."""
    noticed: set[TopicPartition] = field(default_factory=set)
    """Partitions of the ISR change notifications that the event has read."""
    unread: set[str] = field(default_factory=set)
    """Topics whose record was unreadable when the event read it."""
    sent_epochs: dict[tuple[TopicPartition, int], int] = field(default_factory=dict)
    """The highest leader epoch of LeaderAndIsr requests, by partition and broker."""
    first_sent_as_new: set[tuple[TopicPartition, int]] = field(default_factory=set)
    """The subset of ``sent_epochs`` whose first request marks the replica as new."""
    sent_live_brokers: dict[int, tuple[int, ...]] = field(default_factory=dict)
    """The live brokers in the last UpdateMetadata of each broker."""

    # -- Results.

    failed: bool = False
    """Whether the event failed, or the store refused a write."""
    succeeded: bool = True
    """Whether the event did not fail, and its controller owns the role in storage."""
    columns: bytes = b""
    """The controller's memory after the event. Empty if it is not active."""
    repeated: bool = False
    """Whether the event is a repetition, with no other event in between."""
    warnings: tuple[str, ...] = ()
    """The controller's log messages of level warning and above."""
    arrived: frozenset[int] = frozenset()
    """Brokers whose new registration the event has handled."""
    bounced: frozenset[int] = frozenset()
    """The subset of ``arrived`` whose earlier registration the controller knew."""
    departed: frozenset[int] = frozenset()
    """Brokers whose failure the event has handled, without a new registration."""
    unsent: tuple[tuple[TopicPartition, int], ...] = ()
    """Partitions with a new leader whose previous leader was sent no LeaderAndIsr, and that leader."""
    unaware: tuple[int, ...] = ()
    """Registered brokers that were not sent an UpdateMetadata after the live brokers changed."""
    not_sent_as_new: tuple[tuple[TopicPartition, int], ...] = ()
    """New replicas (partition, broker) whose LeaderAndIsr requests do not mark them as new."""

    def leader_and_isr(self, broker_id: int, message: LeaderAndIsr) -> None:
        """A LeaderAndIsr request was queued for a broker."""
        for key, state in message.partitions.items():
            entry = key, broker_id
            if state.is_new and entry not in self.sent_epochs:
                self.first_sent_as_new.add(entry)
            self.sent_epochs[entry] = max(state.leader_epoch, self.sent_epochs.get(entry, state.leader_epoch))

    def complete(self, registered: Mapping[int, int], rows: Mapping[TopicPartition, Row]) -> None:
        """Set the results that follow from the channels and the stored states after the event."""
        self.arrived = frozenset(dict(registered.items() - self.registered.items()))
        self.bounced = self.arrived & self.registered.keys()
        self.departed = frozenset(self.registered.keys() - registered.keys())
        self.unsent = tuple(deposed for deposed in self.deposed if deposed not in self.sent_epochs)
        if self.registered.keys() != registered.keys():
            live = tuple(sorted(registered))
            self.unaware = tuple(broker for broker in live if self.sent_live_brokers.get(broker) != live)
        self.not_sent_as_new = self._not_sent_as_new(rows)

    def written_rows(self, rows: Mapping[TopicPartition, Row]) -> Iterator[tuple[Row, Row]]:
        """The partitions of written topics that existed before the event and are in ``rows``: before the event, and
        in ``rows``."""
        before = (row for partitions in self.topics.values() for row in partitions.values())
        return ((row, rows[row.key]) for row in before if row.key in rows)

    def _not_sent_as_new(self, rows: Mapping[TopicPartition, Row]) -> tuple[tuple[TopicPartition, int], ...]:
        """Replicas that the event has created, or added to ``rows``, and whose first request does not mark them as new.
        A broker with a failed log directory then takes the replica offline, and refuses later requests for it. Created
        are the members of a first ISR. As in Kafka, a replica that is not live at the creation of its partition is
        never new (3.9 ``ZkReplicaStateMachine``, OnlineReplica)."""
        added = {
            (row.key, broker) for was, row in self.written_rows(rows) for broker in set(row.adding) - set(was.replicas)
        }
        new = {entry for entry in self.sent_epochs if entry[1] in self.created.get(entry[0], ()) or entry in added}
        return tuple(sorted(new - self.first_sent_as_new))


class ControlledShutdownCompleted(NamedTuple):
    """A ControlledShutdown request got its response."""

    process: ControllerProcess
    request: ControlledShutdown
    response: ControlledShutdownResponseData


class BecameLeader(NamedTuple):
    """A broker has become leader of a partition."""

    broker: BrokerView
    key: TopicPartition
    leader_epoch: int


class LogChanged(NamedTuple):
    """A broker's log or high watermark has changed."""

    broker: BrokerView
    key: TopicPartition
    log: Log


class RecordAcknowledged(NamedTuple):
    """A record was acknowledged by all in-sync replicas."""

    key: TopicPartition


class RecordsRead(NamedTuple):
    """A consumer got a Fetch response. ``committed``: it reads up to the last stable offset."""

    key: TopicPartition
    offset: int
    committed: bool
    response: Fetched


class Quiescent(NamedTuple):
    """All faults have ended, and stopped processes stay down."""


class Rested(NamedTuple):
    """The simulation has come to rest."""
