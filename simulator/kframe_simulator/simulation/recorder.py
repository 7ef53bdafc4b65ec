"""Records writes, requests, responses and actions of a simulation for its trace and invariants."""

from __future__ import annotations

import hashlib
from collections import Counter, deque
from collections.abc import Callable, Iterable, Mapping
from random import Random
from typing import Any, NamedTuple

from kframe.core.operations.alter_partition import AlterPartitionResponse
from kframe.errors import ErrorCode
from kframe.model.arrays import Int32
from kframe.model.changes import StoredStates
from kframe.model.cluster import ClusterState
from kframe.model.events import (
    AlterPartitionRequested,
    Event,
    LeaderAndIsrResponseReceived,
    StopReplicaResponseReceived,
    TopicPartition,
)
from kframe.model.ids import NO_STATE
from kframe.model.protocol import InterBrokerProtocol
from kframe.model.requests import ControlRequests
from kframe.ports.store_requests import Claim, Load, StoreRequest, WriteReassignments
from kframe.wire import ControlVersions, Encoder
from kframe_simulator.broker.messages import ControlResponse, LeaderAndIsr, UpdateMetadata
from kframe_simulator.broker.outgoing import ControlledShutdown, ControlledShutdownResponseData, Message
from kframe_simulator.faults.plan import Action
from kframe_simulator.replication.control_requests import ControlRequest, Row
from kframe_simulator.simulation.brokers import BrokerProcess
from kframe_simulator.simulation.clients import Clients
from kframe_simulator.simulation.cluster import BrokerView
from kframe_simulator.simulation.controller_memory import ErrorCatcher, digest, failures_of
from kframe_simulator.simulation.controllers import FIRST_ID, ControllerProcess
from kframe_simulator.simulation.ensemble import SimEnsemble
from kframe_simulator.simulation.network import Network
from kframe_simulator.simulation.observations import (
    AlterPartitionCompleted,
    ChannelOpened,
    ControlledShutdownCompleted,
    EventCompleted,
    EventStarted,
    LogChanged,
    RequestCompleted,
    RequestQueued,
    RequestSent,
    RoleClaimed,
    StateWritten,
    StoreWritten,
    TopicWritten,
    WriteRefused,
)
from kframe_simulator.simulation.observed import partitions_of
from kframe_simulator.simulation.options import Options
from kframe_simulator.simulation.scheduler import Scheduler
from kframe_simulator.simulation.watch import Watch


class PlayedStep(NamedTuple):
    """A played action of the plan, its scenario step, or both."""

    at_ms: float
    action: Action | None
    step: Mapping[str, Any] | None


