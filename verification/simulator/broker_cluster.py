"""Broker models on a reliable network, with a controller that accepts every ISR."""

from __future__ import annotations

from collections.abc import Iterable

from kframe.errors import ErrorCode
from kframe.model.events import TopicPartition
from kframe_simulator.broker.broker import Broker
from kframe_simulator.broker.config import BrokerConfig
from kframe_simulator.broker.messages import (
    ControlResponse,
    LeaderAndIsr,
    LeaderState,
    PartitionMetadata,
    Produce,
    ProduceResponse,
    Request,
    Response,
    Stop,
    StopReplica,
    UpdateMetadata,
)
from kframe_simulator.broker.outgoing import (
    AlteredPartition,
    AlterPartition,
    AlterPartitionResponseData,
    ControlledShutdown,
    Message,
    Outgoing,
    Peer,
    Reply,
)

P: TopicPartition = ("t", 0)
TOPIC_ID = bytes(range(16))
CONTROLLER_ID = 1000


def response_error(broker: Broker, request: Request, now: float = 0.0) -> ErrorCode:
    """The error of a control response: the top-level one, or the one of its only partition."""
    response = broker.handle(request, now)
    assert isinstance(response, ControlResponse)
    return next(iter(response.errors.values()), response.error)


def live(*brokers: int, controller_epoch: int = 1, broker_epoch: int = -1) -> UpdateMetadata:
    """UpdateMetadata with live brokers only."""
    return UpdateMetadata(CONTROLLER_ID, controller_epoch, broker_epoch, brokers)


def order(
    state: LeaderState, key: TopicPartition = P, topic_id: bytes | None = TOPIC_ID, controller_epoch: int = 1,
    broker_epoch: int = -1,
) -> LeaderAndIsr:  # fmt: skip
    """LeaderAndIsr for one partition."""
    ids = {} if topic_id is None else {key[0]: topic_id}
    return LeaderAndIsr(CONTROLLER_ID, controller_epoch, broker_epoch, {key: state}, ids)


def state(leader: int, isr: Iterable[int], leader_epoch: int = 1, partition_epoch: int = 0,
          replicas: tuple[int, ...] = (1, 2, 3), **others: object) -> LeaderState:  # fmt: skip
    """A partition's state, of controller epoch 1."""
    return LeaderState(1, leader, leader_epoch, tuple(isr), partition_epoch, replicas, **others)  # type: ignore[arg-type]


def stop(leader_epoch: int, delete: bool, key: TopicPartition = P, **others: int) -> StopReplica:
    """StopReplica for one partition."""
    head = {"controller_id": CONTROLLER_ID, "controller_epoch": 1, "broker_epoch": -1} | others
    return StopReplica(**head, partitions={key: Stop(leader_epoch, delete)})


def produce(value: object, acks: int = -1, correlation: int = 0, **others: object) -> Produce:
    """A record for partition P."""
    return Produce(P, value, acks, correlation=correlation, **others)  # type: ignore[arg-type]


