"""A broker of a KRaft cluster: registration, heartbeats, the metadata log, and the model of its replicas."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any, Final
from uuid import UUID

from kframe_kraft.quorum import FetchAnswer

from kframe.errors import ErrorCode
from kframe.model.events import TopicPartition
from kframe.plugin.kraft import records
from kframe.plugin.kraft_controller import broker_events, directory_assignments, isr_proposals, registration
from kframe_simulator.broker import Broker, BrokerConfig, BrokerState
from kframe_simulator.broker.messages import CONSUMER, Fetch, ProduceResponse
from kframe_simulator.broker.outgoing import (
    AlteredPartition,
    AlterPartition,
    AlterPartitionResponseData,
    NotifyLogDirFailure,
    Outgoing,
    Peer,
)
from kframe_simulator.simulation.scheduler import Scheduler
from verification.kraft.simulation.expected.brokers import compare_registration
from verification.kraft.simulation.expected.heartbeats import CORDONED_LEVEL, DIRECTORIES_LEVEL
from verification.kraft.simulation.expected.partitions import compare_assignments, compare_isr_results
from verification.kraft.simulation.image import PartitionKey
from verification.kraft.simulation.metadata import MetadataReplica
from verification.kraft.simulation.options import CLUSTER_ID, CONTROLLER, Options
from verification.kraft.simulation.partitions import Publisher
from verification.kraft.simulation.processes import Process, Requests, Respond
from verification.kraft.simulation.requests import (
    BrokerRequest,
    ControllerRequest,
    FetchResponse,
    SnapshotRequest,
    SnapshotResponse,
)

HEARTBEAT_MS: Final = 2_000.0
_RETRY_MS: Final = 200.0
_FEATURES: Final = {
    "eligible.leader.replicas.version": (0, 1),
    "group.version": (0, 1),
    "kraft.version": (0, 1),
    "metadata.version": (7, 33),
    "share.version": (0, 2),
    "streams.version": (0, 1),
    "transaction.version": (0, 2),
}
#: Errors after which a leader waits for the metadata.
_AWAIT: Final = (ErrorCode.NEW_LEADER_ELECTED,)


class BrokerMachine:
    """A machine: disks, and the copy of the metadata log. One process runs at a time."""

    def __init__(self, broker_id: int, options: Options) -> None:
        names = tuple(f"d{number}" for number in range(options.directories))
        self.model = Broker(
            broker_id, BrokerConfig(log_dirs=names, replica_lag_time_max_ms=options.lag_ms, checkpoint_interval_ms=2000)
        )
        self.directories = {name: UUID(int=1000 * broker_id + 100 + number) for number, name in enumerate(names)}
        self.rack = options.racks[(broker_id - 1) % len(options.racks)]
        self.cordoned: tuple[UUID, ...] = ()
        """The log directories that get no new replicas."""
        self.metadata = MetadataReplica(broker_id)
        self.clean_epoch = -1
        """The broker epoch of the last process if that stopped cleanly."""


class BrokerProcess(Process):
    """From its start on it reads the metadata log, registers, and sends heartbeats."""

    def __init__(
        self,
        machine: BrokerMachine,
        incarnation_id: UUID,
        requests: Requests,
        options: Options,
        report: Callable[[str], None],
        on_produced: Callable[[int, ProduceResponse], None],
        scheduler: Scheduler,
    ) -> None:
        """``report`` gets what is wrong, ``on_produced`` the late responses to producers by their correlation."""
        super().__init__(machine.model.broker_id, scheduler)
        self.machine = machine
        self.metadata = machine.metadata
        self.metadata.restart()
        self.broker_epoch = -1
        self.is_ready = self.is_stopping = False
        self.incarnation_id = incarnation_id
        self._requests = requests
        self._dynamic = options.is_dynamic
        self._report = report
        self._on_produced = on_produced
        self._offline: set[UUID] = set()
        self._is_assigning = False
        #: Directories of replicas that the controller does not know yet.
        self._assignments: dict[PartitionKey, UUID] = {}
        self._previous_epoch, machine.clean_epoch = machine.clean_epoch, -1
        #: The broker epochs with which followers have fetched, as a leader proposes them.
        self._follower_epochs: dict[tuple[TopicPartition, int], int] = {}
        self._publisher = Publisher(machine.model, machine.directories, scheduler)
        self._heartbeats = 0
        requests.serve(self)
        self._fetch_metadata()
        self._register()

    # -- Life.

    def registration_request(self) -> registration.BrokerRegistrationRequest:
        """The registration of this process."""
        machine = self.machine
        alive = [machine.directories[name] for name, is_alive in machine.model.disks.alive.items() if is_alive]
        return registration.BrokerRegistrationRequest(
            self.node_id,
            CLUSTER_ID,
            self.incarnation_id,
            (records.BrokerEndpoint(name="PLAINTEXT", host="localhost", port=9092, security_protocol=0),),
            tuple(
                records.BrokerFeature(name=name, min_supported_version=low, max_supported_version=high)
                for name, (low, high) in _FEATURES.items()
            ),
            machine.rack,
            tuple(alive),
            self._previous_epoch,
        )

    def _register(self) -> None:
        request = self.registration_request()
        kraft_version = (1,) if self._dynamic else ()
        expected = replace(request, detects_clean_shutdown=True)  # As every broker of this release does.
        rule = ControllerRequest(
            lambda context, end: registration.register_broker(context, request, end, *kraft_version),
            partial(compare_registration, expected, int(self._dynamic)),
        )
        self._requests.ask(self, CONTROLLER, rule, self._on_registered)

    def _on_registered(self, response: Any) -> None:
        if not isinstance(response, int):
            self.after(_RETRY_MS, self._register)
            return
        self.broker_epoch = response
        self.machine.model.start(response, self.scheduler.now_ms)
        self._publish()
        self._heartbeat()

    @property
    def _names_cordoned(self) -> bool:
        """A broker names its cordoned directories once it has published metadata of a level that stores them."""
        return self.is_ready and self.metadata.image.features.get("metadata.version", 0) >= CORDONED_LEVEL

    def _heartbeat(self) -> None:
        self._heartbeats += 1
        heartbeat = broker_events.BrokerHeartbeat(
            self.node_id,
            self.broker_epoch,
            self.metadata.applied - 1,
            not self.is_ready,
            self.is_stopping,
            tuple(self._offline),
            self.machine.cordoned if self._names_cordoned else None,
        )
        self._requests.ask(self, CONTROLLER, heartbeat, partial(self._on_heartbeat, self._heartbeats))

    def _on_heartbeat(self, number: int, reply: Any) -> None:
        is_reply = isinstance(reply, broker_events.BrokerHeartbeatReply)
        if is_reply and reply.should_shut_down and self.is_stopping:
            self._stop_cleanly()
            return
        delay = HEARTBEAT_MS if is_reply else _RETRY_MS
        if is_reply and reply.is_caught_up and not self.is_ready:
            self.is_ready, delay = True, 0
            self._publish()
        if self.is_stopping:
            delay = min(delay, 500.0)
        if number == self._heartbeats:
            self.after(delay, lambda: self._beat_after(number))

    def _beat_after(self, number: int) -> None:
        """Send the next heartbeat, unless another was sent meanwhile."""
        if number == self._heartbeats:
            self._heartbeat()

    def stop(self) -> None:
        """Begin a controlled shutdown."""
        self.is_stopping = True
        self.machine.model.replicas.shutting_down = True
        if self.broker_epoch < 0:
            self.kill()
        else:
            self._heartbeat()

    def _stop_cleanly(self) -> None:
        self.machine.model.disks.checkpoint()
        self.machine.clean_epoch = self.broker_epoch
        self.kill()

    def kill(self) -> None:
        """End the process as kill -9 does."""
        self.end()
        if self.machine.model.running:
            self.machine.model.crash(self.scheduler.now_ms)
            self.machine.model.tick(self.scheduler.now_ms)

    def fail_directory(self, name: str) -> None:
        """Fail a log directory."""
        self.machine.model.fail_log_dir(name, self.scheduler.now_ms)
        if self.machine.model.state is BrokerState.DOWN:
            self.kill()
        else:
            self._pump()

    # -- Metadata.

    def _fetch_metadata(self) -> None:
        self._requests.ask(self, CONTROLLER, self.metadata.request(), self._on_metadata)

    def _on_metadata(self, response: Any) -> None:
        if not isinstance(response, FetchResponse):
            self.after(_RETRY_MS, self._fetch_metadata)
            return
        if response.epoch < self.metadata.epoch:
            self._report(f"K1: the controller has epoch {response.epoch}, this broker saw {self.metadata.epoch}")
        answer, is_new_epoch = response.answer, response.epoch > self.metadata.epoch
        self.metadata.epoch = response.epoch
        if answer.error is not ErrorCode.NONE:
            self.after(0 if is_new_epoch else _RETRY_MS, self._fetch_metadata)
        elif answer.snapshot_id is not None:
            request = SnapshotRequest(answer.snapshot_id)
            self._requests.ask(self, CONTROLLER, request, partial(self._on_snapshot, request))
        else:
            self._take(answer)
            self._fetch_metadata()

    def _take(self, answer: FetchAnswer) -> None:
        if answer.diverged is not None:
            problem = self.metadata.truncate(answer.diverged.offset)
        else:
            problem = self.metadata.append(answer)
        if problem is not None:
            self._report(f"K6: {problem}")
        self._publish()

    def _on_snapshot(self, request: SnapshotRequest, response: Any) -> None:
        if isinstance(response, SnapshotResponse):
            self.metadata.load(request.snapshot_id, response.content)
            self._publish()
        self._fetch_metadata()

    def _publish(self) -> None:
        """Let the replicas follow the metadata, once the broker has a broker epoch and the metadata of that time."""
        if self.machine.model.running and (self.is_ready or self.metadata.applied > self.broker_epoch):
            self._publisher.publish(self.metadata.image)
            self._assign_directories()
            self._pump()

    def _assign_directories(self) -> None:
        """Tell the controller where replicas are that it has elsewhere, one request at a time.

        What was to be told is told even if the directory has failed meanwhile: only so the controller knows of the
        failure (Kafka 4.4 ``AssignmentsManager``).
        """
        image = self.metadata.image
        self._assignments.update(self._publisher.misplaced(image))
        if self._is_assigning or image.features.get("metadata.version", 0) < DIRECTORIES_LEVEL:
            return
        sent = {key: each for key, each in self._assignments.items() if image.has_replica(key, self.node_id)}
        self._assignments.clear()
        if sent:
            self._is_assigning = True
            assignments = [
                directory_assignments.DirectoryAssignment(directory, *key) for key, directory in sent.items()
            ]
            node = self.node_id, self.broker_epoch
            rule = ControllerRequest(
                lambda context, end: directory_assignments.assign_directories(context, *node, assignments),
                partial(compare_assignments, node, assignments),
            )
            self._requests.ask(self, CONTROLLER, rule, partial(self._on_assigned, sent))

    def _on_assigned(self, sent: dict[PartitionKey, UUID], response: Any) -> None:
        def finish() -> None:
            self._is_assigning = False
            self._assign_directories()

        results = response if isinstance(response, list) else ()
        stored = [(each.assignment.topic_id, each.assignment.partition) for each in results if not each.error]
        for key in sent.keys() - stored:
            self._assignments.setdefault(key, sent[key])
        self.after(500.0, finish)

    # -- Replicas.

    def handle(self, request: Any, source_id: int, respond: Respond) -> None:
        """See ``Process.handle``."""
        message = request.message
        if isinstance(message, Fetch) and message.replica_id != CONSUMER:
            for key in message.partitions:
                self._follower_epochs[key, message.replica_id] = request.broker_epoch
        response = self.machine.model.handle(message, self.scheduler.now_ms)
        if response is not None:
            respond(response)
        self._pump()

    def _pump(self) -> None:
        """Deliver what the replicas have to send, and wake when they have something to do."""
        model, now = self.machine.model, self.scheduler.now_ms
        for outgoing in model.tick(now):
            self._send(outgoing)
        if model.wakes_at < self._wakes_at or self._wakes_at <= now:
            self._wakes_at = model.wakes_at
            if model.running and model.wakes_at != float("inf"):
                self.after(max(model.wakes_at - now, 0.01), self._pump)

    _wakes_at = -1.0

    def _send(self, outgoing: Outgoing) -> None:
        message, number = outgoing.message, outgoing.number
        match outgoing.peer:
            case Peer.BROKER:
                request = BrokerRequest(message, self.broker_epoch)  # type: ignore[arg-type]
                self._requests.ask(self, outgoing.peer_id, request, partial(self._on_reply, number))
            case Peer.CONTROLLER if isinstance(message, AlterPartition):
                self._propose(number, message)
            case Peer.CLIENT:
                assert isinstance(message, ProduceResponse)
                self._on_produced(outgoing.peer_id, message)
            case Peer.STORE if isinstance(message, NotifyLogDirFailure):
                alive = self.machine.model.disks.alive
                self._offline = {self.machine.directories[name] for name, is_alive in alive.items() if not is_alive}
                self._heartbeat()

    def _on_reply(self, number: int, reply: Any) -> None:
        self.machine.model.on_response(number, reply, self.scheduler.now_ms)
        self._pump()

    def _propose(self, number: int, message: AlterPartition) -> None:
        image = self.metadata.image
        known = {broker_id: broker.broker_epoch for broker_id, broker in image.brokers.items()}
        proposals = [
            isr_proposals.KraftIsrProposal(
                UUID(bytes=item.topic_id),
                key[1],
                tuple(
                    (member, self._follower_epochs.get((key, member), known.get(member, -1)))
                    if member != self.node_id
                    else (member, self.broker_epoch)
                    for member in item.isr
                ),
                item.leader_epoch,
                item.partition_epoch,
            )
            for key, item in message.partitions.items()
        ]
        node = self.node_id, self.broker_epoch
        rule = ControllerRequest(
            lambda context, end: isr_proposals.alter_partitions(context, *node, proposals),
            partial(compare_isr_results, node, proposals),
        )
        keys = list(message.partitions)
        self._requests.ask(self, CONTROLLER, rule, partial(self._on_decided, number, keys))

    def _on_decided(self, number: int, keys: list[TopicPartition], response: Any) -> None:
        reply = None
        if isinstance(response, list):
            reply = AlterPartitionResponseData(
                ErrorCode.NONE, {key: _altered(result) for key, result in zip(keys, response, strict=True)}
            )
        self._on_reply(number, reply)


def _altered(result: isr_proposals.IsrResult) -> AlteredPartition:
    error = ErrorCode.FENCED_LEADER_EPOCH if result.error in _AWAIT else result.error
    return AlteredPartition(
        error, result.leader, result.leader_epoch, result.isr, result.recovery, result.partition_epoch
    )
