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
from kframe_simulator.broker.outgoing import ControlledShutdown, ControlledShutdownResponse
from kframe_simulator.simulation.control_requests import ControlRequest, Row
from kframe_simulator.simulation.observed import Observed
from kframe_simulator.simulation.reassignments import Reassignments
from kframe_simulator.simulation.record_history import RecordHistory

if TYPE_CHECKING:
    from kframe_simulator.simulation.brokers import BrokerProcess
    from kframe_simulator.simulation.controllers import ControllerProcess
    from kframe_simulator.simulation.simulation import Simulation

#: So many broken invariants end a run: what comes after is their consequence.
VIOLATIONS_MAX: Final = 5


class Trigger(Enum):
    """When an invariant is checked, and with what."""

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
    """A process won the role."""

    process: ControllerProcess
    controller_epoch: int


class Written(NamedTuple):
    """A process did a write of the store."""

    process: ControllerProcess
    call: str


class StateWritten(NamedTuple):
    """A state was stored. ``process`` None: past every controller."""

    key: TopicPartition
    before: Row | None
    after: Row
    process: ControllerProcess | None
    cluster: ClusterState | None


class TopicWritten(NamedTuple):
    """A topic was stored; partitions by number. ``process`` None: past every controller."""

    name: str
    before: Mapping[int, Row]
    after: Mapping[int, Row]
    topic_id: bytes
    process: ControllerProcess | None


class Post(NamedTuple):
    """A request and who sends it."""

    process: ControllerProcess
    request: ControlRequest
    again: bool = False


class Answered(NamedTuple):
    """A broker's answer to a request."""

    broker: BrokerProcess
    request: ControlRequest
    response: ControlResponse


class Connected(NamedTuple):
    """A channel was opened while another to the same broker was, perhaps, still open."""

    process: ControllerProcess
    broker_id: int
    open_epoch: int | None


class Replied(NamedTuple):
    """Another client was answered; ``times`` counts the answers, ``whole`` says whether all that was asked has a
    code."""

    what: str
    times: int
    whole: bool


class Refused(NamedTuple):
    """A controller's write of a state was refused for its version."""

    process: ControllerProcess
    key: TopicPartition


class Begun(NamedTuple):
    """A controller takes an event."""

    process: ControllerProcess
    event: Event


class Proposed(NamedTuple):
    """A leader's AlterPartition was answered; ``written``: the partitions that this event has written so far."""

    process: ControllerProcess
    event: AlterPartitionRequested
    response: AlterPartitionResponse
    written: frozenset[TopicPartition]


class Ended(NamedTuple):
    """An event is over, with what it has written."""

    process: ControllerProcess
    event: Any
    written: tuple[TopicPartition, ...]
    topics: Mapping[str, Mapping[int, Row]]
    """Topics that it has written, as they were before."""
    repeated: bool
    """Whether it was told for the second time, and nothing else has happened since the first."""
    untold: tuple[tuple[TopicPartition, int], ...] = ()
    """Partitions that got another leader, and who led them before and received nothing of it."""
    calls: Mapping[str, int] = {}
    """How often it called the store, by call; a write counts whatever became of it."""
    failed: bool = False
    """Whether it failed, or was refused by the store."""
    warnings: tuple[str, ...] = ()
    """What the controller has logged, from warnings on."""
    reassignments: Mapping[TopicPartition, tuple[int, ...]] = {}
    """What operators had left to be reassigned before the event first wrote that."""
    not_called_new: tuple[tuple[TopicPartition, int], ...] = ()
    """New replicas (partition, broker) that a LeaderAndIsr was sent for, and none that says so."""
    unaware: tuple[int, ...] = ()
    """Registered brokers that were not told who is registered, where that has changed."""
    elections: frozenset[TopicPartition] = frozenset()
    """Partitions for which an operator has left a preferred election, as the event has read."""
    arrived: frozenset[int] = frozenset()
    """Brokers that have registered, or registered anew, as the event has handled."""
    knowledge: bytes = b""
    """What the controller knew before a broker's answer; empty for other events."""
    epochs_told: Mapping[tuple[TopicPartition, int], int] = {}
    """The highest leader epoch that LeaderAndIsr requests named, by partition and broker."""


class Leaving(NamedTuple):
    """A broker that wants to stop was answered."""

    process: ControllerProcess
    asked: ControlledShutdown
    response: ControlledShutdownResponse


class Led(NamedTuple):
    """A broker has taken up the leadership of a partition."""

    broker: BrokerProcess
    key: TopicPartition
    leader_epoch: int


class Logged(NamedTuple):
    """A broker's log has changed, or its high watermark."""

    broker: BrokerProcess
    key: TopicPartition
    log: Log


