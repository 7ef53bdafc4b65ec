"""Produce requests. They concern acks, idempotence, transactions and delayed responses."""

from __future__ import annotations

import pytest

from kframe.errors import ErrorCode
from kframe_simulator.broker.broker import Broker
from kframe_simulator.broker.config import BrokerConfig
from kframe_simulator.broker.messages import EndTransaction, Fetch, FetchPartition, Produce, ProduceResponse
from kframe_simulator.broker.outgoing import Peer
from verification.simulator.broker_requests import P, order, produce, start_broker, state, stop

NONE = ErrorCode.NONE


def start_leader(isr: tuple[int, ...] = (1, 2), min_insync: int = 1, config: BrokerConfig | None = None) -> Broker:
    """Broker 1 leads P, replicas 1 and 2, at leader epoch 5."""
    broker = start_broker(order(state(1, isr, 5, 0, replicas=(1, 2), is_new=True)), config=config)
    broker.configure_topic("t", min_insync)
    return broker


def write(broker: Broker, request: Produce, now: float = 0.0) -> tuple[ErrorCode, int] | None:
    response = broker.handle(request, now)
    assert response is None or isinstance(response, ProduceResponse)
    return None if response is None else (response.error, response.offset)


def late(broker: Broker, now: float) -> list[tuple[int, ErrorCode]]:
    """The delayed responses to producers that the broker sends now."""
    return [
        (out.peer_id, out.message.error)
        for out in broker.tick(now)
        if out.peer is Peer.CLIENT and isinstance(out.message, ProduceResponse)
    ]


def catch_up(broker: Broker, offset: int) -> None:
    broker.handle(Fetch(2, {P: FetchPartition(offset, 5)}), 0.0)


@pytest.mark.parametrize(
    "isr, min_insync, acks, expected",
    [
        ((1, 2), 1, 1, (NONE, 0)),
        ((1, 2), 1, 0, None),
        ((1, 2), 1, -1, None),
        ((1,), 1, -1, (NONE, 0)),
        ((1,), 2, -1, (ErrorCode.NOT_ENOUGH_REPLICAS, -1)),
        ((1,), 2, 1, (NONE, 0)),
        ((1,), 2, 0, None),
        ((1,), 3, -1, (ErrorCode.NOT_ENOUGH_REPLICAS, -1)),
        ((1, 2), 3, -1, None),
        ((1, 2), 1, 2, (ErrorCode.INVALID_REQUIRED_ACKS, -1)),
    ],
)
def test_acks(isr: tuple[int, ...], min_insync: int, acks: int, expected: tuple[ErrorCode, int] | None) -> None:
    leader = start_leader(isr, min_insync)
    assert write(leader, produce("x", acks)) == expected
    log = leader.partitions[P].log
    assert log is not None
    assert log.end == (0 if expected is not None and expected[0] is not NONE else 1)


@pytest.mark.parametrize("acks", [1, -1])
def test_produce_to_follower_is_refused(acks: int) -> None:
    leader = start_leader()
    leader.handle(order(state(2, (2,), 6, 1, replicas=(1, 2))), 0.0)
    assert write(leader, produce("x", acks)) == (ErrorCode.NOT_LEADER_OR_FOLLOWER, -1)
    assert write(leader, Produce(("u", 0), "x", acks)) == (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, -1)


def test_acks_all_waits_for_all_isr_members() -> None:
    leader = start_leader()
    write(leader, produce("x", correlation=7))
    catch_up(leader, 0)
    assert late(leader, 1.0) == []
    catch_up(leader, 1)
    assert late(leader, 2.0) == [(7, NONE)]
    assert late(leader, 40_000.0) == []


def test_isr_shrink_after_append_returns_not_enough_replicas() -> None:
    """The ISR shrank after the write. Before 3.7 the high watermark still advances."""
    leader = start_leader(min_insync=2, config=BrokerConfig(high_watermark_waits_for_min_isr=False))
    write(leader, produce("x", correlation=7))
    leader.handle(order(state(1, (1,), 6, 1, replicas=(1, 2))), 0.0)
    assert late(leader, 1.0) == [(7, ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND)]


