"""Facts about controllers that are visible from outside: their channels, requests, reads and writes.

Invariants compare a controller's decisions with these facts, never with the columns behind the decisions.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping

from kframe.embedded.layout import DELETE_TOPICS
from kframe.errors import ErrorCode
from kframe.model.arrays import Int32
from kframe.model.cluster import ClusterState
from kframe.model.events import (
    ControlledShutdownRequested,
    Event,
    LeaderAndIsrResponseReceived,
    SessionExpired,
    TopicPartition,
)
from kframe.model.ids import LEADER_DURING_DELETE, NO_BROKER_EPOCH, NO_STATE
from kframe_simulator.broker.messages import NO_ID, LeaderAndIsr, UpdateMetadata
from kframe_simulator.broker.outgoing import ControlledShutdown, ControlledShutdownResponseData
from kframe_simulator.replication.control_requests import ControlRequest, Row
from kframe_simulator.simulation.cluster import SimulatedCluster
from kframe_simulator.simulation.controller_facts import Assignment, Epochs, Leadership, ProcessFacts, Term, TermFacts
from kframe_simulator.simulation.controllers import ControllerProcess
from kframe_simulator.simulation.observations import StateWritten


class Observed:
    """The facts of one simulation."""

    def __init__(self, simulation: SimulatedCluster) -> None:
        self._simulation = simulation
        self._terms: defaultdict[Term, TermFacts] = defaultdict(TermFacts)
        self._processes: defaultdict[tuple[int, int], ProcessFacts] = defaultdict(ProcessFacts)
        self._resumptions = 0
        self._undetected_crashes: dict[int, int] = {}
        """Broker epochs of processes that crashed before the controller had a channel to them."""
        self._incarnations: dict[TopicPartition, dict[int, int]] = {}
        """The incarnation of each ISR member when the ISR was stored."""
        self._orderly: dict[int, Term] = {}
        """The term in which a broker stopped after a granted controlled shutdown."""
        self._crashed_after_grant: set[int] = set()
        """Brokers that last crashed after a granted controlled shutdown."""
        self._added_after_failure: defaultdict[TopicPartition, set[int]] = defaultdict(set)
        """ISR members that a leader has added after the controller had closed its channel to them."""
        self.stored: defaultdict[TopicPartition, set[Leadership]] = defaultdict(set)
        """All states that storage ever had of the current topic with this name."""
        self.topic_ids: defaultdict[str, dict[bytes, int]] = defaultdict(dict)
        """The ids that storage ever had of each existing topic, and the controller epoch when each was first stored."""

    # -- Brokers and controllers.

    @staticmethod
    def term(process: ControllerProcess) -> Term:
        """The term of a process's last claim."""
        return process.controller_id, process.incarnation, process.store.claimed_epoch

    def of_term(self, process: ControllerProcess) -> TermFacts:
        """The facts of the term of a process's last claim."""
        return self._terms[self.term(process)]

    def of_process(self, process: ControllerProcess) -> ProcessFacts:
        """The facts of a process, of its current incarnation."""
        return self._processes[process.controller_id, process.incarnation]

    @staticmethod
    def registered(process: ControllerProcess) -> dict[int, int]:
        """Broker epoch by broker of the registrations with a channel."""
        return {channel.broker_id: channel.broker_epoch for channel in process.transport.channels.values()}

    def leaving(self, process: ControllerProcess) -> set[int]:
        """Brokers whose current registration has sent ControlledShutdown in this term."""
        registered = self.registered(process)
        leaving = self.of_term(process).leaving
        return {broker for broker, epoch in leaving.items() if registered.get(broker) == epoch}

    def granted(self, process: ControllerProcess) -> set[int]:
        """Brokers whose current registration was granted its controlled shutdown in this term."""
        registered = self.registered(process)
        granted = self.of_term(process).granted
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
        return self.of_term(process).deleting & self._simulation.ensemble.topic_ids.keys()

    def marked(self) -> set[str]:
        """Topics marked for deletion in storage."""
        return set(self._simulation.ensemble.record_names(DELETE_TOPICS))

    # -- Events.

    def event_begins(self, process: ControllerProcess, event: Event) -> None:
        """A controller takes an event."""
        facts = self.of_process(process)
        facts.marks_before = self.marked()
        if isinstance(event, SessionExpired):
            facts.expiries_handled = process.store.expiries
        if process.active and isinstance(event, ControlledShutdownRequested):
            registered = self.registered(process).get(event.broker_id)
            if registered is not None and event.broker_epoch in (NO_BROKER_EPOCH, registered):
                self.of_term(process).leaving[event.broker_id] = registered
        if process.active and isinstance(event, LeaderAndIsrResponseReceived):
            self._record_storage_errors(process, event)

    def _record_storage_errors(self, process: ControllerProcess, response: LeaderAndIsrResponseReceived) -> None:
        epoch = self.registered(process).get(response.broker_id)
        current = response.controller_epoch == process.store.claimed_epoch
        current = current and response.broker_epoch in (NO_BROKER_EPOCH, epoch)
        if response.error is not ErrorCode.NONE or epoch is None or not current:
            return
        storage_errors, cluster = self.of_term(process).storage_errors, process.loop.controller.cluster
        existing = response.rows[cluster.partitions.topic[response.rows] >= 0]
        for key in partitions_of(cluster, existing):
            storage_errors.pop((key, response.broker_id), None)
        for key, error in response.partition_errors:
            if error is ErrorCode.KAFKA_STORAGE_ERROR:
                storage_errors[key, response.broker_id] = epoch

    def on_shutdown_response(
        self, process: ControllerProcess, request: ControlledShutdown, response: ControlledShutdownResponseData
    ) -> None:
        """A controller has responded to a ControlledShutdown request, perhaps after the broker crashed."""
        broker, granted = self._simulation.brokers[request.broker_id], self.of_term(process).granted
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
        facts, failed = self.of_process(process), process.loop.controller.failures
        if failed > facts.failed_before:
            facts.failed_before = failed
            facts.failures.append(process.clock.now_ms())
        elif process.active:
            facts.failures.clear()
        registered = self.registered(process)
        for broker_id in [
            broker for broker, epoch in self._undetected_crashes.items() if registered.get(broker) == epoch
        ]:
            del self._undetected_crashes[broker_id]
            self._orderly.pop(broker_id, None)
            self._crashed_after_grant.discard(broker_id)

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
        late = self._added_after_failure[written.key]
        late.intersection_update(row.isr)
        if written.process is not None:
            self.of_process(written.process).last_read[written.key] = row.partition_epoch
        elif (process := self._current()) is not None:
            added = set(row.isr).difference(written.before.isr if written.before else ())
            late.update(added - self.registered(process).keys())

    def loaded(self, process: ControllerProcess) -> None:
        """A controller begins a term with all readable stored states."""
        ensemble = self._simulation.ensemble
        self.of_process(process).last_read.clear()
        term = self.of_term(process)
        term.unreadable_topics = {name for name in ensemble.topic_ids if not ensemble.readable([name])}
        term.unreadable = {
            key: row.leader_epoch
            for key, row in ensemble.rows.items()
            if row.partition_epoch != NO_STATE and key[0] in term.unreadable_topics
        }

    def stopped_in_order(self, broker_id: int) -> None:
        """A broker has stopped after a controlled shutdown."""
        process = self._current()
        self._orderly.pop(broker_id, None)
        self._crashed_after_grant.discard(broker_id)
        if process is not None and broker_id in self.granted(process):
            self._orderly[broker_id] = self.term(process)

    def crashed(self, broker_id: int) -> None:
        """A broker has ended in any other way, or registered again.

        After an orderly stop, the controller does not know of this process unless it has a channel to it, and knows no
        crash. It may still detect the registration until the session has ended (``event_ended``).
        """
        process, epoch = self._current(), self._simulation.brokers[broker_id].registration.broker_epoch
        seemed_orderly = broker_id in self._orderly or broker_id in self._crashed_after_grant
        if process is not None and seemed_orderly and self.registered(process).get(broker_id) != epoch:
            self._undetected_crashes[broker_id] = epoch
            self._crashed_after_grant.add(broker_id)
            return
        self._orderly.pop(broker_id, None)
        self._crashed_after_grant.discard(broker_id)
        if process is not None and broker_id in self.granted(process):
            self._crashed_after_grant.add(broker_id)

    def states_read(self, process: ControllerProcess, versions: Mapping[TopicPartition, int]) -> None:
        """A controller has read states: their versions, NO_STATE if there is none."""
        self.of_process(process).last_read.update(versions)

    def topic_stored(self, name: str, topic_id: bytes) -> None:
        """A topic was stored. It has no id if a client without topic ids has stored it (X5)."""
        if topic_id != NO_ID:
            self.topic_ids[name].setdefault(topic_id, self._simulation.ensemble.controller_epoch())
        self.resumed()

    def topic_deleted(self, partitions: Iterable[TopicPartition]) -> None:
        """A topic was deleted."""
        now = self._simulation.ensemble.controller_epoch()
        for key in partitions:
            states = self.stored.pop(key, set())
            self._added_after_failure.pop(key, None)
            for (_, _, controller_epoch), term in self._terms.items():
                if controller_epoch < now:
                    term.deleted_states[key] |= states
            for term in self._terms.values():
                term.sent_assignments.pop(key, None)
                term.storage_errors = {entry: epoch for entry, epoch in term.storage_errors.items() if entry[0] != key}
                term.sent_replicas.partition_deleted(key)
                term.unreadable.pop(key, None)
            for process in self._processes.values():
                process.last_read.pop(key, None)
        names = {name for name, _ in partitions}
        for name in names:
            self.topic_ids.pop(name, None)
        for term in self._terms.values():
            term.deleting.difference_update(names)
            term.unreadable_topics.difference_update(names)

    def resumed(self) -> None:
        """An event lets deletions continue: a broker registered, or a topic was written."""
        self._resumptions += 1

    def queued(self, process: ControllerProcess, control_request: ControlRequest) -> None:
        """A request was queued. The invariants have already checked it."""
        term, message = self.of_term(process), control_request.message
        if isinstance(message, (LeaderAndIsr, UpdateMetadata)):
            replicas = {key: state.replicas for key, state in message.partitions.items()}
            term.sent_replicas.queued(replicas, self._simulation.ensemble.rows, self.registered(process).keys())
        if isinstance(message, LeaderAndIsr):
            for key, state in message.partitions.items():
                assignment = state.replicas, state.adding_replicas, state.removing_replicas
                before, _ = term.sent_assignments.get(key, (None, None))
                if assignment != before:
                    term.sent_assignments[key] = assignment, process.event
        if isinstance(message, UpdateMetadata):
            for key, sent in message.partitions.items():
                if sent.leader == LEADER_DURING_DELETE:
                    term.deleting.add(key[0])
                else:
                    term.announced[key] = Epochs(sent.leader_epoch, sent.partition_epoch)

    # -- Queries.

    def sent_before(self, process: ControllerProcess, row: Row, event: Event) -> bool:
        """Whether an event of this term before ``event`` has sent the assignment of ``row``."""
        assignment, sent_by = self.of_term(process).sent_assignments.get(row.key, (None, None))
        return assignment == (row.replicas, row.adding, row.removing) and sent_by is not event

    def sent_assignment(self, process: ControllerProcess, key: TopicPartition) -> Assignment | None:
        """The assignment of a partition in the last LeaderAndIsr of this term. None if there was none."""
        return self.of_term(process).sent_assignments.get(key, (None, None))[0]

    def known_states(self, process: ControllerProcess, key: TopicPartition) -> set[Leadership]:
        """All states that this term may know: of the current topic, and of those that later controllers deleted."""
        return self.stored.get(key, set()) | self.deleted_states(process, key)

    def deleted_states(self, process: ControllerProcess, key: TopicPartition) -> set[Leadership]:
        """All states of earlier topics with this name that controllers after this term have deleted."""
        return self.of_term(process).deleted_states.get(key, set())

    def has_later_id(self, process: ControllerProcess, name: str, topic_id: bytes) -> bool:
        """Whether an existing topic had ``topic_id``, and a controller after this term has given it another (X5)."""
        ids = self.topic_ids.get(name, {})
        return topic_id in ids and max(ids.values()) > process.store.claimed_epoch

    def with_storage_error(self, process: ControllerProcess, key: TopicPartition) -> set[int]:
        """Brokers whose current registration has reported a failed log directory of a partition in this term."""
        registered = self.registered(process).items()
        storage_errors = self.of_term(process).storage_errors
        return {broker for broker, epoch in registered if storage_errors.get((key, broker)) == epoch}

    def added_after_failure(self, key: TopicPartition) -> set[int]:
        """ISR members that a leader has added after the controller of that time had closed its channel to them."""
        return self._added_after_failure.get(key, set())

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
        process = self._current()
        return process is not None and self._orderly.get(broker_id) == self.term(process)

    def repeats_deletion(self, process: ControllerProcess, key: TopicPartition, broker_id: int) -> bool:
        """Record a deleting StopReplica. Returns whether this term has sent the same one before, with no event in
        between that lets a deletion continue."""
        deletions = self.of_term(process).sent_deletions
        before = deletions.get((key, broker_id))
        deletions[key, broker_id] = self._resumptions
        return before == self._resumptions

    def is_repeated_event(self, process: ControllerProcess, event: Event) -> bool:
        """Whether a process takes the same notification as the last time."""
        facts = self.of_process(process)
        before, facts.last_event = facts.last_event, event
        return before is event

    def _current(self) -> ControllerProcess | None:
        """The process that owns the role in storage, and believes so."""
        return next((process for process in self._simulation.controllers if self.in_term(process)), None)


def partitions_of(cluster: ClusterState, rows: Int32) -> list[TopicPartition]:
    """The partitions of rows."""
    p, names = cluster.partitions, cluster.topics.names
    return [(names[p.topic[row]], int(p.partition[row])) for row in rows.tolist()]


def leadership(row: Row) -> Leadership:
    """The fields of a stored state that requests repeat."""
    return row.leader, row.leader_epoch, row.isr, row.partition_epoch