class Read(NamedTuple):
    """A consumer has been answered; ``committed``: it reads no further than the last stable offset."""

    key: TopicPartition
    offset: int
    committed: bool
    answer: Fetched


class Invariant(NamedTuple):
    """One rule: its number in the list of reliability rules, what it says, when it is checked, and how."""

    number: str
    says: str
    trigger: Trigger
    broken: Callable[[Watch, Any], str | None]
    """What is wrong, or None."""


@dataclass(frozen=True, slots=True)
class Violation:
    """An invariant that did not hold."""

    number: str
    problem: str
    at_ms: float
    event: int
    """How many events had happened."""


@dataclass(slots=True)
class BrokerMemory:
    """What one process of a broker has accepted."""

    controller_epoch: int = -1
    states: dict[TopicPartition, LeaderState] = field(default_factory=dict)
    metadata: dict[TopicPartition, PartitionMetadata] = field(default_factory=dict)
    live_brokers: tuple[int, ...] = ()
    addresses: Mapping[int, tuple[Endpoint, ...]] = field(default_factory=dict)
    """Where brokers listen, as it was told."""
    topic_ids: dict[str, bytes] = field(default_factory=dict)


class Watch:
    """Looks on, remembers, and holds what it sees to the invariants."""

    def __init__(self, simulation: Simulation, invariants: tuple[Invariant, ...]) -> None:
        self.simulation = simulation
        self.violations: list[Violation] = []
        self.looks: Counter[str] = Counter()
        """How often each invariant was checked."""
        self.epoch_owner: dict[int, tuple[int, int]] = {}
        """(controller id, incarnation) by controller epoch."""
        self.memory: defaultdict[int, BrokerMemory] = defaultdict(BrokerMemory)
        self.confirmed: set[tuple[TopicPartition, int]] = set()
        """(partition, broker) of replicas whose deletion was confirmed in this life of their topic."""
        self.wanted: defaultdict[TopicPartition, set[tuple[int, ...]]] = defaultdict(set)
        """Replica lists that operators have ever asked for."""
        self.ids_used: dict[bytes, str] = {}
        """Name by topic id, of every topic there ever was."""
        self.known_id: dict[str, bytes] = {}
        """The last id of every topic that stands."""
        self.dark: set[str] = set()
        """Topics that some broker knows by another id, or, before there were ids, by a later leader epoch: their own id
        was lost while no controller knew it, or a replica of an earlier topic of the name was never deleted."""
        self.unreadable: set[TopicPartition] = set()
        """Partitions of topics that could not be read, and have no leader epoch since they can be. Proposals for what a
        controller does not know are refused for good: leaders wait for a new leader epoch, which they get from the
        controller that takes the topic up late, and not from one that takes over once it can be read again."""
        self.rewritten: set[TopicPartition] = set()
        """States that somebody has written unasked since their last leader epoch: their leaders cannot propose ISRs."""
        self.last_writer: dict[TopicPartition, ControllerProcess | None] = {}
        self.started: dict[tuple[int, int, int, int, int], set[type]] = {}
        """Kinds of requests so far, by (controller, incarnation, controller epoch, broker, broker epoch)."""
        self.unanswered = 0
        self.recounts: dict[int, tuple[bytes, dict[str, int]]] = {}
        """The last recount of a controller's gauges, and what was counted."""
        self.record_history = RecordHistory(simulation)
        self.moves = Reassignments()
        self.observed = Observed(simulation)
        self._by_trigger: dict[Trigger, tuple[Invariant, ...]] = {
            trigger: tuple(invariant for invariant in invariants if invariant.trigger is trigger) for trigger in Trigger
        }

    @property
    def broken(self) -> bool:
        """Whether so much is wrong that the run is over."""
        return len(self.violations) >= VIOLATIONS_MAX

    def look(self, trigger: Trigger, what: Any) -> None:
        """Hold something that has happened to the invariants that are about it."""
        for invariant in self._by_trigger[trigger]:
            self.looks[invariant.number] += 1
            problem = invariant.broken(self, what)
            if problem is not None:
                self.report(invariant.number, problem)

    def report(self, number: str, problem: str) -> None:
        """Note what is wrong."""
        scheduler = self.simulation.scheduler
        self.violations.append(Violation(number, problem, scheduler.now_ms, scheduler.happened))

    def answered(self, answered: Answered) -> None:
        """Remember what a broker has accepted, and look."""
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
        """A broker holds a log of an earlier topic of the name, since it was down when its replica was to be deleted,
        or its controller ended: it refuses the topic for its id, or, knowing none, for its leader epoch (Kafka 3.9
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
