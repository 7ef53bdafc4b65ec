"""ISR expansion and shrinking, and high watermarks."""

from __future__ import annotations

import pytest

from kframe.errors import ErrorCode
from kframe_simulator.broker.broker import Broker
from kframe_simulator.broker.config import BrokerConfig
from kframe_simulator.broker.messages import Fetch, FetchPartition, FetchResponse, Produce
from kframe_simulator.broker.outgoing import AlteredPartition, AlterPartition, AlterPartitionResponseData, Outgoing
from kframe_simulator.broker.replica import NEVER, Replica
from verification.simulator.broker_requests import P, live, order, start_broker, state

LAG_MS = 10_000.0
CONFIG = BrokerConfig(replica_lag_time_max_ms=LAG_MS, min_insync_replicas=2)


def start_leader(
    isr: tuple[int, ...] = (1, 2, 3), records: int = 10, config: BrokerConfig = CONFIG, **changes: object
) -> Broker:
    """Broker 1 leads P at leader epoch 5 with records 0 to ``records`` - 1. No follower has fetched."""
    broker = start_broker(order(state(1, isr, 5, 3, is_new=True, **changes)), config=config)  # type: ignore[arg-type]
    for number in range(records):
        broker.handle(Produce(P, number, 1), 0.0)
    return broker


def fetch(broker: Broker, follower: int, offset: int, now: float, leader_epoch: int = 5) -> ErrorCode:
    response = broker.handle(Fetch(follower, {P: FetchPartition(offset, leader_epoch)}), now)
    assert isinstance(response, FetchResponse)
    return response.partitions[P].error


def high_watermark(broker: Broker) -> int:
    log = broker.partitions[P].log
    assert log is not None
    return log.high_watermark


def proposal(broker: Broker, now: float) -> tuple[Outgoing, tuple[int, ...]] | None:
    """The proposal that a broker sends now. Also its ISR."""
    for out in broker.tick(now):
        if isinstance(out.message, AlterPartition):
            return out, out.message.partitions[P].isr
    return None


def respond(broker: Broker, out: Outgoing, now: float, error: ErrorCode = ErrorCode.NONE, **changes: object) -> None:
    assert isinstance(out.message, AlterPartition)
    proposed_isr = out.message.partitions[P]
    fields = {
        "leader": 1,
        "leader_epoch": proposed_isr.leader_epoch,
        "isr": proposed_isr.isr,
        "recovery": 0,
        "partition_epoch": proposed_isr.partition_epoch + 1,
    } | changes
    altered = AlteredPartition(error, **fields)  # type: ignore[arg-type]
    broker.on_response(out.number, AlterPartitionResponseData(ErrorCode.NONE, {P: altered}), now)


# -- Followers as the leader sees them.


def test_last_caught_up_time_of_follower() -> None:
    """The trace of ``docs/reference/controller/broker-partition.md`` section 5."""
    replica = Replica()
    replica.fetched(100, leader_end=100, now=0.0)
    assert replica.caught_up_at == 0.0
    replica.fetched(100, leader_end=150, now=5_000.0)
    assert replica.caught_up_at == 0.0
    replica.fetched(150, leader_end=180, now=8_000.0)
    assert replica.caught_up_at == 5_000.0
    assert replica.caught_up(180, 15_000.0, LAG_MS)
    assert not replica.caught_up(180, 15_100.0, LAG_MS)
    assert replica.caught_up(150, 15_100.0, LAG_MS)


@pytest.mark.parametrize(
    "newly_leader, in_sync, expected",
    [
        (True, True, (-1, -1, NEVER, 9.0)),
        (True, False, (-1, -1, NEVER, NEVER)),
        (False, True, (100, 180, 9.0, 9.0)),
        (False, False, (100, 180, NEVER, NEVER)),
    ],
)
def test_new_leader_epoch_resets_replica(newly_leader: bool, in_sync: bool, expected: tuple[float, ...]) -> None:
    replica = Replica()
    replica.fetched(100, leader_end=150, now=5.0)
    replica.reset(9.0, leader_end=180, newly_leader=newly_leader, in_sync=in_sync)
    assert (replica.end, replica.leader_end, replica.fetched_at, replica.caught_up_at) == expected


# -- High watermarks.


