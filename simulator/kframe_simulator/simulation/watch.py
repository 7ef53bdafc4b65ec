"""The observed history of a run, checked against the invariants after every event."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from kframe.core.brokers.alter_partition import AlterPartitionResponse
from kframe.errors import ErrorCode
from kframe.model.brokers import Endpoint
from kframe.model.cluster import ClusterState
from kframe.model.events import AlterPartitionRequested, Event, TopicPartition
from kframe.model.ids import LEADER_DURING_DELETE
from kframe_simulator.broker.log import Log
from kframe_simulator.broker.messages import (
    ControlResponse,
    Fetched,
    LeaderAndIsr,
    LeaderState,
    PartitionMetadata,
    StopReplica,
    UpdateMetadata,
)
from kframe_simulator.broker.outgoing import ControlledShutdown, ControlledShutdownResponseData
from kframe_simulator.replication.control_requests import ControlRequest, Row
from kframe_simulator.simulation.observed import Observed
from kframe_simulator.simulation.reassignments import LastReassignments
from kframe_simulator.simulation.record_history import RecordHistory

if TYPE_CHECKING:
    from kframe_simulator.simulation.brokers import BrokerProcess
    from kframe_simulator.simulation.controllers import ControllerProcess
    from kframe_simulator.simulation.simulation import Simulation

#: A run ends after this many violations: later ones are consequences.
VIOLATIONS_MAX: Final = 5


class Trigger(Enum):
    """When an invariant is checked."""

    CLAIMED = "the role was claimed"
    WRITTEN = "a controller has written"
    STATE = "a partition's state was written"
    TOPIC = "a topic was written, created or deleted"
    QUEUED = "a request was handed over for a broker"
    SENT = "a request leaves"
    ANSWERED = "a broker has answered"
    CONNECTED = "a channel to a broker was opened"
    REPLIED = "somebody who asked was answered"
    REFUSED = "a controller's write of a state was refused for its version"
    BEGUN = "a controller takes an event"
    EVENT = "a controller is done with an event"
    PROPOSED = "a leader's AlterPartition was answered"
    LEAVING = "a broker that wants to stop was answered"
    LED = "a broker has become leader"
    LOGGED = "a log, or its high watermark, is another"
    ACKNOWLEDGED = "a record was acknowledged by all in-sync replicas"
    READ = "a consumer has read"
    QUIESCENT = "all faults have ended, and what is dead stays dead"
    RESTED = "the simulation has come to rest"


class Claimed(NamedTuple):
    """A process claimed the role."""

    process: ControllerProcess
    controller_epoch: int


class Written(NamedTuple):
    """A process did a store write."""

    process: ControllerProcess
    call: str


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


class Post(NamedTuple):
    """A request and its sender."""

    process: ControllerProcess
    request: ControlRequest
    again: bool = False


class Answered(NamedTuple):
    """A broker's response to a request."""

    broker: BrokerProcess
    request: ControlRequest
    response: ControlResponse


class Connected(NamedTuple):
    """A channel was opened. An earlier channel to the same broker may still be open."""

    process: ControllerProcess
    broker_id: int
    open_epoch: int | None


class Replied(NamedTuple):
    """A client's request was answered. ``times`` counts the responses. ``whole`` says whether every item has an error
    code."""

    what: str
    times: int
    whole: bool


class WriteRefused(NamedTuple):
    """A controller's write of a state was refused for its version."""

    process: ControllerProcess
    key: TopicPartition


class Begun(NamedTuple):
    """A controller takes an event."""

    process: ControllerProcess
    event: Event


class Proposed(NamedTuple):
    """A leader's AlterPartition was answered. ``written``: the partitions that this event has written so far."""

    process: ControllerProcess
    event: AlterPartitionRequested
    response: AlterPartitionResponse
    written: frozenset[TopicPartition]


