"""Control requests: LeaderAndIsr, UpdateMetadata and StopReplica."""

from __future__ import annotations

import pytest

from kframe.errors import ErrorCode
from kframe.model.ids import LEADER_DURING_DELETE
from kframe_simulator.broker.config import BrokerConfig
from kframe_simulator.broker.messages import (
    ControlResponse,
    LeaderAndIsr,
    LeaderState,
    PartitionMetadata,
    StopReplica,
    UpdateMetadata,
)
from kframe_simulator.broker.outgoing import CloseSession
from verification.simulator.broker_requests import (
    CONTROLLER_ID,
    TOPIC_ID,
    P,
    live,
    order,
    response_error,
    start_broker,
    state,
    stop,
)

OTHER_ID = bytes([7] * 16)
LEADER_2 = state(2, (1, 2, 3), leader_epoch=5, partition_epoch=3)
NONE = ErrorCode.NONE


def after(leader_epoch: int, **others: object) -> LeaderAndIsr:
    return order(state(2, (1, 2, 3), leader_epoch, partition_epoch=4), **others)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "request_, error",
    [
        (after(6), NONE),
        (after(5), ErrorCode.STALE_CONTROLLER_EPOCH),
        (after(4), ErrorCode.STALE_CONTROLLER_EPOCH),
        (order(state(1, (1, 2, 3), 6, 4)), NONE),
        (order(state(2, (2, 3), 6, 4, replicas=(2, 3))), ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        (after(6, topic_id=OTHER_ID), ErrorCode.INCONSISTENT_TOPIC_ID),
        (after(6, topic_id=None), NONE),
        (after(5, topic_id=None), NONE),
        (after(6, broker_epoch=49), ErrorCode.STALE_BROKER_EPOCH),
        (after(6, broker_epoch=50), NONE),
        (after(6, controller_epoch=0), ErrorCode.STALE_CONTROLLER_EPOCH),
        (after(6, controller_epoch=2), NONE),
    ],
)
def test_leader_and_isr_of_a_follower_at_leader_epoch_5(request_: LeaderAndIsr, error: ErrorCode) -> None:
    broker = start_broker(order(LEADER_2))
    assert response_error(broker, request_) is error


def test_topic_id_is_added_without_new_leader_epoch() -> None:
    broker = start_broker(order(LEADER_2, topic_id=None))
    assert response_error(broker, order(LEADER_2)) is NONE
    assert broker.disks.logs[P].topic_id == TOPIC_ID
    assert response_error(broker, order(LEADER_2)) is ErrorCode.STALE_CONTROLLER_EPOCH


def test_leader_and_isr_with_same_leader_epoch_is_ignored() -> None:
    broker = start_broker(order(state(1, (1, 2, 3), 5, 3)))
    assert response_error(broker, order(state(1, (1,), 5, 9, replicas=(1, 2)))) is ErrorCode.STALE_CONTROLLER_EPOCH
    assert broker.partitions[P].isr == (1, 2, 3)
    assert broker.partitions[P].partition_epoch == 3


def test_highest_controller_epoch_lasts_until_restart() -> None:
    broker = start_broker(after(5, controller_epoch=7))
    assert response_error(broker, live(1, 2, controller_epoch=6)) is ErrorCode.STALE_CONTROLLER_EPOCH
    assert response_error(broker, stop(6, True, controller_epoch=6)) is ErrorCode.STALE_CONTROLLER_EPOCH
    assert broker.replicas.controller_epoch == 7
    broker.crash(1.0)
    broker.start(60, 1.0)
    assert response_error(broker, live(1, 2, controller_epoch=6)) is NONE


@pytest.mark.parametrize("leader", [4, -1])
def test_leader_and_isr_with_unknown_leader_creates_only_a_log(leader: int) -> None:
    """The broker accepts the same leader epoch as soon as it knows the leader."""
    broker = start_broker(order(state(leader, (1, 2), 5, 3, is_new=True)))
    partition = broker.partitions[P]
    assert (partition.leader, partition.leader_epoch, partition.log) == (None, -1, broker.disks.logs[P])
    response_error(broker, live(1, 2, 3, 4))
    assert response_error(broker, order(state(4, (1, 2), 5, 3))) is NONE
    assert partition.leader_epoch == 5


