"""AlterPartition delivery, controlled shutdown and crashes."""

from __future__ import annotations

import pytest

from kframe.errors import ErrorCode, InputError
from kframe.model.events import TopicPartition
from kframe.model.protocol import InterBrokerProtocol
from kframe_simulator.broker.broker import Broker, BrokerState
from kframe_simulator.broker.config import BrokerConfig
from kframe_simulator.broker.messages import Fetch, FetchPartition, Produce
from kframe_simulator.broker.outgoing import (
    AlteredPartition,
    AlterPartition,
    AlterPartitionResponseData,
    ControlledShutdownResponseData,
    NotifyIsrChanges,
    Outgoing,
    Peer,
    WriteState,
    WriteStateResponse,
)
from verification.simulator.broker_requests import CONTROLLER_ID, TOPIC_ID, P, live, order, start_broker, state

Q: TopicPartition = ("t", 1)
OLD = BrokerConfig(protocol=InterBrokerProtocol.parse("2.7-IV1"))


def start_leader(config: BrokerConfig | None = None) -> Broker:
    """Broker 1 leads P and Q alone; broker 2 follows."""
    led = state(1, (1,), 5, 3, replicas=(1, 2), is_new=True)
    broker = start_broker(order(led, P), order(led, Q), config=config)
    broker.tick(0.0)
    return broker


def joins(broker: Broker, key: TopicPartition, now: float) -> list[Outgoing]:
    """Follower 2 fetches at the end. Returns the messages that the leader then sends."""
    broker.handle(Fetch(2, {key: FetchPartition(broker.disks.logs[key].end, 5)}), now)
    return broker.tick(now)


def accepted(out: Outgoing) -> AlterPartitionResponseData:
    assert isinstance(out.message, AlterPartition)
    return AlterPartitionResponseData(
        ErrorCode.NONE,
        {
            key: AlteredPartition(ErrorCode.NONE, 1, 5, item.isr, 0, item.partition_epoch + 1)
            for key, item in out.message.partitions.items()
        },
    )


# -- Proposals to the controller.


def test_alter_partition_request_fields() -> None:
    (out,) = joins(start_leader(), P, 1.0)
    assert (out.peer, out.peer_id) == (Peer.CONTROLLER, CONTROLLER_ID)
    assert isinstance(out.message, AlterPartition)
    assert (out.message.broker_id, out.message.broker_epoch) == (1, 50)
    proposed = out.message.partitions[P]
    assert (proposed.leader_epoch, proposed.partition_epoch, proposed.isr, proposed.recovery) == (5, 3, (1, 2), 0)
    assert proposed.topic_id == TOPIC_ID


def test_single_alter_partition_in_flight() -> None:
    leader = start_leader()
    (first,) = joins(leader, P, 1.0)
    assert joins(leader, Q, 2.0) == []
    leader.on_response(first.number, accepted(first), 3.0)
    (second,) = leader.tick(3.0)
    assert isinstance(second.message, AlterPartition)
    assert list(second.message.partitions) == [Q]


@pytest.mark.parametrize("error", [None, ErrorCode.NOT_CONTROLLER, ErrorCode.STALE_BROKER_EPOCH])
def test_failed_alter_partition_is_retried_after_50_ms(error: ErrorCode | None) -> None:
    leader = start_leader()
    (first,) = joins(leader, P, 1.0)
    leader.on_response(first.number, None if error is None else AlterPartitionResponseData(error), 10.0)
    assert leader.tick(59.0) == []
    assert leader.wakes_at == 60.0
    (repeated,) = leader.tick(60.0)
    assert repeated.message == first.message
    assert repeated.number != first.number


def test_partition_missing_in_response_is_sent_again() -> None:
    leader = start_leader()
    (first,) = joins(leader, P, 1.0)
    leader.on_response(first.number, AlterPartitionResponseData(ErrorCode.NONE), 2.0)
    (repeated,) = leader.tick(2.0)
    assert repeated.message == first.message


def test_second_proposal_waits_for_request_in_flight() -> None:
    """A new leader epoch dropped the first proposal, but the request with it is still in flight."""
    leader = start_leader()
    (first,) = joins(leader, P, 1.0)
    leader.handle(order(state(1, (1,), 6, 4, replicas=(1, 2))), 2.0)
    leader.handle(Fetch(2, {P: FetchPartition(0, 6)}), 2.0)
    assert leader.partitions[P].pending is None
    leader.on_response(first.number, accepted(first), 3.0)
    leader.handle(Fetch(2, {P: FetchPartition(0, 6)}), 4.0)
    assert [type(out.message) for out in leader.tick(4.0)] == [AlterPartition]


def test_alter_partition_waits_for_known_controller() -> None:
    leader = start_leader()
    leader.metadata.controller_id = -1
    assert joins(leader, P, 1.0) == []
    leader.handle(live(1, 2), 2.0)
    assert len(leader.tick(2.0)) == 1


# -- Proposals written to storage.


def stored(partition_epoch: int, isr: tuple[int, ...] = (1, 2), leader: int = 1) -> WriteState:
    return WriteState(P, leader, 5, isr, 1, 0, partition_epoch)