@pytest.mark.parametrize(
    "interrupt, error",
    [
        (
            lambda broker: broker.handle(order(state(2, (2,), 6, 1, replicas=(1, 2))), 1.0),
            ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ),
        (lambda broker: broker.handle(stop(5, True), 1.0), ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        (lambda broker: broker.fail_log(P, 1.0), ErrorCode.KAFKA_STORAGE_ERROR),
        (lambda broker: broker.tick(30_000.0) and None, None),
    ],
    ids=["deposed", "deleted", "disk", "nothing"],
)
def test_delayed_produce_ends(interrupt: object, error: ErrorCode | None) -> None:
    leader = start_leader()
    write(leader, produce("x", correlation=7, timeout_ms=40_000))
    interrupt(leader)  # type: ignore[operator]
    assert late(leader, 30_000.0) == ([] if error is None else [(7, error)])
    assert late(leader, 40_000.0) == ([(7, ErrorCode.REQUEST_TIMED_OUT)] if error is None else [])


# -- Idempotence.


def of(sequence: int, producer_epoch: int = 0, producer_id: int = 9, transactional: bool = False) -> Produce:
    return produce(
        f"{producer_epoch}/{sequence}",
        1,
        producer_id=producer_id,
        producer_epoch=producer_epoch,
        sequence=sequence,
        transactional=transactional,
    )


@pytest.mark.parametrize(
    "request_, expected",
    [
        (of(7), (NONE, 7)),
        (of(6), (NONE, 6)),
        (of(2), (NONE, 2)),
        (of(1), (ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER, -1)),
        (of(8), (ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER, -1)),
        (of(0, producer_epoch=1), (NONE, 7)),
        (of(1, producer_epoch=1), (ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER, -1)),
        (of(2, producer_epoch=1), (ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER, -1)),
        (of(7, producer_epoch=-1), (ErrorCode.INVALID_PRODUCER_EPOCH, -1)),
        (of(40, producer_id=10), (NONE, 7)),
    ],
)
@pytest.mark.parametrize("moved", [False, True])
def test_idempotent_producer_sequences(request_: Produce, expected: tuple[ErrorCode, int], moved: bool) -> None:
    """A broker recognizes the last five records, even if it got them as a follower or truncated its log."""
    leader = start_leader((1,))
    for sequence in range(7):
        assert write(leader, of(sequence)) == (NONE, sequence)
    if moved:
        write(leader, of(7))
        leader.disks.logs[P].truncate(7)
    assert write(leader, request_) == expected


def test_sequence_wraps_after_maximum() -> None:
    leader = start_leader((1,))
    assert write(leader, of(2**31 - 1)) == (NONE, 0)
    assert write(leader, of(0)) == (NONE, 1)


# -- Transactions.


def test_last_stable_offset_precedes_open_transaction() -> None:
    leader = start_leader()
    log = leader.disks.logs[P]

    def lag() -> int:
        return log.high_watermark - log.last_stable_offset()

    write(leader, produce("before", 1))
    write(leader, of(0, transactional=True))
    write(leader, of(1, transactional=True))
    catch_up(leader, 3)
    assert lag() == 2
    leader.handle(EndTransaction(P, 9, 0, committed=True), 0.0)
    assert lag() == 2
    catch_up(leader, 4)
    assert lag() == 0
    write(leader, produce("after", 1))
    catch_up(leader, 5)
    assert lag() == 0


def test_transaction_marker_of_older_epoch_is_refused() -> None:
    leader = start_leader((1,))
    write(leader, of(0, producer_epoch=3, transactional=True))
    response = leader.handle(EndTransaction(P, 9, 2, committed=False), 0.0)
    assert isinstance(response, ProduceResponse)
    assert response.error is ErrorCode.INVALID_PRODUCER_EPOCH
