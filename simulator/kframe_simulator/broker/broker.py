"""One broker: its requests, its responses and its lifecycle (Kafka 3.9 ``KafkaApis``, ``KafkaServer``)."""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum

from kframe.errors import ErrorCode, InputError
from kframe.model.events import TopicPartition
from kframe_simulator.broker.config import BrokerConfig
from kframe_simulator.broker.disks import Disks
from kframe_simulator.broker.messages import (
    UNDEFINED,
    EndTransaction,
    Fetch,
    LeaderAndIsr,
    Metadata,
    OffsetsForLeaderEpoch,
    Produce,
    Request,
    Response,
    StopReplica,
    UpdateMetadata,
)
from kframe_simulator.broker.node import NEVER, MetadataCache, Node
from kframe_simulator.broker.outgoing import (
    CloseSession,
    ControlledShutdown,
    ControlledShutdownResponseData,
    Outgoing,
    Peer,
    Reply,
)
from kframe_simulator.broker.partition import Partition
from kframe_simulator.broker.replicas import Replicas
from kframe_simulator.broker.serving import Serving


class BrokerState(Enum):
    """Whether a broker runs."""

    DOWN = "down"
    RUNNING = "running"
    SHUTTING_DOWN = "shutting down"


class Broker:
    """One broker. It does nothing alone: the simulation calls it and delivers the messages that it sends.

    It models logs, replication, high watermarks, ISR proposals, producers, disks, and the epochs by which a broker
    refuses requests. It models no bytes and no connections.

    ::

        broker = Broker(1)
        broker.start(broker_epoch, now)
        response = broker.handle(request, now)     # LeaderAndIsr, Fetch, Produce...; None: later or never.
        for out in broker.tick(now):               # After every call, and at broker.wakes_at.
            ...                                    # Deliver out.message to out.peer, then pass the reply on.
        broker.on_response(out.number, reply, now)  # None: no reply came, or the connection broke.

    Logs and high watermark checkpoints survive ``crash``; all other state is lost. All times are milliseconds of the
    simulated clock, which never goes back.
    """

    def __init__(self, broker_id: int, config: BrokerConfig | None = None) -> None:
        """A stopped broker with empty disks."""
        self.broker_id = broker_id
        self.config = config or BrokerConfig()
        self.state = BrokerState.DOWN
        self.wakes_at = NEVER
        """When ``tick`` is due next, unless another call comes first."""
        self.disks = Disks(self.config.log_dirs)
        self._min_insync: dict[str, int] = {}
        self._begin(UNDEFINED, 0.0, first_number=1)

    def _begin(self, broker_epoch: int, now: float, first_number: int) -> None:
        """Start a new process with empty memory."""
        self._node = Node(self.broker_id, self.config, self.disks, first_number)
        self._node.broker_epoch, self._node.min_insync = broker_epoch, self._min_insync
        self.replicas = Replicas(self._node, now)
        self._serving = Serving(self.replicas)
        self._shrinks_at = now
        self._checkpoints_at = now + self.config.checkpoint_interval_ms
        self._retries_at = NEVER
        self._attempts_left = 0

    # -- Observable state.

    @property
    def broker_epoch(self) -> int:
        """The broker epoch of the current registration, -1 before the first."""
        return self._node.broker_epoch

    @property
    def partitions(self) -> Mapping[TopicPartition, Partition]:
        """Hosted partitions whose log can be read."""
        return self.replicas.partitions

    @property
    def metadata(self) -> MetadataCache:
        """The metadata that UpdateMetadata requests have delivered."""
        return self._node.cache

    @property
    def running(self) -> bool:
        """Whether the process runs."""
        return self.state is not BrokerState.DOWN

    # -- Faults.

    def start(self, broker_epoch: int, now: float) -> None:
        """Start the process, registered under ``broker_epoch``, with the logs of all log directories that have not
        failed. Raises InputError if it runs already."""
        self._require(BrokerState.DOWN)
        self._begin(broker_epoch, now, self._node.next_number)
        self.disks.reload()
        self.state, self.wakes_at = BrokerState.RUNNING, now

    def reregister(self, broker_epoch: int) -> None:
        """Register again after the ZooKeeper session expired. The broker keeps its memory."""
        self._node.broker_epoch = broker_epoch

    def crash(self, now: float) -> None:
        """End the process as kill -9 does."""
        self.state, self.wakes_at = BrokerState.DOWN, NEVER
        self._begin(self.broker_epoch, now, self._node.next_number)

    def shut_down(self, now: float) -> None:
        """Begin a controlled shutdown. The broker is down when it sends CloseSession. Raises InputError unless it
        runs."""
        self._require(BrokerState.RUNNING)
        self.state = BrokerState.SHUTTING_DOWN
        self.replicas.shutting_down = True
        self._attempts_left, self._retries_at = self.config.controlled_shutdown_max_retries, now
        self.wakes_at = now

    def configure_topic(self, topic: str, min_insync_replicas: int | None) -> None:
        """Set min.insync.replicas of a topic; None restores the broker's own value."""
        self._min_insync.pop(topic, None)
        if min_insync_replicas is not None:
            self._min_insync[topic] = min_insync_replicas

    def fail_log_dir(self, log_dir: str, now: float) -> None:
        """Fail a log directory until ``replace_log_dir``. The broker halts when its last one fails. Raises InputError
        for an unknown directory."""
        self._known(log_dir)
        if not self.running:
            self.disks.fail(log_dir)
        elif self.disks.alive[log_dir] and not self.replicas.fail_log_dir(log_dir, now):
            self.crash(now)
            self._node.send(Peer.STORE, 0, CloseSession(self.broker_id, in_order=False))

    def fail_log(self, key: TopicPartition, now: float) -> None:
        """Fail the part of a log directory that holds this partition's log. The log cannot be read any more, and the
        broker notifies no other process."""
        self.replicas.fail_log(key, now)

    def replace_log_dir(self, log_dir: str) -> None:
        """Replace a log directory by an empty disk. Raises InputError if the broker runs, or does not have the
        directory."""
        self._require(BrokerState.DOWN)
        self._known(log_dir)
        self.disks.replace(log_dir)

    # -- Requests.

    def handle(self, request: Request, now: float) -> Response | None:
        """The response to a request; None if it comes later as an Outgoing, or never. A stopped broker responds
        to nothing."""
        if self.state is BrokerState.DOWN:
            return None
        self.wakes_at = now
        match request:
            case Fetch():
                return self._serving.fetch(request, now)
            case Produce():
                return self._serving.produce(request, now)
            case LeaderAndIsr():
                return self.replicas.leader_and_isr(request, now)
            case UpdateMetadata():
                return self.replicas.update_metadata(request, now)
            case StopReplica():
                return self.replicas.stop_replicas(request, now)
            case OffsetsForLeaderEpoch():
                return self._serving.epochs(request)
            case EndTransaction():
                return self._serving.end_transaction(request, now)
            case Metadata():
                return self._serving.metadata(request)

    def on_response(self, number: int, reply: Reply | None, now: float) -> None:
        """Take the reply to the Outgoing with this number; None if no reply will come. A number that is not waiting is
        ignored: the reply came twice, or the broker has restarted since."""
        on_reply = self._node.waiting.pop(number, None)
        if on_reply is not None:
            self.wakes_at = now
            on_reply(reply, now)

    def tick(self, now: float) -> list[Outgoing]:
        """Do what is due. Returns all messages to send since the last call."""
        node = self._node
        if self.state is not BrokerState.DOWN and now >= self.wakes_at:
            self._timers(now)
            self.wakes_at = min(
                self.replicas.proposals.poll(now),
                self.replicas.fetcher.poll(now),
                self._serving.poll(now),
                self._shrinks_at,
                self._checkpoints_at,
                self._retries_at,
            )
        outgoing, node.outbox = node.outbox, []
        return outgoing

    def _timers(self, now: float) -> None:
        if now >= self._shrinks_at:
            self._shrinks_at = now + self.config.replica_lag_time_max_ms / 2
            for partition in self.replicas.partitions.values():
                partition.shrink(now)
        if now >= self._checkpoints_at:
            self._checkpoints_at = now + self.config.checkpoint_interval_ms
            self.disks.checkpoint()
        if now >= self._retries_at:
            self._retries_at = NEVER
            self._attempts_left -= 1
            self._ask_to_stop(now)

    def _ask_to_stop(self, now: float) -> None:
        """Send one controlled shutdown request. The attempt fails if the broker does not know the controller."""
        controller_id = self._node.cache.controller_id
        if controller_id == UNDEFINED:
            self._on_shutdown_response(None, now)
        else:
            message = ControlledShutdown(self.broker_id, self.broker_epoch)
            self._node.ask(Peer.CONTROLLER, controller_id, message, self._on_shutdown_response)

    def _on_shutdown_response(self, reply: Reply | None, now: float) -> None:
        """Stop when the broker leads nothing any more, or after the last attempt."""
        done = (
            isinstance(reply, ControlledShutdownResponseData) and reply.error is ErrorCode.NONE and not reply.remaining
        )
        if done or self._attempts_left <= 0:
            self._stop(now)
        else:
            self._retries_at = now + self.config.controlled_shutdown_retry_backoff_ms

    def _stop(self, now: float) -> None:
        """Stop cleanly. Write high watermark checkpoints and close the session."""
        self.disks.checkpoint()
        self.crash(now)
        self._node.send(Peer.STORE, 0, CloseSession(self.broker_id))

    def _require(self, state: BrokerState) -> None:
        if self.state is not state:
            raise InputError(f"broker {self.broker_id}", f"it {self.state.value}", f"a broker that is {state.value}")

    def _known(self, log_dir: str) -> None:
        if log_dir not in self.disks.alive:
            raise InputError(
                f"broker {self.broker_id}", f"log directory {log_dir!r}", f"one of {list(self.disks.alive)}"
            )