class Ended(NamedTuple):
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
    calls: Mapping[str, int] = {}
    """The number of store calls by name. Failed writes count."""
    failed: bool = False
    """Whether the event failed, or the store refused a write."""
    warnings: tuple[str, ...] = ()
    """The controller's log messages of level warning and above."""
    reassignments: Mapping[TopicPartition, tuple[int, ...]] = {}
    """The content of ``/admin/reassign_partitions`` before the event first wrote it."""
    not_called_new: tuple[tuple[TopicPartition, int], ...] = ()
    """New replicas (partition, broker) whose LeaderAndIsr requests do not mark them as new."""
    unaware: tuple[int, ...] = ()
    """Registered brokers that were not sent an UpdateMetadata after the live brokers changed."""
    elections: frozenset[TopicPartition] = frozenset()
    """Partitions of the preferred election that the event has read."""
    arrived: frozenset[int] = frozenset()
    """Brokers whose new registration the event has handled."""
    knowledge: bytes = b""
    """The controller's memory before a broker's response. Empty for other events."""
    sent_epochs: Mapping[tuple[TopicPartition, int], int] = {}
    """The highest leader epoch of LeaderAndIsr requests, by partition and broker."""


class Leaving(NamedTuple):
    """A ControlledShutdown request was answered."""

    process: ControllerProcess
    asked: ControlledShutdown
    response: ControlledShutdownResponseData


class Led(NamedTuple):
    """A broker has become leader of a partition."""

    broker: BrokerProcess
    key: TopicPartition
    leader_epoch: int


class Logged(NamedTuple):
    """A broker's log has changed. Or its high watermark has."""

    broker: BrokerProcess
    key: TopicPartition
    log: Log


class Read(NamedTuple):
    """A consumer got a Fetch response. ``committed``: it reads up to the last stable offset."""

    key: TopicPartition
    offset: int
    committed: bool
    answer: Fetched


class Invariant(NamedTuple):
    """One invariant: its number, its text, its trigger and its check."""

    number: str
    says: str
    trigger: Trigger
    broken: Callable[[Watch, Any], str | None]
    """Returns the problem, or None."""


@dataclass(frozen=True, slots=True)
class Violation:
    """A broken invariant."""

    number: str
    problem: str
    at_ms: float
    event: int
    """The number of earlier events."""


@dataclass(slots=True)
class BrokerMemory:
    """The requests that one process of a broker has accepted."""

    controller_epoch: int = -1
    states: dict[TopicPartition, LeaderState] = field(default_factory=dict)
    metadata: dict[TopicPartition, PartitionMetadata] = field(default_factory=dict)
    live_brokers: tuple[int, ...] = ()
    addresses: Mapping[int, tuple[Endpoint, ...]] = field(default_factory=dict)
    """The listeners of brokers in UpdateMetadata."""
    topic_ids: dict[str, bytes] = field(default_factory=dict)


