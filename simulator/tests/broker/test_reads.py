"""Fetch responses and follower truncation."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from kframe.errors import ErrorCode
from kframe.model.protocol import InterBrokerProtocol
from kframe_simulator.broker.broker import Broker
from kframe_simulator.broker.config import BrokerConfig
from kframe_simulator.broker.log import Log
from kframe_simulator.broker.messages import (
    CONSUMER,
    EndTransaction,
    EpochEnd,
    Fetch,
    Fetched,
    FetchPartition,
    FetchResponse,
    Metadata,
    MetadataResponse,
    OffsetForLeaderPartition,
    OffsetsForLeaderEpoch,
    OffsetsForLeaderEpochResponse,
    PartitionMetadata,
    Produce,
    Record,
    UpdateMetadata,
)
from verification.simulator.broker_requests import (
    CONTROLLER_ID,
    TOPIC_ID,
    P,
    exchange,
    order,
    start_broker,
    state,
)

FENCED, UNKNOWN, NOT_LEADER = (
    ErrorCode.FENCED_LEADER_EPOCH,
    ErrorCode.UNKNOWN_LEADER_EPOCH,
    ErrorCode.NOT_LEADER_OR_FOLLOWER,
)


def start_leader() -> Broker:
    """Broker 1 with epochs 3 (records 0 to 3) and 5 (4 to 9). Follower 2 has all records, follower 3 none."""
    broker = start_broker()
    for leader_epoch, records in ((3, 4), (5, 6)):
        broker.handle(order(state(1, (1, 2), leader_epoch, leader_epoch, is_new=True)), 0.0)
        for number in range(records):
            broker.handle(Produce(P, number, 1), 0.0)
    broker.handle(Fetch(2, {P: FetchPartition(10, 5)}), 0.0)
    return broker


def read(broker: Broker, partition: FetchPartition, replica_id: int = 3) -> Fetched:
    response = broker.handle(Fetch(replica_id, {P: partition}), 1.0)
    assert isinstance(response, FetchResponse)
    return response.partitions[P]


@pytest.mark.parametrize(
    "partition, replica_id, error, records",
    [
        (FetchPartition(0, 5), 3, ErrorCode.NONE, 10),
        (FetchPartition(7, 5), 3, ErrorCode.NONE, 3),
        (FetchPartition(10, 5), 3, ErrorCode.NONE, 0),
        (FetchPartition(0, 4), 3, FENCED, 0),
        (FetchPartition(0, 6), 3, UNKNOWN, 0),
        (FetchPartition(0), 3, ErrorCode.NONE, 10),
        (FetchPartition(11, 5), 3, ErrorCode.OFFSET_OUT_OF_RANGE, 0),
        (FetchPartition(0, 5), 4, UNKNOWN, 0),
        (FetchPartition(0), 4, NOT_LEADER, 0),
        (FetchPartition(0, 5, topic_id=bytes([7] * 16)), 3, ErrorCode.INCONSISTENT_TOPIC_ID, 0),
        (FetchPartition(0, 5, topic_id=TOPIC_ID), 3, ErrorCode.NONE, 10),
        (FetchPartition(0), CONSUMER, ErrorCode.NONE, 10),
    ],
)
def test_fetch(partition: FetchPartition, replica_id: int, error: ErrorCode, records: int) -> None:
    fetched = read(start_leader(), partition, replica_id)
    assert (fetched.error, len(fetched.records)) == (error, records)


@pytest.mark.parametrize(
    "offset, last_epoch, diverging",
    [
        (10, 5, None),
        (12, 5, EpochEnd(5, 10)),
        (8, 4, EpochEnd(3, 4)),
        (4, 3, None),
        (6, 3, EpochEnd(3, 4)),
        (0, -1, None),
    ],
)
def test_fetch_returns_diverging_epoch(offset: int, last_epoch: int, diverging: EpochEnd | None) -> None:
    leader = start_leader()
    fetched = read(leader, FetchPartition(offset, 5, last_epoch))
    assert (fetched.error, fetched.diverging) == (ErrorCode.NONE, diverging)
    assert (leader.partitions[P].replicas[3].end == -1) == (diverging is not None)


def test_fetch_with_unknown_last_epoch_is_out_of_range() -> None:
    fetched = read(start_leader(), FetchPartition(3, 5, 6))
    assert (fetched.error, fetched.log_end_offset) == (ErrorCode.OFFSET_OUT_OF_RANGE, 10)


def test_consumers_read_up_to_the_high_watermark() -> None:
    leader = start_leader()
    leader.handle(Produce(P, "not replicated yet", 1), 1.0)
    assert len(read(leader, FetchPartition(0), CONSUMER).records) == 10


def unhosted(known: bool, failed: bool) -> Broker:
    leader = start_leader() if failed else Broker(1)
    if failed:
        leader.fail_log(P, 1.0)
    else:
        leader.start(50, 0.0)
    if known:
        leader.handle(UpdateMetadata(CONTROLLER_ID, 1, -1, (2,), {P: PartitionMetadata(2, 1, (2,), 0, (2,))}), 0.0)
    return leader


@pytest.mark.parametrize(
    "known, failed, error",
    [
        (False, False, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        (True, False, NOT_LEADER),
        (True, True, ErrorCode.KAFKA_STORAGE_ERROR),
    ],
)
def test_fetch_of_unreadable_partition(known: bool, failed: bool, error: ErrorCode) -> None:
    broker = unhosted(known, failed)
    assert read(broker, FetchPartition(0)).error is error
    response = broker.handle(OffsetsForLeaderEpoch(3, {P: OffsetForLeaderPartition(-1, 1)}), 0.0)
    assert isinstance(response, OffsetsForLeaderEpochResponse)
    assert response.partitions[P] == (error, EpochEnd(-1, -1))


@pytest.mark.parametrize(
    "leader_epoch, end",
    [(5, (5, 10)), (4, (3, 4)), (3, (3, 4)), (2, (2, 0)), (6, (-1, -1)), (-1, (-1, -1))],
)
def test_offsets_for_leader_epoch(leader_epoch: int, end: tuple[int, int]) -> None:
    response = start_leader().handle(OffsetsForLeaderEpoch(3, {P: OffsetForLeaderPartition(5, leader_epoch)}), 0.0)
    assert isinstance(response, OffsetsForLeaderEpochResponse)
    assert response.partitions[P] == (ErrorCode.NONE, EpochEnd(*end))


@pytest.mark.parametrize("topics, result", [(None, [P]), (("t",), [P]), (("u",), [])])
def test_metadata_request(topics: tuple[str, ...] | None, result: list[object]) -> None:
    response = unhosted(known=True, failed=False).handle(Metadata(topics), 0.0)
    assert isinstance(response, MetadataResponse)
    assert (response.controller_id, response.live_brokers, list(response.partitions)) == (CONTROLLER_ID, (2,), result)


# -- Logs.


def log_of(*epochs: int) -> Log:
    """A log with one record for each of these epochs."""
    log = Log(TOPIC_ID, "data")
    for epoch in epochs:
        log.append(Record(epoch, None))
    return log


@dataclass(frozen=True)
class Cut:
    """A log and its truncation offset. Also the expected rest."""

    epochs: tuple[int, ...]
    offset: int
    end: int
    remaining: list[tuple[int, int]]


@pytest.mark.parametrize(
    "cut",
    [
        Cut((1, 1, 2, 3, 3), 9, 5, [(1, 0), (2, 2), (3, 3)]),
        Cut((1, 1, 2, 3, 3), 4, 4, [(1, 0), (2, 2), (3, 3)]),
        Cut((1, 1, 2, 3, 3), 3, 3, [(1, 0), (2, 2)]),
        Cut((1, 1, 2, 3, 3), 2, 2, [(1, 0)]),
        Cut((1, 1, 2, 3, 3), 0, 0, []),
    ],
)
def test_truncation(cut: Cut) -> None:
    log = log_of(*cut.epochs)
    log.set_high_watermark(5)
    log.truncate(cut.offset)
    assert (log.end, log.epochs, log.high_watermark) == (cut.end, cut.remaining, min(5, cut.end))


def test_truncation_removes_epoch_without_records() -> None:
    """A deposed leader that has written nothing must not report its epoch."""
    log = log_of(1, 1)
    log.begin_epoch(4, 2)
    log.truncate(2)
    assert log.epochs == [(1, 0)]


def test_record_replaces_an_epoch_start_without_records() -> None:
    log = log_of(1, 1)
    log.begin_epoch(4, 2)
    log.append(Record(5, None))
    assert log.epochs == [(1, 0), (5, 2)]


def test_read_committed_waits_for_end_of_transaction() -> None:
    broker = start_broker(order(state(1, (1,), replicas=(1,), is_new=True)))
    for number in range(2):
        broker.handle(Produce(P, number, 1, producer_id=7, producer_epoch=0, sequence=number, transactional=True), 0.0)

    def read(committed: bool) -> int:
        response = broker.handle(Fetch(CONSUMER, {P: FetchPartition(0)}, committed), 0.0)
        assert isinstance(response, FetchResponse)
        return len(response.partitions[P].records)

    assert (read(False), read(True)) == (2, 0)
    broker.handle(EndTransaction(P, 7, 0, committed=True), 0.0)
    assert (read(False), read(True)) == (3, 3)


# -- Followers.


@pytest.mark.parametrize(
    "leader, follower",
    [((1, 1, 1, 2), (1, 1, 1, 1)), ((1, 3, 3, 5), (1, 2, 2, 4, 4)), ((1, 1, 1, 1, 3), (1, 1, 2)), ((1, 2), ())],
    ids=["deposed-leader", "KIP-279", "epoch-unknown-to-the-leader", "empty-disk"],
)
@pytest.mark.parametrize("protocol", ["3.9", "2.7-IV0"], ids=["Fetch", "OffsetsForLeaderEpoch"])
def test_follower_truncates_to_last_common_epoch(
    leader: tuple[int, ...], follower: tuple[int, ...], protocol: str
) -> None:
    """Through Fetch since 2.7-IV1, through OffsetsForLeaderEpoch before. The tuples are the epochs of records."""
    config = BrokerConfig(protocol=InterBrokerProtocol.parse(protocol), fetch_records_max=1)
    led = order(state(1, (1,), 6, replicas=(1, 2)))
    brokers = (
        start_broker(led, config=config, log=log_of(*leader)),
        start_broker(led, broker_id=2, config=config, log=log_of(*follower)),
    )
    exchange(*brokers, 0.0)
    assert [broker.disks.logs[P].records for broker in brokers] == [log_of(*leader).records] * 2


@pytest.mark.parametrize("behind, follows", [(2, None), (1, 1)], ids=["follower", "leader"])
def test_follower_that_missed_a_leader_epoch_waits_for_it(behind: int, follows: int | None) -> None:
    """A follower that a leader fences sends no Fetch until it receives the leader epoch. It retries if the leader is
    behind."""
    brokers = start_broker(), start_broker(broker_id=2)
    for leader_epoch in (1, 2):
        for broker in brokers:
            if (broker.broker_id, leader_epoch) != (behind, 2):
                broker.handle(order(state(1, (1, 2), leader_epoch, replicas=(1, 2), is_new=True)), 0.0)
    exchange(*brokers, 0.0)
    assert brokers[1].replicas.fetcher.follows(P) == follows
    brokers[1].handle(order(state(1, (1, 2), 3, replicas=(1, 2))), 5_000.0)
    assert brokers[1].replicas.fetcher.follows(P) == 1


@pytest.mark.parametrize("leader_end, end", [(1, 1), (5, 3)])
def test_follower_out_of_range_truncates_to_the_end_of_the_leader(leader_end: int, end: int) -> None:
    broker = start_broker(order(state(1, (1,), 5)), broker_id=2, log=log_of(1, 1, 1))
    (out,) = broker.tick(0.0)
    fetched = Fetched(ErrorCode.OFFSET_OUT_OF_RANGE, leader_end, leader_end)
    broker.on_response(out.number, FetchResponse({P: fetched}), 1.0)
    assert broker.disks.logs[P].end == end
