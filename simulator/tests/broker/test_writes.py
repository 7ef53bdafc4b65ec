"""Producers: acks, idempotence, transactions, and what waits for watermarks (``spec/broker-partition.md`` 7)."""

from __future__ import annotations

import pytest

from kframe.errors import ErrorCode
from kframe_simulator.broker.broker import Broker
from kframe_simulator.broker.config import BrokerConfig
from kframe_simulator.broker.messages import (
    DeleteRecords,
    DeleteRecordsResponse,
    EndTransaction,
    Fetch,
    FetchPartition,
    Produce,
    ProduceResponse,
)
from kframe_simulator.broker.outgoing import Peer
from kframe_simulator.testing.broker_cluster import P, live, order, produce, state, stop

NONE = ErrorCode.NONE


def leader(isr: tuple[int, ...] = (1, 2), min_insync: int = 1, config: BrokerConfig | None = None) -> Broker:
    """Broker 1 leads P, replicas 1 and 2, at leader epoch 5."""
    one = Broker(1, config=config)
    one.configure_topic("t", min_insync)
    one.start(50, 0.0)
    one.handle(live(1, 2), 0.0)
    one.handle(order(state(1, isr, 5, 0, replicas=(1, 2), is_new=True)), 0.0)
    return one


def write(one: Broker, request: Produce, now: float = 0.0) -> tuple[ErrorCode, int] | None:
    response = one.handle(request, now)
    assert response is None or isinstance(response, ProduceResponse)
    return None if response is None else (response.error, response.offset)


def late(one: Broker, now: float) -> list[tuple[int, ErrorCode]]:
    """What producers are answered now that waited."""
    return [
        (out.peer_id, out.message.error)
        for out in one.tick(now)
        if out.peer is Peer.CLIENT and isinstance(out.message, ProduceResponse)
    ]


def catch_up(one: Broker, offset: int, now: float = 0.0, start: int = 0, leader_epoch: int = 5) -> None:
    one.handle(Fetch(2, {P: FetchPartition(offset, start, leader_epoch)}), now)


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
    one = leader(isr, min_insync)
    assert write(one, produce("x", acks)) == expected
    log = one.partitions[P].log
    assert log is not None
    assert log.end == (0 if expected is not None and expected[0] is not NONE else 1)


@pytest.mark.parametrize("acks", [1, -1])
def test_only_leaders_take_records(acks: int) -> None:
    one = leader()
    one.handle(order(state(2, (2,), 6, 1, replicas=(1, 2))), 0.0)
    assert write(one, produce("x", acks)) == (ErrorCode.NOT_LEADER_OR_FOLLOWER, -1)
    assert write(one, Produce(("u", 0), "x", acks)) == (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, -1)


def test_all_replicas_have_it_before_it_is_acknowledged() -> None:
    one = leader()
    write(one, produce("x", correlation=7))
    catch_up(one, 0)
    assert late(one, 1.0) == []
    catch_up(one, 1)
    assert late(one, 2.0) == [(7, NONE)]
    assert late(one, 40_000.0) == []


def test_acknowledged_to_too_few() -> None:
    """The ISR shrank after the record was written, under 3.6's rule that the high watermark goes on."""
    one = leader(min_insync=2, config=BrokerConfig(high_watermark_waits_for_min_isr=False))
    write(one, produce("x", correlation=7))
    one.handle(order(state(1, (1,), 6, 1, replicas=(1, 2))), 0.0)
    assert late(one, 1.0) == [(7, ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND)]