@pytest.mark.parametrize(
    "reply, isr, partition_epoch, pending",
    [
        (WriteStateResponse(True, stored(4)), (1, 2), 4, False),
        (WriteStateResponse(False, stored(6)), (1, 2), 6, False),
        (WriteStateResponse(False, stored(6, (1,))), (1,), 3, True),
        (WriteStateResponse(False, stored(6, leader=2)), (1,), 3, True),
        (WriteStateResponse(False, None), (1,), 3, True),
        (None, (1,), 3, True),
    ],
    ids=["written", "written before", "another ISR", "another leader", "deleted", "no response"],
)
def test_leader_writes_state_before_2_7(
    reply: WriteStateResponse | None, isr: tuple[int, ...], partition_epoch: int, pending: bool
) -> None:
    leader = start_leader(OLD)
    (out,) = joins(leader, P, 1.0)
    assert (out.peer, out.message) == (Peer.STORE, stored(3))
    leader.on_response(out.number, reply, 2.0)
    partition = leader.partitions[P]
    assert (partition.isr, partition.partition_epoch, partition.pending is not None) == (isr, partition_epoch, pending)
    assert [repeated.message for repeated in leader.tick(52.0)] == ([out.message] if reply is None else [])


def test_leader_notifies_of_written_isrs_after_quiet_period() -> None:
    """The broker checks every 2.5 s: five seconds after the last change, or a minute after the last notification."""
    leader = start_leader(OLD)
    (out,) = joins(leader, P, 1_000.0)
    leader.on_response(out.number, WriteStateResponse(True, stored(4)), 1_000.0)
    notifications = [
        (now, out.message.partitions)
        for now in range(1_500, 20_000, 500)
        for out in leader.tick(float(now))
        if isinstance(out.message, NotifyIsrChanges)
    ]
    assert notifications == [(7_500, (P,))]


# -- Controlled shutdown.


def shutdown_requests(broker: Broker, now: float) -> list[int]:
    return [out.number for out in broker.tick(now) if type(out.message).__name__ == "ControlledShutdown"]


def stopping() -> Broker:
    leader = start_leader()
    leader.shut_down(1_000.0)
    return leader


def test_broker_without_leaders_stops() -> None:
    broker = stopping()
    (number,) = shutdown_requests(broker, 1_000.0)
    states = [broker.state]
    broker.on_response(number, ControlledShutdownResponseData(ErrorCode.NONE), 2_000.0)
    states.append(broker.state)
    assert states == [BrokerState.SHUTTING_DOWN, BrokerState.DOWN]
    assert [type(out.message).__name__ for out in broker.tick(2_000.0)] == ["CloseSession"]


@pytest.mark.parametrize(
    "reply",
    [
        None,
        ControlledShutdownResponseData(ErrorCode.STALE_BROKER_EPOCH),
        ControlledShutdownResponseData(ErrorCode.NONE, (P,)),
    ],
    ids=["no response", "an error", "still leads"],
)
def test_broker_stops_after_three_refused_shutdown_requests(reply: ControlledShutdownResponseData | None) -> None:
    broker, times = stopping(), []
    for now in range(1_000, 30_000, 500):
        for number in shutdown_requests(broker, float(now)):
            times.append(now)
            broker.on_response(number, reply, float(now))
    assert times == [1_000, 6_000, 11_000]
    assert broker.state is BrokerState.DOWN


def test_broker_stops_without_request_if_controller_is_unknown() -> None:
    broker = Broker(1)
    broker.start(50, 0.0)
    broker.shut_down(0.0)
    sent = [type(out.message).__name__ for now in range(0, 12_000, 500) for out in broker.tick(float(now))]
    assert sent == ["CloseSession"]


# -- Crashes.


def test_log_and_checkpoint_survive_crash() -> None:
    leader = start_leader()
    for number in range(5):
        leader.handle(Produce(P, number, 1), 1.0)
    leader.tick(5_000.0)
    leader.handle(Produce(P, 5, 1), 5_001.0)
    leader.crash(6_000.0)
    assert (leader.handle(live(1), 6_000.0), leader.tick(7_000.0), leader.wakes_at) == (None, [], float("inf"))
    leader.start(60, 8_000.0)
    log = leader.disks.logs[P]
    assert (leader.partitions, leader.replicas.controller_epoch, log.end, log.high_watermark) == ({}, 0, 6, 5)


def test_response_to_an_earlier_process_is_ignored() -> None:
    leader = start_leader()
    (first,) = joins(leader, P, 1.0)
    leader.crash(2.0)
    leader.start(60, 2.0)
    leader.handle(live(1, 2), 2.0)
    leader.handle(order(state(1, (1,), 6, 4, replicas=(1, 2))), 2.0)
    leader.handle(Fetch(2, {P: FetchPartition(0, 6)}), 2.0)
    assert [type(out.message) for out in leader.tick(2.0)] == [AlterPartition]
    altered = AlteredPartition(ErrorCode.NONE, 1, 6, (1, 2), 0, 5)
    leader.on_response(first.number, AlterPartitionResponseData(ErrorCode.NONE, {P: altered}), 3.0)
    assert leader.partitions[P].isr == (1,)


def test_reregistered_broker_sends_new_broker_epoch() -> None:
    leader = start_leader()
    leader.reregister(70)
    assert leader.partitions[P].is_leader
    (out,) = joins(leader, P, 1.0)
    assert isinstance(out.message, AlterPartition)
    assert out.message.broker_epoch == 70


@pytest.mark.parametrize(
    "act",
    [
        lambda broker: broker.start(60, 1.0),
        lambda broker: broker.replace_log_dir("data"),
        lambda broker: broker.fail_log_dir("nowhere", 1.0),
        lambda broker: (broker.crash(1.0), broker.shut_down(1.0)),
    ],
    ids=["start twice", "replace a disk that is in use", "unknown directory", "shut down twice"],
)
def test_invalid_calls_are_refused(act: object) -> None:
    with pytest.raises(InputError, match="broker 1"):
        act(start_leader())  # type: ignore[operator]