@pytest.mark.parametrize(
    "isr, ends, caught_up_3, expected",
    [
        ((1, 2, 3), {2: 8, 3: 6}, True, 6),
        ((1, 2), {2: 8, 3: 6}, False, 8),
        ((1, 2), {2: 8, 3: 6}, True, 6),
        ((1, 2), {2: 8}, False, 8),
        ((1,), {}, False, 0),
    ],
)
def test_high_watermark(isr: tuple[int, ...], ends: dict[int, int], caught_up_3: bool, expected: int) -> None:
    """With min.insync.replicas 2. The leader's log ends at 10."""
    leader = start_leader(isr)
    if caught_up_3:
        leader.partitions[P].replicas[3].caught_up_at = 20_000.0
    for follower in sorted(ends):
        fetch(leader, follower, ends[follower], 20_000.0)
    assert high_watermark(leader) == expected


def test_high_watermark_waits_for_pending_isr_expansion() -> None:
    leader = start_leader((1, 2))
    fetch(leader, 2, 9, 1.0)
    fetch(leader, 3, 9, 1.0)
    assert leader.partitions[P].maximal_isr == (1, 2, 3)
    leader.handle(Produce(P, "x", 1), 2.0)
    fetch(leader, 2, 11, 60_000.0)
    assert high_watermark(leader) == 9


def test_high_watermark_waits_for_pending_isr_shrink() -> None:
    leader = start_leader((1, 2), config=BrokerConfig(replica_lag_time_max_ms=LAG_MS))
    fetch(leader, 2, 5, 0.0)
    assert proposal(leader, 16_000.0) is not None
    leader.handle(Produce(P, "x", 1), 16_000.0)
    assert leader.partitions[P].maximal_isr == (1, 2)
    assert high_watermark(leader) == 5


@pytest.mark.parametrize("waits, expected", [(True, 0), (False, 10)])
def test_high_watermark_does_not_advance_under_min_isr_since_3_7(waits: bool, expected: int) -> None:
    config = BrokerConfig(min_insync_replicas=2, high_watermark_waits_for_min_isr=waits)
    assert high_watermark(start_leader((1,), config=config)) == expected


def test_high_watermark_does_not_wait_for_an_ineligible_replica() -> None:
    """The follower has caught up by time, is no ISR member, and is not in the broker's live brokers."""
    leader = start_leader((1, 2))
    leader.partitions[P].replicas[3].caught_up_at = 20_000.0
    leader.handle(live(1, 2), 20_000.0)
    fetch(leader, 2, 8, 20_000.0)
    assert high_watermark(leader) == 8


def test_min_isr_is_limited_by_replica_count() -> None:
    assert high_watermark(start_leader((1,), replicas=(1,))) == 10


# -- Expansion.


@pytest.mark.parametrize(
    "offset, is_live, proposed",
    [(10, True, True), (8, True, True), (7, True, False), (10, False, False)],
)
def test_live_follower_at_the_high_watermark_joins(offset: int, is_live: bool, proposed: bool) -> None:
    leader = start_leader((1, 2))
    fetch(leader, 2, 8, 11_000.0)
    assert high_watermark(leader) == 8
    if not is_live:
        leader.handle(live(1, 2), 11_000.0)
    fetch(leader, 3, offset, 11_000.0)
    sent = proposal(leader, 11_000.0)
    assert (sent is not None and sent[1] == (1, 2, 3)) == proposed


def test_follower_joins_isr_only_after_epoch_start() -> None:
    """Below the start of the epoch, committed records may exist that it lacks, whatever the high watermark is."""
    leader = start_leader((1, 2))
    leader.handle(order(state(1, (1, 2), 6, 4)), 1.0)
    assert (leader.partitions[P].epoch_start, leader.disks.logs[P].epochs) == (10, [(5, 0), (6, 10)])
    fetch(leader, 3, 9, 1.0, leader_epoch=6)
    assert proposal(leader, 1.0) is None
    fetch(leader, 3, 10, 2.0, leader_epoch=6)
    assert proposal(leader, 2.0) is not None


def test_single_isr_change_in_flight() -> None:
    leader = start_leader((1,), replicas=(1, 2, 3))
    fetch(leader, 2, 10, 1.0)
    fetch(leader, 3, 10, 1.0)
    sent = proposal(leader, 1.0)
    assert sent is not None
    assert sent[1] == (1, 2)
    respond(leader, sent[0], 1.0)
    fetch(leader, 3, 10, 2.0)
    following = proposal(leader, 2.0)
    assert following is not None
    assert following[1] == (1, 2, 3)


