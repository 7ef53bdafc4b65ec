"""Requests to single broker models, and the exchange between two of them."""

from __future__ import annotations

from collections.abc import Iterable

from kframe.errors import ErrorCode
from kframe.model.events import TopicPartition
from kframe_simulator.broker.broker import Broker
from kframe_simulator.broker.config import BrokerConfig
from kframe_simulator.broker.log import Log
from kframe_simulator.broker.messages import (
    ControlResponse,
    LeaderAndIsr,
    LeaderState,
    Produce,
    Request,
    Stop,
    StopReplica,
    UpdateMetadata,
)
from kframe_simulator.broker.outgoing import Peer

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
    state: LeaderState,
    key: TopicPartition = P,
    topic_id: bytes | None = TOPIC_ID,
    controller_epoch: int = 1,
    broker_epoch: int = -1,
) -> LeaderAndIsr:
    """LeaderAndIsr for one partition."""
    ids = {} if topic_id is None else {key[0]: topic_id}
    return LeaderAndIsr(CONTROLLER_ID, controller_epoch, broker_epoch, {key: state}, ids)


def state(
    leader: int,
    isr: Iterable[int],
    leader_epoch: int = 1,
    partition_epoch: int = 0,
    replicas: tuple[int, ...] = (1, 2, 3),
    **others: object,
) -> LeaderState:
    """A partition's state, of controller epoch 1."""
    return LeaderState(1, leader, leader_epoch, tuple(isr), partition_epoch, replicas, **others)  # type: ignore[arg-type]


def stop(leader_epoch: int, delete: bool, key: TopicPartition = P, **others: int) -> StopReplica:
    """StopReplica for one partition."""
    head = {"controller_id": CONTROLLER_ID, "controller_epoch": 1, "broker_epoch": -1} | others
    return StopReplica(**head, partitions={key: Stop(leader_epoch, delete)})


def produce(value: object, acks: int = -1, correlation: int = 0, **others: object) -> Produce:
    """A record for partition P."""
    return Produce(P, value, acks, correlation=correlation, **others)  # type: ignore[arg-type]


def start_broker(
    *requests: Request, broker_id: int = 1, config: BrokerConfig | None = None, log: Log | None = None
) -> Broker:
    """A broker of broker epoch 50 with this log of P, after these requests. It knows the live brokers 1, 2 and 3."""
    broker = Broker(broker_id, config)
    if log is not None:
        broker.disks.logs[P] = log
    broker.start(50, 0.0)
    for request in (live(1, 2, 3), *requests):
        assert broker.handle(request, 0.0) is not None
    return broker


def exchange(leader: Broker, follower: Broker, now: float, rounds: int = 50) -> None:
    """Deliver the requests of a follower to its leader, and the responses, from ``now`` on. Messages need no time."""
    for _ in range(rounds):
        for out in follower.tick(now):
            if out.peer is Peer.BROKER:
                follower.on_response(out.number, leader.handle(out.message, now), now)  # type: ignore[arg-type]
        now = max(now, follower.wakes_at)
