"""The observed history of a run, checked against the invariants after every event."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

from kframe.errors import ErrorCode
from kframe.model.brokers import Endpoint
from kframe.model.events import TopicPartition
from kframe_simulator.broker.messages import (
    ControlResponse,
    LeaderAndIsr,
    LeaderState,
    StopReplica,
    UpdateMetadata,
)
from kframe_simulator.simulation.cluster import BrokerView, SimulatedCluster
from kframe_simulator.simulation.controllers import ControllerProcess
from kframe_simulator.simulation.observations import BecameLeader, ResponseSent
from kframe_simulator.simulation.observed import Observed
from kframe_simulator.simulation.reassignments import LastReassignments
from kframe_simulator.simulation.record_history import RecordHistory

#: A run ends after this many violations: later ones are consequences.
VIOLATIONS_MAX: Final = 5


class Invariant(NamedTuple):
    """One invariant: its number, its text, its trigger and its check."""

    number: str
    text: str
    trigger: type[Any]
    """The type of the observations that it checks."""
    check: Callable[[Watch, Any], str | None]
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
    """What invariants need of the requests that one process of a broker has accepted, beside its model."""

    controller_epoch: int = -1
    states: dict[TopicPartition, LeaderState] = field(default_factory=dict)
    addresses: Mapping[int, tuple[Endpoint, ...]] = field(default_factory=dict)
    """The listeners of brokers in UpdateMetadata."""
    topic_ids: dict[str, bytes] = field(default_factory=dict)


class Watch:
    """Records the history of a run and checks the invariants."""

    def __init__(self, simulation: SimulatedCluster, invariants: tuple[Invariant, ...]) -> None:
        self.simulation = simulation
        self.violations: list[Violation] = []
        self.epoch_owner: dict[int, tuple[int, int]] = {}
        """(controller id, incarnation) by controller epoch."""
        self.memory: defaultdict[int, BrokerMemory] = defaultdict(BrokerMemory)
        self.confirmed: set[tuple[TopicPartition, int]] = set()
        """(partition, broker) of replicas of the current topic whose deletion was confirmed."""
        self.requested_targets: defaultdict[TopicPartition, set[tuple[int, ...]]] = defaultdict(set)
        """All replica lists that operators have requested."""
        self.ids_used: dict[bytes, str] = {}
        """Name by topic id, of all topics that ever existed."""
        self.known_id: dict[str, bytes] = {}
        """The last id of every existing topic."""
        self.mismatched_topics: set[str] = set()
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
        self.open_requests = 0
        self.recounts: dict[int, tuple[bytes, dict[str, int]]] = {}
        """By controller: its columns, and their recounted gauges."""
        self.fitting_states: dict[int, bytes] = {}
        self.fitting_replica_states: dict[int, bytes] = {}
        """By controller: the last columns whose states fit. Equal columns are not checked again."""
        self.record_history = RecordHistory(simulation, self.mismatched_topics)
        self.reassignments = LastReassignments()
        self.observed = Observed(simulation)
        self._observations: Counter[type[Any]] = Counter()
        self._by_trigger: defaultdict[type[Any], list[Invariant]] = defaultdict(list)
        for invariant in invariants:
            self._by_trigger[invariant.trigger].append(invariant)

    @property
    def broken(self) -> bool:
        """Whether there are enough violations to end the run."""
        return len(self.violations) >= VIOLATIONS_MAX

    @property
    def looks(self) -> Counter[str]:
        """How often each invariant was checked."""
        looks: Counter[str] = Counter()
        for trigger, count in self._observations.items():
            for invariant in self._by_trigger[trigger]:
                looks[invariant.number] += count
        return looks

    def check(self, observation: Any) -> None:
        """Check the invariants of this type of observation."""
        trigger = type(observation)
        self._observations[trigger] += 1
        for invariant in self._by_trigger[trigger]:
            problem = invariant.check(self, observation)
            if problem is not None:
                self.report(invariant.number, problem)

    def report(self, number: str, problem: str) -> None:
        """Record a violation."""
        scheduler = self.simulation.scheduler
        self.violations.append(Violation(number, problem, scheduler.now_ms, scheduler.happened))

    def response_sent(self, response_sent: ResponseSent) -> None:
        """Record what a broker has accepted, and check the invariants."""
        broker, request, response = response_sent
        self.check(response_sent)
        if response.error is not ErrorCode.NONE:
            return
        memory, message = self.memory[broker.broker_id], request.message
        memory.controller_epoch = message.controller_epoch
        self._note_stale_logs(broker.broker_id, message, response)
        if isinstance(message, LeaderAndIsr):
            self._remember_states(broker, memory, message, response)
        elif isinstance(message, UpdateMetadata):
            memory.addresses = request.addresses
        else:
            self._remember_stops(broker.broker_id, memory, message, response)

    def _note_stale_logs(self, broker_id: int, message: object, response: ControlResponse) -> None:
        """Record a log of an earlier topic with the same name. The broker was down at the deletion, or the controller
        ended. The broker refuses the new topic for its id or, without topic ids, for its leader epoch (Kafka 3.9
        ``ReplicaManager.becomeLeaderOrFollower``)."""
        if isinstance(message, LeaderAndIsr):
            for key, error in response.errors.items():
                is_stale = (broker_id, key) in self.record_history.stale_logs.get(key[0], ())
                if error is ErrorCode.INCONSISTENT_TOPIC_ID or (is_stale and error is ErrorCode.STALE_CONTROLLER_EPOCH):
                    self.mismatched_topics.add(key[0])

    def _remember_states(
        self, broker: BrokerView, memory: BrokerMemory, message: LeaderAndIsr, response: ControlResponse
    ) -> None:
        memory.topic_ids.update(message.topic_ids)
        for key, state in message.partitions.items():
            if response.errors.get(key, ErrorCode.NONE) is ErrorCode.NONE:
                memory.states[key] = state
                if state.leader == broker.broker_id:
                    self.record_history.became_leader(key, broker.broker_id)
                    self.check(BecameLeader(broker, key, state.leader_epoch))

    def _remember_stops(
        self, broker_id: int, memory: BrokerMemory, message: StopReplica, response: ControlResponse
    ) -> None:
        for key, stop in message.partitions.items():
            if response.errors.get(key, ErrorCode.NONE) is ErrorCode.NONE and stop.delete:
                memory.states.pop(key, None)
                self.confirmed.add((key, broker_id))