class Recorder:
    """The callbacks of a simulation, which its processes call."""

    ensemble: SimEnsemble
    watch: Watch
    brokers: dict[int, BrokerProcess]
    controllers: list[ControllerProcess]
    clients: Clients

    def __init__(self, options: Options) -> None:
        self.options = options
        self.scheduler = Scheduler()
        self.network = Network(self.scheduler, Random(f"network/{options.seed}"), options.delay_ms)
        self.session_timeout_ms = options.session_timeout_ms
        self.counts: Counter[str] = Counter()
        self.lines: dict[tuple[int, int, int], deque[ControlRequest]] = {}
        """Queued and sent requests, by (controller, incarnation, broker)."""
        self.played_steps: list[PlayedStep] = []
        """All played actions, and the scenario steps of those that have one."""
        self._trace = hashlib.blake2b(digest_size=16)
        self._encoder = Encoder(ControlVersions.of(InterBrokerProtocol.parse(options.protocol)))
        self._events: dict[int, EventCompleted] = {}
        """By controller id: the event in progress."""
        self._last_ended: tuple[Event | None, int] = (None, 0)
        self._failures: dict[int, tuple[int, int]] = {}
        self._errors = ErrorCatcher()
        self._logs: dict[tuple[int, TopicPartition], tuple[int, int, object]] = {}

    # -- Processes.

    def controller(self, controller_id: int) -> ControllerProcess | None:
        """A controller process. -1 selects the process that owns the role in storage."""
        process_id = self.ensemble.controller_id() if controller_id == -1 else controller_id
        number = process_id - FIRST_ID
        return self.controllers[number] if 0 <= number < len(self.controllers) else None

    def process_of(self, controller_id: int | None) -> ControllerProcess | None:
        """The process of a controller id. None for another client."""
        return None if controller_id is None else self.controllers[controller_id - FIRST_ID]

    def _event_of(self, controller_id: int) -> EventCompleted:
        """The current event of a controller. Effects between two events have no event."""
        if controller_id not in self._events:
            self._events[controller_id] = EventCompleted(self.controllers[controller_id - FIRST_ID], None)
        return self._events[controller_id]

    def record_step(self, kind: str, argument: Any) -> None:
        """Record a scenario step. Steps before the first controller belong to the initial state."""
        if self.counts["claims"]:
            self.played_steps.append(PlayedStep(self.scheduler.now_ms, None, {kind: argument}))

    # -- Writes.

    def state_written(
        self, key: TopicPartition, before: Row | None, after: Row, writer: int | None, cluster: ClusterState | None
    ) -> None:
        """A state was stored."""
        self._note(b"state", repr((key, after[1:7])).encode())
        process = self.process_of(writer)
        self.watch.last_writer[key] = process
        if process is None:
            for current in self._events.values():
                current.overwritten.add(key)
        else:
            current = self._event_of(process.controller_id)
            current.written.append(key)
            if before is None or before.partition_epoch == NO_STATE:
                current.created[key] = after.isr
            if before is not None and before.leader not in (-1, after.leader):
                current.deposed.append((key, before.leader))
        if before is not None and before.leader_epoch != after.leader_epoch:
            self.watch.rewritten.discard(key)
            if self.ensemble.readable([key[0]]):
                self.watch.unreadable.discard(key)
        self.counts["states"] += 1
        written = StateWritten(key, before, after, process, cluster)
        self.watch.record_history.state_written(written)
        self.watch.reassignments.state_written(written)
        self.watch.check(written)
        self.watch.observed.state_written(written)

    def topic_written(self, name: str, before: Mapping[int, Row], after: Mapping[int, Row], writer: int | None) -> None:
        """A topic was stored."""
        topic_id = self.ensemble.topic_ids.get(name, bytes(16))
        self._note(b"topic", repr((name, topic_id, [row[7:10] for row in after.values()])).encode())
        process = self.process_of(writer)
        if process is not None:
            self._event_of(process.controller_id).topics.setdefault(name, before)
        written = TopicWritten(name, before, after, topic_id, process)
        if process is not None and not before:
            lists = [list(after[number].replicas) for number in sorted(after)]
            self.record_step("create_topics", [{"name": name, "assignments": lists}])
        self.watch.check(written)
        self.watch.reassignments.topic_written(written)
        self.watch.observed.topic_stored(name, topic_id)
        if not after:
            self.watch.record_history.topic_deleted(name, before)
            self.watch.observed.topic_deleted([(name, partition) for partition in before])

    def changed_outside(self, change: str) -> None:
        """Another client, or the ensemble itself, has changed storage."""
        self.counts["writes"] += 1
        self._note(change.encode())

    def written(self, writer: int, request: StoreRequest[Any], reply: object) -> None:
        """A write of a controller was done."""
        process = self.controllers[writer - FIRST_ID]
        self.counts["writes"] += 1
        if isinstance(request, Claim):
            if isinstance(reply, int):
                self.record_step("elect", {})
                self.counts["claims"] += 1
                self.watch.reassignments.role_claimed(reply)
                self.watch.check(RoleClaimed(process, reply))
            return
        self._note(request.name.encode(), b"%d" % process.controller_id)
        self.watch.check(StoreWritten(process, request))

    def called(self, caller: int, request: StoreRequest[Any]) -> None:
        """A controller makes a request to the store."""
        current = self._event_of(caller)
        kind = type(request)
        current.requests[kind] += 1
        caller_process = self.controllers[caller - FIRST_ID]
        if kind is caller_process.stop_after_request:
            caller_process.stop_after = 0
        if kind is WriteReassignments and current.requests[kind] == 1:
            current.reassignments = self.ensemble.stored_reassignments()
        if kind is Load:
            process = self.process_of(caller)
            assert process is not None
            self.watch.observed.loaded(process)

    def refused(self, writer: int, key: TopicPartition) -> None:
        """A controller's write of a state was refused for its version."""
        process = self.process_of(writer)
        assert process is not None
        self.watch.check(WriteRefused(process, key))

    def elections_read(self, reader: int, partitions: Iterable[TopicPartition]) -> None:
        """A controller has read the partitions of an operator's preferred election."""
        self._event_of(reader).elections.update(partitions)

    def isr_changes_read(self, reader: int, partitions: Iterable[TopicPartition]) -> None:
        """A controller has read ISR change notifications."""
        self._event_of(reader).noticed.update(partitions)

    def noticed_now(self, process: ControllerProcess) -> set[TopicPartition]:
        """Partitions whose ISR change a controller's current event has read or written."""
        current = self._event_of(process.controller_id)
        return current.noticed.union(current.written)

    def topic_unread(self, reader: int, name: str) -> None:
        """A controller has read a topic whose record is unreadable."""
        self._event_of(reader).unread.add(name)

    def states_read(self, reader: int, cluster: ClusterState, rows: Int32, states: StoredStates) -> None:
        """A controller has read states."""
        process = self.process_of(reader)
        assert process is not None
        versions = dict(zip(partitions_of(cluster, rows), states.partition_epoch.tolist(), strict=True))
        stored, current = self.ensemble.rows, self._event_of(reader)
        current.read_behind -= versions.keys()
        current.read_behind |= {
            key for key, version in versions.items() if key in stored and version < stored[key].partition_epoch
        }
        self.watch.observed.states_read(process, versions)

    # -- Requests.

    def batch_sent(self, controller_id: int, cluster: ClusterState, requests: ControlRequests) -> None:
        """A batch is to be sent: encode it as for the wire."""
        for request in self._encoder.encode(cluster, requests):
            self._note(b"%d %d" % (request.broker, request.api_key), *request.chunks)

    def channel_opened(self, controller_id: int, broker_id: int, open_epoch: int | None) -> None:
        """A transport connects to a broker. ``open_epoch`` is the broker epoch of an open channel to the same
        broker."""
        process = self.controllers[controller_id - FIRST_ID]
        self.lines[controller_id, process.incarnation, broker_id] = deque()
        self.watch.observed.resumed()
        self.watch.check(ChannelOpened(process, broker_id, open_epoch))

    def request_queued(self, controller_id: int, control_request: ControlRequest) -> None:
        """A request was added to its broker's queue."""
        process = self.controllers[controller_id - FIRST_ID]
        self.lines.setdefault((controller_id, process.incarnation, control_request.broker_id), deque()).append(
            control_request
        )
        if isinstance(control_request.message, LeaderAndIsr):
            self._event_of(controller_id).leader_and_isr(control_request.broker_id, control_request.message)
        elif isinstance(control_request.message, UpdateMetadata):
            live_brokers = control_request.message.live_brokers
            self._event_of(controller_id).sent_live_brokers[control_request.broker_id] = live_brokers
        self.watch.check(RequestQueued(process, control_request))
        self.watch.observed.queued(process, control_request)

    def request_sent(self, controller_id: int, control_request: ControlRequest) -> None:
        """The channel sends a request."""
        self.counts["requests"] += 1
        self.watch.check(RequestSent(self.controllers[controller_id - FIRST_ID], control_request))

    def request_done(self, controller_id: int, control_request: ControlRequest) -> None:
        """A request got a response or was dropped."""
        process = self.controllers[controller_id - FIRST_ID]
        line = self.lines.get((controller_id, process.incarnation, control_request.broker_id))
        if line and line[0] is control_request:
            line.popleft()

    def deliver(
        self,
        controller_id: int,
        control_request: ControlRequest,
        respond: Callable[[ControlResponse], None],
        refuse: Callable[[], None],
    ) -> None:
        """A request arrives."""
        broker = self.brokers.get(control_request.broker_id)
        refuse() if broker is None else broker.receive(control_request, respond, refuse)

    # -- Controllers.

    def event_begins(self, process: ControllerProcess, event: Event) -> None:
        """The loop takes an event."""
        is_response = process.active and isinstance(event, (LeaderAndIsrResponseReceived, StopReplicaResponseReceived))
        knowledge = digest(process.loop.controller.cluster) if is_response else b""
        self._events[process.controller_id] = EventCompleted(
            process, event, self.watch.observed.registered(process), knowledge, failures_of(process)
        )
        self._errors.warnings.clear()
        self.watch.observed.event_begins(process, event)
        self.watch.check(EventStarted(process, event))

    def event_ended(self, process: ControllerProcess, event: Event) -> None:
        """The loop has completed an event."""
        self.counts["controller events"] += 1
        repeated_events = process.transport.repeated_events
        repeated = (
            bool(repeated_events) and repeated_events[0] is event and self._last_ended == (event, self.ensemble.changes)
        )
        if repeated:
            repeated_events.clear()
        self._last_ended = event, self.ensemble.changes
        ended = self._events.pop(process.controller_id)
        self.watch.observed.event_ended(process, event)
        registered = self.watch.observed.registered(process)
        ended.repeated, ended.warnings = repeated, tuple(self._errors.warnings)
        ended.failed = failures_of(process) > ended.failures
        ended.succeeded = not ended.failed and self.watch.observed.in_term(process)
        ended.columns = digest(process.loop.controller.cluster) if process.active else b""
        ended.complete(registered, self.ensemble.rows)
        self.watch.check(ended)
        if ended.succeeded and (registered != ended.registered or ended.requests.get(Load)):
            self.watch.reassignments.leaders_elected(event)

    def unexplained_failure(self, process: ControllerProcess) -> str | None:
        """The error of the last event. None if a fault of its process explains it, or the loss of its role."""
        failures, failed_calls_before = self._failures.get(id(process.loop), (0, 0))
        now = process.loop.controller.failures, process.store.failed_calls
        self._failures[id(process.loop)] = now
        error, self._errors.last = self._errors.last, None
        owns_role = self.ensemble.controller_id() == process.controller_id
        if now[0] > failures and now[1] == failed_calls_before and owns_role:
            return error or "no reason was logged"
        return None

    # -- Brokers.

    def on_shutdown_response(
        self, process: ControllerProcess, request: ControlledShutdown, response: ControlledShutdownResponseData
    ) -> None:
        """A controller has responded to a ControlledShutdown request."""
        self.watch.check(ControlledShutdownCompleted(process, request, response))
        self.watch.observed.on_shutdown_response(process, request, response)

    def on_proposal_response(
        self, process: ControllerProcess, event: AlterPartitionRequested, response: AlterPartitionResponse
    ) -> None:
        """A controller has responded to a leader's AlterPartition."""
        if response.error is ErrorCode.NONE:
            self.watch.record_history.refused_proposals.refused(event, response.codes, self.watch.ids_used)
        written = frozenset(self._event_of(process.controller_id).written)
        self.watch.check(AlterPartitionCompleted(process, event, response, written))

    def logs_touched(self, process: BrokerView, keys: Iterable[TopicPartition]) -> None:
        """Logs of a broker may have changed: check those that have."""
        known_logs, logs = self._logs, process.model.disks.logs
        for key in keys:
            log = logs.get(key)
            if log is None:
                continue
            position = len(log.records), log.high_watermark, log.epochs[-1] if log.epochs else None
            if known_logs.get((process.broker_id, key)) != position:
                known_logs[process.broker_id, key] = position
                self.watch.record_history.log_changed(key)
                self.watch.check(LogChanged(process, key, log))

    def log_dir_lost(self, process: BrokerView, keys: Iterable[TopicPartition]) -> None:
        """A log directory of a broker has failed, with these logs."""
        lost = tuple(keys)
        partitions = [f"{topic}-{number}" for topic, number in lost]
        self.record_step("log_dir_failure", {"broker": process.broker_id, "partitions": partitions})
        self.watch.record_history.logs_lost(process.broker_id, lost)

    def on_client_response(self, correlation: int, message: Message) -> None:
        """A broker sends a delayed response to a client."""
        self.clients.on_response(correlation, message)

    def ask(
        self,
        process: ControllerProcess,
        description: str,
        event: Callable[[int], Event],
        read: Callable[[Any], Any] = lambda response: response,
        whole: Callable[[Any], bool] = lambda response: True,
    ) -> None:
        """Send a client's request to a controller, and check that it gets one response."""
        responses = 0
        self.watch.open_requests += 1

        def on_response(response: Any) -> None:
            nonlocal responses
            responses += 1
            self.watch.open_requests -= responses == 1
            complete = response is None or whole(response)
            self.watch.check(RequestCompleted(description, responses, complete))

        process.ask(event, read, on_response)

    def _note(self, *parts: bytes | memoryview) -> None:
        for part in parts:
            self._trace.update(part)