# -- Shrinking.


def test_lagging_follower_is_removed_at_next_isr_check() -> None:
    leader = start_leader()
    leader.tick(0.0)
    fetch(leader, 2, 10, 9_000.0)
    assert proposal(leader, 10_000.0) is None
    sent = proposal(leader, 15_000.0)
    assert sent is not None
    assert sent[1] == (1, 2)


def test_caught_up_follower_stays_in_isr() -> None:
    leader = start_leader(records=0)
    fetch(leader, 2, 0, 0.0)
    fetch(leader, 3, 0, 0.0)
    assert proposal(leader, 600_000.0) is None


def test_isr_shrink_keeps_leader() -> None:
    leader = start_leader()
    sent = proposal(leader, 60_000.0)
    assert sent is not None
    assert sent[1] == (1,)


# -- Outcomes of a proposal.


def pending(expand: bool = True) -> tuple[Broker, Outgoing]:
    leader = start_leader((1, 2))
    fetch(leader, 2, 10, 11_000.0)
    fetch(leader, 3, 10, 11_000.0)
    sent = proposal(leader, 11_000.0)
    assert sent is not None
    return leader, sent[0]


def test_accepted_alter_partition_updates_isr() -> None:
    broker, out = pending()
    respond(broker, out, 12_000.0, isr=(1, 2, 3), partition_epoch=4)
    partition = broker.partitions[P]
    assert (partition.isr, partition.partition_epoch, partition.pending) == ((1, 2, 3), 4, None)


@pytest.mark.parametrize("notified", [{"leader_epoch": 6}, {"leader_epoch": 4}, {"partition_epoch": 2}], ids=str)
def test_response_about_another_state_keeps_proposal_pending(notified: dict[str, int]) -> None:
    broker, out = pending()
    respond(broker, out, 12_000.0, ErrorCode.NONE, **notified)
    partition = broker.partitions[P]
    assert (partition.isr, partition.partition_epoch, partition.pending is None) == ((1, 2), 3, False)


def test_response_without_change_ends_proposal() -> None:
    broker, out = pending()
    respond(broker, out, 12_000.0, partition_epoch=3)
    assert (broker.partitions[P].isr, broker.partitions[P].pending) == ((1, 2, 3), None)


@pytest.mark.parametrize(
    "error, stays, repeated",
    [
        (ErrorCode.OPERATION_NOT_ATTEMPTED, False, False),
        (ErrorCode.INELIGIBLE_REPLICA, False, False),
        (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, True, False),
        (ErrorCode.UNKNOWN_TOPIC_ID, True, False),
        (ErrorCode.FENCED_LEADER_EPOCH, True, False),
        (ErrorCode.INVALID_UPDATE_VERSION, True, False),
        (ErrorCode.INVALID_REQUEST, True, False),
        (ErrorCode.UNKNOWN_SERVER_ERROR, True, True),
        (ErrorCode.NOT_CONTROLLER, True, True),
        (ErrorCode.CLUSTER_AUTHORIZATION_FAILED, True, True),
    ],
)
def test_refused_alter_partition(error: ErrorCode, stays: bool, repeated: bool) -> None:
    broker, out = pending()
    respond(broker, out, 12_000.0, error)
    assert (broker.partitions[P].pending is not None) == stays
    assert (proposal(broker, 12_000.0) is not None) == repeated


def test_new_leader_epoch_drops_pending_proposal() -> None:
    broker, out = pending()
    respond(broker, out, 12_000.0, ErrorCode.INVALID_UPDATE_VERSION)
    broker.handle(order(state(1, (1, 2), 6, 5)), 13_000.0)
    assert broker.partitions[P].pending is None
    fetch(broker, 3, 10, 13_000.0, leader_epoch=6)
    next_proposal = proposal(broker, 13_000.0)
    assert next_proposal is not None
    assert next_proposal[1] == (1, 2, 3)


def test_response_after_new_leader_epoch_is_ignored() -> None:
    broker, out = pending()
    broker.handle(order(state(1, (1, 2), 6, 5)), 12_000.0)
    respond(broker, out, 12_000.0, isr=(1, 2, 3), partition_epoch=6, leader_epoch=6)
    assert (broker.partitions[P].isr, broker.partitions[P].partition_epoch) == ((1, 2), 5)