def test_leader_ignores_older_partition_epoch() -> None:
    broker = start_broker(order(state(1, (1, 2, 3), 5, partition_epoch=3)))
    assert response_error(broker, order(state(1, (1, 2), 6, partition_epoch=2))) is NONE
    assert (broker.partitions[P].leader_epoch, broker.partitions[P].isr) == (5, (1, 2, 3))


@pytest.mark.parametrize("leader, recovery", [(1, 0), (2, 1)])
def test_leader_is_recovered_at_once(leader: int, recovery: int) -> None:
    broker = start_broker(order(state(leader, (leader,), 5, 3, recovery=1)))
    assert broker.partitions[P].recovery == recovery


def test_broker_that_shuts_down_starts_no_follower() -> None:
    broker = start_broker()
    broker.shut_down(0.0)
    assert response_error(broker, order(LEADER_2)) is NONE
    assert broker.replicas.fetcher.follows(P) is None
    assert broker.partitions[P].leader == 2


# -- UpdateMetadata.


def update_metadata(leader: int, leader_epoch: int = 5) -> UpdateMetadata:
    partition = PartitionMetadata(leader, leader_epoch, (2, 3), 3, (1, 2, 3))
    return UpdateMetadata(CONTROLLER_ID, 1, -1, (2, 3), {P: partition}, {"t": TOPIC_ID})


def test_update_metadata_replaces_live_brokers_and_adds_partitions() -> None:
    broker = start_broker(update_metadata(2))
    assert broker.metadata.live_brokers == {2, 3}
    assert broker.metadata.partitions[P].leader == 2
    assert broker.metadata.controller_id == CONTROLLER_ID
    response_error(broker, live(1, 2))
    assert broker.metadata.live_brokers == {1, 2}
    assert P in broker.metadata.partitions


def test_update_metadata_removes_deleting_partition() -> None:
    broker = start_broker(update_metadata(2), update_metadata(LEADER_DURING_DELETE))
    assert (broker.metadata.partitions, broker.metadata.topic_ids) == ({}, {})


@pytest.mark.parametrize(
    "controller_epoch, broker_epoch, error",
    [(1, 50, NONE), (1, 51, NONE), (1, 49, ErrorCode.STALE_BROKER_EPOCH), (0, 50, ErrorCode.STALE_CONTROLLER_EPOCH)],
)
def test_update_metadata_is_fenced(controller_epoch: int, broker_epoch: int, error: ErrorCode) -> None:
    broker = start_broker()
    assert response_error(broker, live(9, controller_epoch=controller_epoch, broker_epoch=broker_epoch)) is error
    assert broker.metadata.live_brokers == ({9} if error is NONE else {1, 2, 3})


# -- StopReplica.


@pytest.mark.parametrize(
    "leader_epoch, error",
    [(-2, NONE), (-1, NONE), (5, NONE), (6, NONE), (4, ErrorCode.FENCED_LEADER_EPOCH)],
)
@pytest.mark.parametrize("delete", [False, True])
def test_stop_replica_with_leader_epoch(leader_epoch: int, error: ErrorCode, delete: bool) -> None:
    broker = start_broker(order(LEADER_2))
    assert response_error(broker, stop(leader_epoch, delete)) is error
    deleted = error is NONE and delete
    assert (P in broker.partitions, P in broker.disks.logs) == (not deleted, not deleted)
    assert (broker.replicas.fetcher.follows(P) is None) == (error is NONE)


def test_stopped_replica_without_deletion_keeps_its_role() -> None:
    broker = start_broker(order(state(1, (1, 2, 3), 5, 3)), stop(5, False))
    assert broker.partitions[P].is_leader


@pytest.mark.parametrize("delete", [False, True])
def test_stop_replica_deletes_a_log_without_a_replica(delete: bool) -> None:
    broker = start_broker(order(LEADER_2))
    broker.crash(1.0)
    broker.start(60, 1.0)
    assert response_error(broker, stop(5, delete)) is NONE
    assert (P in broker.disks.logs) == (not delete)


