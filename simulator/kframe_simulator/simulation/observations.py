"""The observations of a run. Each type triggers the invariants that name it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from kframe.core.operations.alter_partition import AlterPartitionResponse
from kframe.model.cluster import ClusterState
from kframe.model.events import AlterPartitionRequested, Event, TopicPartition
from kframe.ports.store_requests import StoreRequest
from kframe_simulator.broker.log import Log
from kframe_simulator.broker.messages import ControlResponse, Fetched
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


class EventCompleted(NamedTuple):
    """A completed event, with its writes."""

    process: ControllerProcess
    event: Any
    written: tuple[TopicPartition, ...]
    topics: Mapping[str, Mapping[int, Row]]
    """Written topics, before the event."""
    repeated: bool
    """Whether the event is a repetition, with no other event in between."""
    unsent: tuple[tuple[TopicPartition, int], ...] = ()
    """Partitions with a new leader whose previous leader was sent no LeaderAndIsr, and that leader."""
    requests: Mapping[type[StoreRequest[Any]], int] = {}
    """The number of store requests by class. Failed writes count."""
    failed: bool = False
    """Whether the event failed, or the store refused a write."""
    warnings: tuple[str, ...] = ()
    """The controller's log messages of level warning and above."""
    reassignments: Mapping[TopicPartition, tuple[int, ...]] = {}
    """The content of ``/admin/reassign_partitions`` before the event first wrote it."""
    not_sent_as_new: tuple[tuple[TopicPartition, int], ...] = ()
    """New replicas (partition, broker) whose LeaderAndIsr requests do not mark them as new."""
    unaware: tuple[int, ...] = ()
    """Registered brokers that were not sent an UpdateMetadata after the live brokers changed."""
    elections: frozenset[TopicPartition] = frozenset()
    """Partitions of the preferred election that the event has read."""
    arrived: frozenset[int] = frozenset()
    """Brokers whose new registration the event has handled."""
    overwritten: frozenset[TopicPartition] = frozenset()
    """Partitions whose states other clients have written during the event."""
    departed: frozenset[int] = frozenset()
    """Brokers whose failure the event has handled, without a new registration."""
    knowledge: bytes = b""
    """The controller's memory before a broker's response. Empty for other events."""
    sent_epochs: Mapping[tuple[TopicPartition, int], int] = {}
    """The highest leader epoch of LeaderAndIsr requests, by partition and broker."""
    unread: frozenset[str] = frozenset()
    """Topics whose record was unreadable when the event read it."""
    bounced: frozenset[int] = frozenset()
    """The subset of ``arrived`` whose earlier registration the controller knew."""


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