class BrokerCluster:
    """Brokers by id, and a controller that stores one state per partition."""

    def __init__(self, ids: Iterable[int] = (1, 2, 3), config: BrokerConfig | None = None) -> None:
        self.config = config or BrokerConfig()
        self.brokers = {broker_id: Broker(broker_id, config=self.config) for broker_id in ids}
        self.now = 0.0
        self.states: dict[TopicPartition, LeaderState] = {}
        self.acked: dict[int, ProduceResponse] = {}
        """Delayed responses to producers, by correlation."""
        self.unreachable: set[int] = set()
        self.proposed: list[AlterPartition] = []
        self.refusal = ErrorCode.NONE
        """The error code for all later proposals."""
        self.undelivered: list[tuple[Broker, Outgoing]] | None = None
        """If not None, messages to controller and store are appended here and get no response."""
        self.sent: list[tuple[int, Message]] = []
        """The messages to the store, with their senders."""
        for broker in self.brokers.values():
            broker.start(10 + broker.broker_id, self.now)

    def __getitem__(self, broker_id: int) -> Broker:
        return self.brokers[broker_id]

    def request(self, broker_id: int, request: Request) -> Response | None:
        """Send one request, and deliver all messages that follow from it."""
        response = self.brokers[broker_id].handle(request, self.now)
        self.deliver()
        return response

    def lead(self, leader: int, isr: Iterable[int], key: TopicPartition = P, *, only: Iterable[int] | None = None,
             replicas: tuple[int, ...] | None = None, **others: object) -> None:  # fmt: skip
        """Begin a leader epoch, and notify all live brokers, or only those in ``only``."""
        before = self.states.get(key)
        leader_epoch = before.leader_epoch + 1 if before else 1
        partition_epoch = before.partition_epoch + 1 if before else 0
        assignment = replicas or (before.replicas if before else tuple(self.brokers))
        now = self.states[key] = state(leader, isr, leader_epoch, partition_epoch, assignment, **others)
        live = tuple(item for item, broker in self.brokers.items() if broker.running)
        metadata = PartitionMetadata(leader, leader_epoch, now.isr, partition_epoch, assignment)
        for broker_id in live if only is None else only:
            self.brokers[broker_id].handle(UpdateMetadata(CONTROLLER_ID, 1, -1, live, {key: metadata}), self.now)
            self.brokers[broker_id].handle(order(now, key), self.now)
        self.deliver()

    def produce(self, value: object, leader: int = 1, **others: object) -> ProduceResponse | None:
        """Send a record for P to this broker."""
        request = produce(value, **others)  # type: ignore[arg-type]
        response = self.request(leader, request)
        assert response is None or isinstance(response, ProduceResponse)
        return response or self.acked.get(request.correlation)

    def advance(self, ms: float) -> None:
        """Advance the clock, and perform everything that falls due at its time."""
        until = self.now + ms
        while (due := min(broker.wakes_at for broker in self.brokers.values())) <= until:
            self.now = max(self.now, due)
            self.deliver()
        self.now = until

    def deliver(self) -> None:
        """Deliver messages until there are none left at this time."""
        busy = True
        while busy:
            busy = False
            for broker in self.brokers.values():
                for out in broker.tick(self.now):
                    busy = True
                    self._deliver(broker, out)

    def _deliver(self, sender: Broker, out: Outgoing) -> None:
        if out.peer is Peer.CLIENT:
            if isinstance(out.message, ProduceResponse):
                self.acked[out.peer_id] = out.message
        elif out.peer is Peer.BROKER:
            cut = {sender.broker_id, out.peer_id} & self.unreachable
            reply = None if cut else self.brokers[out.peer_id].handle(out.message, self.now)  # type: ignore[arg-type]
            sender.on_response(out.number, reply, self.now)  # type: ignore[arg-type]
        elif self.undelivered is not None:
            self.undelivered.append((sender, out))
        elif isinstance(out.message, AlterPartition):
            sender.on_response(out.number, self.decide(out.message), self.now)
        else:
            assert not isinstance(out.message, ControlledShutdown)
            self.sent.append((sender.broker_id, out.message))

    def decide(self, message: AlterPartition) -> Reply:
        """Accept a proposal of the current leader epoch for the stored state. Refuse others as Kafka does."""
        self.proposed.append(message)
        responses = {}
        for key, asked in message.partitions.items():
            now, error = self.states[key], self.refusal
            if error is ErrorCode.NONE and asked.leader_epoch != now.leader_epoch:
                error = ErrorCode.FENCED_LEADER_EPOCH
            if error is ErrorCode.NONE and asked.partition_epoch != now.partition_epoch:
                error = ErrorCode.INVALID_UPDATE_VERSION
            if error is ErrorCode.NONE:
                now = self.states[key] = state(
                    now.leader, asked.isr, now.leader_epoch, now.partition_epoch + 1, now.replicas
                )
            responses[key] = AlteredPartition(error, now.leader, now.leader_epoch, now.isr, 0, now.partition_epoch)
        return AlterPartitionResponseData(ErrorCode.NONE, responses)