@pytest.mark.parametrize(
    "request_, error",
    [
        (stop(5, True, broker_epoch=49), ErrorCode.STALE_BROKER_EPOCH),
        (stop(5, True, controller_epoch=0), ErrorCode.STALE_CONTROLLER_EPOCH),
    ],
)
def test_stop_replica_is_fenced(request_: StopReplica, error: ErrorCode) -> None:
    broker = start_broker(order(LEADER_2))
    response = broker.handle(request_, 0.0)
    assert isinstance(response, ControlResponse)
    assert (response.error, response.errors, P in broker.partitions) == (error, {}, True)


# -- Log directories.

TWO_DIRS = BrokerConfig(log_dirs=("a", "b"))
KEYS = [("t", number) for number in range(4)]


def hosted(number: int, **others: object) -> LeaderState:
    return state(1, (1,), 5, 0, replicas=(1,), **others)


def test_new_logs_are_spread_over_log_directories() -> None:
    broker = start_broker(*(order(hosted(0, is_new=True), key) for key in KEYS), config=TWO_DIRS)
    assert [broker.disks.logs[key].log_dir for key in KEYS] == ["a", "b", "a", "b"]


@pytest.mark.parametrize("is_new, error", [(True, NONE), (False, ErrorCode.KAFKA_STORAGE_ERROR)])
def test_only_new_replicas_are_created_after_log_directory_failure(is_new: bool, error: ErrorCode) -> None:
    broker = start_broker(config=TWO_DIRS)
    broker.fail_log_dir("a", 0.0)
    assert response_error(broker, order(hosted(0, is_new=is_new))) is error
    assert (P in broker.replicas.offline) == (error is not NONE)


def test_log_directory_failure_takes_partitions_offline() -> None:
    broker = start_broker(*(order(hosted(0, is_new=True), key) for key in KEYS), config=TWO_DIRS)
    broker.tick(0.0)
    broker.fail_log_dir("a", 1.0)
    assert broker.replicas.offline == {KEYS[0], KEYS[2]}
    assert [type(out.message).__name__ for out in broker.tick(1.0)] == ["NotifyLogDirFailure"]
    assert response_error(broker, order(state(1, (1,), 6, 1, replicas=(1,)), KEYS[0])) is ErrorCode.KAFKA_STORAGE_ERROR
    assert response_error(broker, stop(6, True, KEYS[0])) is ErrorCode.KAFKA_STORAGE_ERROR
    assert response_error(broker, order(state(1, (1,), 6, 1, replicas=(1,)), KEYS[1])) is NONE


def test_broker_halts_after_last_log_directory_fails() -> None:
    broker = start_broker(config=TWO_DIRS)
    broker.fail_log_dir("a", 0.0)
    broker.handle(live(1), 0.0)
    broker.fail_log_dir("b", 0.0)
    assert broker.handle(live(1), 0.0) is None
    assert broker.tick(0.0)[-1].message == CloseSession(1, in_order=False)


def test_log_in_a_failed_directory_is_not_deleted() -> None:
    """After a restart the broker does not know the partition until it receives LeaderAndIsr."""
    broker = start_broker(order(hosted(0, is_new=True)), config=TWO_DIRS)
    broker.fail_log_dir("a", 0.0)
    broker.crash(1.0)
    broker.start(60, 1.0)
    assert response_error(broker, stop(5, True)) is NONE
    assert P in broker.disks.lost


def test_replaced_log_directory_is_empty_and_online() -> None:
    broker = start_broker(*(order(hosted(0, is_new=True), key) for key in KEYS), config=TWO_DIRS)
    broker.fail_log_dir("a", 0.0)
    broker.crash(1.0)
    broker.replace_log_dir("a")
    broker.start(60, 1.0)
    assert sorted(broker.disks.logs) == [KEYS[1], KEYS[3]]
    assert response_error(broker, order(hosted(0), KEYS[0])) is NONE