class Watch:
    """Records the history of a run and checks the invariants."""

    def __init__(self, simulation: Simulation, invariants: tuple[Invariant, ...]) -> None:
        self.simulation = simulation
        self.violations: list[Violation] = []
        self.looks: Counter[str] = Counter()
        """How often each invariant was checked."""
        self.epoch_owner: dict[int, tuple[int, int]] = {}
        """(controller id, incarnation) by controller epoch."""
        self.memory: defaultdict[int, BrokerMemory] = defaultdict(BrokerMemory)
        self.confirmed: set[tuple[TopicPartition, int]] = set()
        """(partition, broker) of replicas of the current topic whose deletion was confirmed."""
        self.wanted: defaultdict[TopicPartition, set[tuple[int, ...]]] = defaultdict(set)
        """All replica lists that operators have requested."""
        self.ids_used: dict[bytes, str] = {}
        """Name by topic id, of all topics that ever existed."""
        self.known_id: dict[str, bytes] = {}
        """The last id of every existing topic."""
        self.dark: set[str] = set()
        """Topics that some broker knows by another id, or, without topic ids, by a later leader epoch. Either their id
        was lost while no controller knew it, or a replica of an earlier topic with this name was not deleted."""
        self.unreadable: set[TopicPartition] = set()
        """Partitions of topics that were unreadable and have had no new leader epoch since. A proposal for an unknown
        topic is refused until a new leader epoch. Only a controller that reads the topic late raises that epoch; a
        failover after the repair does not."""
        self.rewritten: set[TopicPartition] = set()
        """States that another client has rewritten since their last leader epoch: their leaders cannot propose ISRs."""
        self.last_writer: dict[TopicPartition, ControllerProcess | None] = {}
        self.started: dict[tuple[int, int, int, int, int], set[type]] = {}
        """Kinds of requests so far, by (controller, incarnation, controller epoch, broker, broker epoch)."""
        self.unanswered = 0
        self.recounts: dict[int, tuple[bytes, dict[str, int]]] = {}
        """By controller: a digest of its columns, and the recounted gauges."""
        self.record_history = RecordHistory(simulation)
        self.reassignments = LastReassignments()
        self.observed = Observed(simulation)
        self._by_trigger: dict[Trigger, tuple[Invariant, ...]] = {
            trigger: tuple(invariant for invariant in invariants if invariant.trigger is trigger) for trigger in Trigger
        }

    @property
    def broken(self) -> bool:
        """Whether there are enough violations to end the run."""
        return len(self.violations) >= VIOLATIONS_MAX

    def look(self, trigger: Trigger, what: Any) -> None:
        """Check the invariants of a trigger."""
        for invariant in self._by_trigger[trigger]:
            self.looks[invariant.number] += 1
            problem = invariant.broken(self, what)
            if problem is not None:
                self.report(invariant.number, problem)

    def report(self, number: str, problem: str) -> None:
        """Record a violation."""
        scheduler = self.simulation.scheduler
        self.violations.append(Violation(number, problem, scheduler.now_ms, scheduler.happened))

    def answered(self, answered: Answered) -> None:
        """Record what a broker has accepted, and check the invariants."""
        broker, request, response = answered
        self.look(Trigger.ANSWERED, answered)
        if response.error is not ErrorCode.NONE:
            return
        memory, message = self.memory[broker.broker_id], request.message
        memory.controller_epoch = message.controller_epoch
        self._note_stale_logs(broker.broker_id, message, response)
        if isinstance(message, LeaderAndIsr):
            self._remember_states(broker, memory, message, response)
        elif isinstance(message, UpdateMetadata):
            _remember_metadata(memory, message)
            memory.addresses = request.addresses
        else:
            self._remember_stops(broker.broker_id, memory, message, response)

    def _note_stale_logs(self, broker_id: int, message: object, response: ControlResponse) -> None:
        """Record a log of an earlier topic with the same name. The broker was down at the deletion, or the controller
        ended. The broker refuses the new topic for its id or, without topic ids, for its leader epoch (Kafka 3.9
        ``ReplicaManager.becomeLeaderOrFollower``)."""
        if isinstance(message, LeaderAndIsr):
            for key, error in response.errors.items():
                left = (broker_id, key) in self.record_history.stale_logs.get(key[0], ())
                if error is ErrorCode.INCONSISTENT_TOPIC_ID or (left and error is ErrorCode.STALE_CONTROLLER_EPOCH):
                    self.dark.add(key[0])

    def _remember_states(
        self, broker: BrokerProcess, memory: BrokerMemory, message: LeaderAndIsr, response: ControlResponse
    ) -> None:
        memory.topic_ids.update(message.topic_ids)
        for key, state in message.partitions.items():
            if response.errors.get(key, ErrorCode.NONE) is ErrorCode.NONE:
                memory.states[key] = state
                if state.leader == broker.broker_id:
                    self.record_history.leadership_taken(key, broker.broker_id)
                    self.look(Trigger.LED, Led(broker, key, state.leader_epoch))

    def _remember_stops(
        self, broker_id: int, memory: BrokerMemory, message: StopReplica, response: ControlResponse
    ) -> None:
        for key, stop in message.partitions.items():
            if response.errors.get(key, ErrorCode.NONE) is ErrorCode.NONE and stop.delete:
                memory.states.pop(key, None)
                self.confirmed.add((key, broker_id))


def _remember_metadata(memory: BrokerMemory, message: UpdateMetadata) -> None:
    memory.live_brokers = message.live_brokers
    for key, metadata in message.partitions.items():
        if metadata.leader == LEADER_DURING_DELETE:
            memory.metadata.pop(key, None)
        else:
            memory.metadata[key] = metadata
