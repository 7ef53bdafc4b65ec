"""One broker: its requests, its responses and its lifecycle (Kafka 3.9 ``KafkaApis``, ``KafkaServer``)."""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from typing import Final

from kframe.errors import ErrorCode, InputError
from kframe.model.events import TopicPartition
from kframe_simulator.broker.cache import MetadataCache
from kframe_simulator.broker.config import BrokerConfig
from kframe_simulator.broker.disks import Disks
from kframe_simulator.broker.messages import (
    UNDEFINED,
    AlterReplicaLogDirs,
    DeleteRecords,
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
from kframe_simulator.broker.node import Node
from kframe_simulator.broker.outgoing import (
    CloseSession,
    ControlledShutdown,
    ControlledShutdownResponse,
    Outgoing,
    Peer,
    Reply,
)
from kframe_simulator.broker.partition import Partition
from kframe_simulator.broker.replicas import Replicas
from kframe_simulator.broker.serving import Serving

NEVER: Final = float("inf")
#: The model's own: how often copies to other log directories go on.
COPY_EVERY_MS: Final = 100.0


class BrokerState(Enum):
    """Whether a broker runs."""

    DOWN = "down"
    RUNNING = "running"
    SHUTTING_DOWN = "shutting down"


class Broker:
    """One broker. The simulation calls it and carries what it sends; it does nothing alone.

    ::

        broker = Broker(1)
        broker.start(broker_epoch, now)
        response = broker.handle(request, now)     # LeaderAndIsr, Fetch, Produce...; None: later or never
        for out in broker.tick(now):               # after every call, and at broker.wakes_at
            ...                                    # carry out.message to out.peer; bring its answer back:
        broker.answered(out.number, reply, now)    # reply None: no answer came, or the connection broke

    What a broker has stored (logs, checkpoints of high watermarks) outlasts ``crash``; everything else does not. All
    times are milliseconds of the simulation's clock and never go back.
    """

    def __init__(self, broker_id: int, rack: str | None = None, config: BrokerConfig | None = None) -> None:
        """A broker that is down, with empty disks."""
        self.broker_id = broker_id
        self.rack = rack
        self.config = config or BrokerConfig()
        self.state = BrokerState.DOWN
        self.wakes_at = NEVER
        """When ``tick`` is due next, if nothing else happens first."""
        self.disks = Disks(self.config.log_dirs)
        self._min_insync: dict[str, int] = {}
        self._begin(UNDEFINED, 0.0, first_number=1)

    def _begin(self, broker_epoch: int, now: float, first_number: int) -> None:
        """A new life, with nothing in memory."""
        self._node = Node(self.broker_id, self.config, self.disks, first_number)
        self._node.broker_epoch, self._node.min_insync = broker_epoch, self._min_insync
        self.replicas = Replicas(self._node, now)
        self._serving = Serving(self.replicas)
        self._shrinks_at = now
        self._checkpoints_at = now + self.config.checkpoint_interval_ms
        self._copies_at = self._asks_at = NEVER
        self._attempts_left = 0

    # -- what can be checked

    @property
    def broker_epoch(self) -> int:
        """Of its present registration, -1 before the first."""
        return self._node.broker_epoch

    @property
    def controller_epoch(self) -> int:
        """The highest that it has been shown since it started."""
        return self.replicas.controller_epoch

    @property
    def partitions(self) -> Mapping[TopicPartition, Partition]:
        """Those that it hosts and can read."""
        return self.replicas.partitions

    @property
    def offline(self) -> frozenset[TopicPartition]:
        """Those that it hosts in dead log directories."""
        return frozenset(self.replicas.offline)

    @property
    def metadata(self) -> MetadataCache:
        """What it was notified of the cluster."""
        return self._node.cache

    @property
    def running(self) -> bool:
        """Whether it answers."""
        return self.state is not BrokerState.DOWN

    def gauges(self) -> Mapping[str, int]:
        """What ``kafka.server:type=ReplicaManager`` shows, by Kafka's names; meters are shown as what they have counted
        since the start. Those of a partition: ``partitions[key].gauges()``."""
        return self.replicas.gauges()

    # -- its faults

    def start(self, broker_epoch: int, now: float) -> None:
        """Come up, registered under ``broker_epoch``, with the logs of all directories that are not dead. Raises
        InputError if it runs."""
        self._require(BrokerState.DOWN)
        self._begin(broker_epoch, now, self._node.next_number)
        self.disks.reload()
        self.state, self.wakes_at = BrokerState.RUNNING, now

    def reregister(self, broker_epoch: int) -> None:
        """The session with storage expired, and the broker registered anew; it goes on with all that it knows."""
        self._node.broker_epoch = broker_epoch

    def crash(self, now: float, lost: Mapping[TopicPartition, int] | None = None) -> None:
        """End as by kill -9. ``lost`` says how many records at a log's end were not on disk (power failure)."""
        for key, count in (lost or {}).items():
            log = self.disks.logs.get(key)
            if log is not None:
                log.truncate(max(log.start, log.end - count))
        self._end(now)

    def shut_down(self, now: float) -> None:
        """Begin a controlled shutdown; the broker is down when it sends CloseSession. Raises InputError unless it
        runs."""
        self._require(BrokerState.RUNNING)
        self.state = BrokerState.SHUTTING_DOWN
        self.replicas.shutting_down = True
        self._attempts_left, self._asks_at = self.config.controlled_shutdown_max_retries, now
        self.wakes_at = now

    def configure_topic(self, topic: str, min_insync_replicas: int | None) -> None:
        """A topic's min.insync.replicas; None: the broker's own."""
        self._min_insync.pop(topic, None)
        if min_insync_replicas is not None:
            self._min_insync[topic] = min_insync_replicas

    def fail_log_dir(self, log_dir: str, now: float) -> None:
        """A log directory dies; with the last one the broker halts. It stays dead until ``replace_log_dir``. Raises
        InputError for a directory that it has not."""
        self._known(log_dir)
        if not self.running:
            self.disks.fail(log_dir)
        elif self.disks.alive[log_dir] and not self.replicas.fail_log_dir(log_dir, now):
            self._end(now)
            self._node.tell(Peer.STORE, 0, CloseSession(self.broker_id, in_order=False))

    def fail_log(self, key: TopicPartition, now: float) -> None:
        """A part of a log directory dies, with this partition's log in it; nobody is told. It can be read no longer."""
        self.replicas.fail_log(key, now)

    def replace_log_dir(self, log_dir: str) -> None:
        """Put an empty disk where a log directory was. Raises InputError if the broker runs, or has no such one."""
        self._require(BrokerState.DOWN)
        self._known(log_dir)
        self.disks.replace(log_dir)

    # -- what it is asked

    def handle(self, request: Request, now: float) -> Response | None:
        """The answer to a request; None if it comes later as an Outgoing, or never. A broker that is down answers
        nothing."""
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
            case DeleteRecords():
                return self._serving.delete_records(request, now)
            case Metadata():
                return self._serving.metadata(request)
            case AlterReplicaLogDirs():
                self._copies_at = now
                return self.replicas.alter_log_dirs(request)

    def answered(self, number: int, reply: Reply | None, now: float) -> None:
        """What came back for the Outgoing of this number; None: nothing will. A number that nobody waits for (an
        answer that came twice, or to a broker that has been down since) is passed over."""
        on_reply = self._node.waiting.pop(number, None)
        if on_reply is not None:
            self.wakes_at = now
            on_reply(reply, now)

    def tick(self, now: float) -> list[Outgoing]:
        """Do what is due, and hand over all that is to be sent since the last call."""
        node = self._node
        if self.state is not BrokerState.DOWN and now >= self.wakes_at:
            self._timers(now)
            self.wakes_at = min(
                self.replicas.proposals.poll(now), self.replicas.fetcher.poll(now), self._serving.poll(now),
                self._shrinks_at, self._checkpoints_at, self._copies_at, self._asks_at,
            )  # fmt: skip
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
        if now >= self._copies_at:
            copying = self.disks.copy(self.config.fetch_records_max)
            self._copies_at = now + COPY_EVERY_MS if copying else NEVER
        if now >= self._asks_at:
            self._asks_at = NEVER
            self._attempts_left -= 1
            self._ask_to_stop(now)

    def _ask_to_stop(self, now: float) -> None:
        """One attempt, which fails if nobody has told who the controller is."""
        controller_id = self._node.cache.controller_id
        if controller_id == UNDEFINED:
            self._shutdown_answered(None, now)
        else:
            message = ControlledShutdown(self.broker_id, self.broker_epoch)
            self._node.ask(Peer.CONTROLLER, controller_id, message, self._shutdown_answered)

    def _shutdown_answered(self, reply: Reply | None, now: float) -> None:
        """Stop when nothing is led any more, or after the last attempt."""
        done = isinstance(reply, ControlledShutdownResponse) and reply.error is ErrorCode.NONE and not reply.remaining
        if done or self._attempts_left <= 0:
            self._stop(now)
        else:
            self._asks_at = now + self.config.controlled_shutdown_retry_backoff_ms

    def _stop(self, now: float) -> None:
        """Go down in order: high watermarks are written down, the registration goes."""
        self.disks.checkpoint()
        self._end(now)
        self._node.tell(Peer.STORE, 0, CloseSession(self.broker_id))

    def _end(self, now: float) -> None:
        self.state, self.wakes_at = BrokerState.DOWN, NEVER
        self._begin(self.broker_epoch, now, self._node.next_number)

    def _require(self, state: BrokerState) -> None:
        if self.state is not state:
            raise InputError(f"broker {self.broker_id}", f"it {self.state.value}", f"a broker that is {state.value}")

    def _known(self, log_dir: str) -> None:
        if log_dir not in self.disks.alive:
            raise InputError(
                f"broker {self.broker_id}", f"log directory {log_dir!r}", f"one of {list(self.disks.alive)}"
            )
