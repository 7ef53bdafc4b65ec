"""Facts about controllers that are visible from outside: their channels, requests, reads and writes.

Invariants compare a controller's decisions with these facts, never with the columns behind the decisions.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from kframe.embedded.layout import DELETE_TOPICS
from kframe.errors import ErrorCode
from kframe.model.events import ControlledShutdownRequested, Event, SessionExpired, TopicPartition
from kframe.model.ids import LEADER_DURING_DELETE, NO_BROKER_EPOCH, NO_STATE
from kframe_simulator.broker.messages import UpdateMetadata
from kframe_simulator.broker.outgoing import ControlledShutdown, ControlledShutdownResponseData
from kframe_simulator.replication.control_requests import ControlRequest, Row
from kframe_simulator.simulation.cluster import SimulatedCluster
from kframe_simulator.simulation.controllers import ControllerProcess
from kframe_simulator.simulation.observations import StateWritten

#: One term: controller id, incarnation of its process, controller epoch.
Term = tuple[int, int, int]
#: A stored leadership state: leader, leader epoch, ISR, partition epoch.
Leadership = tuple[int, int, tuple[int, ...], int]


class Epochs(NamedTuple):
    """Leader epoch and partition epoch of a partition."""

    leader_epoch: int
    partition_epoch: int


class Observed:
    """The facts of one simulation."""

    def __init__(self, simulation: SimulatedCluster) -> None:
        self._simulation = simulation
        self._leaving: defaultdict[Term, dict[int, int]] = defaultdict(dict)
        """Broker epoch by broker of the ControlledShutdown requests in a term."""
        self._announced: defaultdict[Term, dict[TopicPartition, Epochs]] = defaultdict(dict)
        """The epochs in the last UpdateMetadata of a term."""
        self._deleting: defaultdict[Term, set[str]] = defaultdict(set)
        """Topics that a term has announced as being deleted."""
        self._unreadable_at: dict[Term, dict[TopicPartition, int]] = {}
        """Leader epochs of partitions that were unreadable at the start of the term."""
        self._stops: dict[tuple[Term, TopicPartition, int], int] = {}
        self._sent_deletions: defaultdict[Term, set[tuple[TopicPartition, int]]] = defaultdict(set)
        """Replicas (partition, broker) with a deleting StopReplica in a term."""
        self._resumptions = 0
        self._failures: defaultdict[tuple[int, int], list[float]] = defaultdict(list)
        self._failed_before: dict[tuple[int, int], int] = {}
        self._expiries_handled: dict[tuple[int, int], int] = {}
        self._incarnations: dict[TopicPartition, dict[int, int]] = {}
        """The incarnation of each ISR member when the ISR was stored."""
        self._last_event: dict[tuple[int, int], Event] = {}
        self._marks_before: dict[tuple[int, int], set[str]] = {}
        """Topics marked for deletion at the start of a process's current event."""
        self._orderly: dict[int, Term] = {}
        """The term in which a broker stopped after a granted controlled shutdown."""
        self._granted: defaultdict[Term, dict[int, int]] = defaultdict(dict)
        """Broker epoch by broker of the last ControlledShutdown requests that a term has granted."""
        self._crashed_after_grant: set[int] = set()
        """Brokers that last crashed after a granted controlled shutdown."""
        self._last_read: defaultdict[tuple[int, int], dict[TopicPartition, int]] = defaultdict(dict)
        self.stored: defaultdict[TopicPartition, set[Leadership]] = defaultdict(set)
        """All states that storage ever had of the current topic with this name."""

    # -- Brokers and controllers.

    @staticmethod
    def term(process: ControllerProcess) -> Term:
        """The term of a process's last claim."""
        return process.controller_id, process.incarnation, process.store.claimed_epoch

    @staticmethod
    def registered(process: ControllerProcess) -> dict[int, int]:
        """Broker epoch by broker of the registrations with a channel."""
        return {channel.broker_id: channel.broker_epoch for channel in process.transport.channels.values()}

    def leaving(self, process: ControllerProcess) -> set[int]:
        """Brokers whose current registration has sent ControlledShutdown in this term."""
        registered = self.registered(process)
        requested = self._leaving.get(self.term(process), {})
        return {broker for broker, epoch in requested.items() if registered.get(broker) == epoch}

    def granted(self, process: ControllerProcess) -> set[int]:
        """Brokers whose current registration was granted its controlled shutdown in this term."""
        registered = self.registered(process)
        granted = self._granted.get(self.term(process), {})
        return {broker for broker, epoch in granted.items() if registered.get(broker) == epoch}

    def live(self, process: ControllerProcess) -> set[int]:
        """Brokers that a controller knows to be registered and not shutting down."""
        return self.registered(process).keys() - self.leaving(process)

    def in_term(self, process: ControllerProcess) -> bool:
        """Whether a process believes itself controller and owns the role in storage."""
        now = self._simulation.ensemble.controller_epoch()
        return process.active and process.store.claimed_epoch == now and not process.store.lost_role

    def deleting(self, process: ControllerProcess) -> set[str]:
        """Existing topics that this term has announced as being deleted."""
        return self._deleting.get(self.term(process), set()) & self._simulation.ensemble.topic_ids.keys()

    def marked(self) -> set[str]:
        """Topics marked for deletion in storage."""
        return set(self._simulation.ensemble.record_names(DELETE_TOPICS))

    def marks_before(self, process: ControllerProcess) -> set[str]:
        """Topics marked for deletion at the start of the process's current event."""
        return self._marks_before.get(self._process(process), set())

    # -- Events.

    def event_begins(self, process: ControllerProcess, event: Event) -> None:
        """A controller takes an event."""
        self._marks_before[self._process(process)] = self.marked()
        if isinstance(event, SessionExpired):
            self._expiries_handled[self._process(process)] = process.store.expiries
        if process.active and isinstance(event, ControlledShutdownRequested):
            registered = self.registered(process).get(event.broker_id)
            if registered is not None and event.broker_epoch in (NO_BROKER_EPOCH, registered):
                self._leaving[self.term(process)][event.broker_id] = registered

    def shutdown_answered(
        self, process: ControllerProcess, request: ControlledShutdown, response: ControlledShutdownResponseData
    ) -> None:
        """A controller has answered a ControlledShutdown request, perhaps after the broker crashed."""
        broker, granted = self._simulation.brokers[request.broker_id], self._granted[self.term(process)]
        epoch = self.registered(process).get(request.broker_id)
        if response.error is not ErrorCode.NONE or epoch is None:
            return
        granted.pop(request.broker_id, None)
        if not response.remaining:
            granted[request.broker_id] = epoch
            if not broker.running or broker.registration.broker_epoch != epoch:
                self._crashed_after_grant.add(request.broker_id)

    def event_ended(self, process: ControllerProcess, event: Event) -> None:
        """A controller has completed an event."""
        incarnation, failed = self._process(process), process.loop.controller.failures
        if failed > self._failed_before.get(incarnation, 0):
            self._failed_before[incarnation] = failed
            self._failures[incarnation].append(process.clock.now_ms())
        elif process.active:
            self._failures[incarnation].clear()

    def state_written(self, written: StateWritten) -> None:
        """Any client has stored a state."""
        row = written.after
        self.stored[written.key].add(leadership(row))
        if written.before is None or written.before.isr != row.isr:
            self._incarnations[written.key] = {
                member: self._simulation.brokers[member].incarnation
                for member in row.isr
                if member in self._simulation.brokers
            }
        if written.process is not None:
            self._last_read[self._process(written.process)][written.key] = row.partition_epoch

    def loaded(self, process: ControllerProcess) -> None:
        """A controller begins a term with all readable stored states."""
        ensemble = self._simulation.ensemble
        self._last_read.pop(self._process(process), None)
        self._unreadable_at[self.term(process)] = {
            key: row.leader_epoch
            for key, row in ensemble.rows.items()
            if row.partition_epoch != NO_STATE and not ensemble.readable([key[0]])
        }

    def stopped_in_order(self, broker_id: int) -> None:
        """A broker has stopped after a controlled shutdown."""
        process = next((controller for controller in self._simulation.controllers if self.in_term(controller)), None)
        self._orderly.pop(broker_id, None)
        self._crashed_after_grant.discard(broker_id)
        if process is not None and broker_id in self.granted(process):
            self._orderly[broker_id] = self.term(process)

    def crashed(self, broker_id: int) -> None:
        """A broker has ended in any other way, or registered again."""
        self._orderly.pop(broker_id, None)
        process = next((controller for controller in self._simulation.controllers if self.in_term(controller)), None)
        self._crashed_after_grant.discard(broker_id)
        if process is not None and broker_id in self.granted(process):
            self._crashed_after_grant.add(broker_id)

    def states_read(self, process: ControllerProcess, versions: Mapping[TopicPartition, int]) -> None:
        """A controller has read states: their versions, NO_STATE if there is none."""
        self._last_read[self._process(process)].update(versions)

    def topic_deleted(self, partitions: Iterable[TopicPartition]) -> None:
        """A topic was deleted."""
        for key in partitions:
            self.stored.pop(key, None)
            for known in self._last_read.values():
                known.pop(key, None)
        names = {name for name, _ in partitions}
        for topics in self._deleting.values():
            topics.difference_update(names)

    def resumed(self) -> None:
        """An event lets deletions continue: a broker registered, or a topic was written."""
        self._resumptions += 1

    def queued(self, process: ControllerProcess, control_request: ControlRequest) -> None:
        """A request was queued. The invariants have already checked it."""
        term, message = self.term(process), control_request.message
        if isinstance(message, UpdateMetadata):
            for key, sent in message.partitions.items():
                if sent.leader == LEADER_DURING_DELETE:
                    self._deleting[term].add(key[0])
                else:
                    self._announced[term][key] = Epochs(sent.leader_epoch, sent.partition_epoch)

    # -- Queries.

    def announced(self, process: ControllerProcess, key: TopicPartition) -> Epochs | None:
        """The epochs of a partition in this term's last UpdateMetadata."""
        return self._announced.get(self.term(process), {}).get(key)

    def unreadable_since(self, process: ControllerProcess) -> Mapping[TopicPartition, int]:
        """The leader epochs, at the start of the current term, of partitions that were unreadable then."""
        return self._unreadable_at.get(self.term(process), {})

    def consecutive_failures(self, process: ControllerProcess) -> list[float]:
        """When, by its own clock, operations of a process have failed since it was last controller after an event."""
        return self._failures[self._process(process)]

    def expiries_handled(self, process: ControllerProcess) -> int:
        """The number of session expiries that a process has handled."""
        return self._expiries_handled.get(self._process(process), 0)

    def crashed_since(self, key: TopicPartition, broker_id: int) -> bool:
        """Whether a broker has restarted after a crash since the current ISR was stored. A crash after a granted
        controlled shutdown does not count: to the controller it looks like the end of that shutdown."""
        if broker_id in self._crashed_after_grant:
            return False
        broker = self._simulation.brokers[broker_id]
        before = self._incarnations.get(key, {}).get(broker_id, broker.incarnation)
        return broker.restarted_after_crash and broker.incarnation > before

    def stopped_in_current_term(self, broker_id: int) -> bool:
        """Whether a broker last stopped after a controlled shutdown, in the term of the current controller."""
        process = next((controller for controller in self._simulation.controllers if self.in_term(controller)), None)
        return process is not None and self._orderly.get(broker_id) == self.term(process)

    def last_read(self, process: ControllerProcess) -> Mapping[TopicPartition, int]:
        """The state versions that this process has last read or written."""
        return self._last_read.get(self._process(process), {})

    def repeats_deletion(self, process: ControllerProcess, key: TopicPartition, broker_id: int) -> bool:
        """Record a deleting StopReplica. Returns whether this term has sent the same one before, with no event in
        between that lets a deletion continue."""
        self._sent_deletions[self.term(process)].add((key, broker_id))
        before = self._stops.get((self.term(process), key, broker_id))
        self._stops[self.term(process), key, broker_id] = self._resumptions
        return before == self._resumptions

    def has_sent_deletion(self, process: ControllerProcess, key: TopicPartition, broker_id: int) -> bool:
        """Whether the current term has sent a deleting StopReplica for a replica."""
        return (key, broker_id) in self._sent_deletions.get(self.term(process), ())

    def is_repeated_event(self, process: ControllerProcess, event: Event) -> bool:
        """Whether a process takes the same notification as the last time."""
        before, self._last_event[self._process(process)] = self._last_event.get(self._process(process)), event
        return before is event

    @staticmethod
    def _process(process: ControllerProcess) -> tuple[int, int]:
        return process.controller_id, process.incarnation


def leadership(row: Row) -> Leadership:
    """The fields of a stored state that requests repeat."""
    return row.leader, row.leader_epoch, row.isr, row.partition_epoch