@pytest.mark.parametrize(
    "befalls, error",
    [
        (lambda one: one.handle(order(state(2, (2,), 6, 1, replicas=(1, 2))), 1.0), ErrorCode.NOT_LEADER_OR_FOLLOWER),
        (lambda one: one.handle(stop(5, True), 1.0), ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        (lambda one: one.fail_log(P, 1.0), ErrorCode.KAFKA_STORAGE_ERROR),
        (lambda one: one.tick(30_000.0) and None, None),
    ],
    ids=["deposed", "deleted", "disk", "nothing"],
)
def test_what_ends_the_wait(befalls: object, error: ErrorCode | None) -> None:
    one = leader()
    write(one, produce("x", correlation=7, timeout_ms=40_000))
    befalls(one)  # type: ignore[operator]
    assert late(one, 30_000.0) == ([] if error is None else [(7, error)])
    assert late(one, 40_000.0) == ([(7, ErrorCode.REQUEST_TIMED_OUT)] if error is None else [])


# -- idempotence


def of(sequence: int, producer_epoch: int = 0, producer_id: int = 9, transactional: bool = False) -> Produce:
    return produce(
        f"{producer_epoch}/{sequence}", 1, producer_id=producer_id, producer_epoch=producer_epoch, sequence=sequence,
        transactional=transactional,
    )  # fmt: skip


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
def test_an_idempotent_producer_after_sequences_0_to_6(
    request_: Produce, expected: tuple[ErrorCode, int], moved: bool
) -> None:
    """The last five are recognised; also by a leader that has the records as a follower, or cut its log."""
    one = leader((1,))
    for sequence in range(7):
        assert write(one, of(sequence)) == (NONE, sequence)
    if moved:
        write(one, of(7))
        one.disks.logs[P].truncate(7)
    assert write(one, request_) == expected


def test_sequences_begin_again_after_the_largest() -> None:
    one = leader((1,))
    assert write(one, of(2**31 - 1)) == (NONE, 0)
    assert write(one, of(0)) == (NONE, 1)


# -- transactions


def test_the_last_stable_offset_stays_before_what_is_undecided() -> None:
    one = leader()
    partition = one.partitions[P]

    def lag() -> int:
        return partition.gauges()["LastStableOffsetLag"]

    write(one, produce("before", 1))
    write(one, of(0, transactional=True))
    write(one, of(1, transactional=True))
    catch_up(one, 3)
    assert lag() == 2
    one.handle(EndTransaction(P, 9, 0, committed=True), 0.0)
    assert lag() == 2
    catch_up(one, 4)
    assert lag() == 0
    write(one, produce("after", 1))
    catch_up(one, 5)
    assert lag() == 0


def test_an_old_coordinator_ends_nothing() -> None:
    one = leader((1,))
    write(one, of(0, producer_epoch=3, transactional=True))
    response = one.handle(EndTransaction(P, 9, 2, committed=False), 0.0)
    assert isinstance(response, ProduceResponse)
    assert response.error is ErrorCode.INVALID_PRODUCER_EPOCH


# -- deleting records


def delete(one: Broker, offset: int) -> tuple[ErrorCode, int] | None:
    response = one.handle(DeleteRecords(P, offset, correlation=3), 0.0)
    assert response is None or isinstance(response, DeleteRecordsResponse)
    return None if response is None else (response.error, response.low_watermark)


@pytest.mark.parametrize(
    "offset, expected", [(2, None), (-1, None), (5, (ErrorCode.OFFSET_OUT_OF_RANGE, -1)), (0, (NONE, 0))]
)
def test_records_are_deleted_up_to_the_high_watermark(offset: int, expected: tuple[ErrorCode, int] | None) -> None:
    one = leader()
    for number in range(5):
        write(one, produce(number, 1))
    catch_up(one, 4)
    assert delete(one, offset) == expected


def test_deletion_waits_until_followers_have_deleted() -> None:
    one = leader()
    for number in range(5):
        write(one, produce(number, 1))
    catch_up(one, 5)
    assert delete(one, 3) is None
    catch_up(one, 5, start=2)
    assert not [out for out in one.tick(1.0) if out.peer is Peer.CLIENT]
    catch_up(one, 5, start=3)
    assert [out.message for out in one.tick(2.0) if out.peer is Peer.CLIENT] == [DeleteRecordsResponse(NONE, 3)]
