"""ISRs, elections, AlterPartition: defects R32, R36 to R48, X1, X2, X11."""

from __future__ import annotations

import logging

import pytest

from kframe.embedded import Api
from kframe.errors import ErrorCode
from kframe.model.events import (
    ControlledShutdownRequested,
    IsrChangesNotified,
    LeaderAndIsrResponseReceived,
    RebalanceLeaders,
)
from kframe.model.ids import NO_BROKER_EPOCH, RecoveryState
from kframe.ports.store_requests import DropNotifications, ReadIsrChanges, ReadStates, WriteStates
from kframe.testing.clusters import PartitionSpec, healthy
from tests.core.driver import Driver, proposal, quiet, state_of

UNDER_REPLICATED = PartitionSpec((1, 2, 3), 1, (1, 2), leader_epoch=5, controller_epoch=1, partition_epoch=3)


def propose(
    driver: Driver,
    isr: tuple[int, ...],
    leader_epoch: int = 5,
    partition_epoch: int = 3,
    sender: int = 1,
    epochs: tuple[int, ...] | None = None,
) -> tuple[ErrorCode, int]:
    """Return the error code of an AlterPartition of t-0. Also the partition epoch in the response."""
    epoch = int(driver.cluster.brokers.broker_epoch[driver.cluster.brokers.find(sender)])
    token = len(driver.replies) + 1
    response = driver.ask(proposal(isr, leader_epoch, partition_epoch, sender, epoch, token, epochs=epochs))
    return ErrorCode(int(response.codes[0])), int(response.states.partition_epoch[0])


def test_r32_isr_change_sends_a_single_partition() -> None:
    driver = quiet({"t": [UNDER_REPLICATED], "u": [healthy(1, 2, 3) for _ in range(1_000)]}, (1, 2, 3))
    driver.ensemble.write_state("t", 0, isr=(1, 2, 3))
    driver.ensemble.notify_isr_changes([("t", 0)])
    driver.handle(IsrChangesNotified())
    sent = [(request["broker"], sorted(request["partitions"])) for request in driver.requests(Api.UPDATE_METADATA)]
    assert sent == [(1, ["t-0"]), (2, ["t-0"]), (3, ["t-0"])]


def test_r33_notification_during_isr_change_handling_is_handled_next() -> None:
    driver = quiet({"t": [UNDER_REPLICATED, UNDER_REPLICATED]}, (1, 2, 3))
    driver.ensemble.write_state("t", 0, isr=(1, 2, 3))
    for _ in range(1_000):
        driver.ensemble.notify_isr_changes([("t", 0)])

    def change_isr_again() -> None:
        driver.ensemble.write_state("t", 1, isr=(1,))
        driver.ensemble.notify_isr_changes([("t", 1)])

    driver.before(DropNotifications, change_isr_again)
    driver.handle(IsrChangesNotified())
    assert len(driver.store.perform(ReadIsrChanges()).paths) == 1
    driver.handle(IsrChangesNotified())
    assert (driver.known("t-0").isr, driver.known("t-1").isr) == ((1, 2, 3), (1,))
    assert driver.store.perform(ReadIsrChanges()).paths == ()


def test_r36_last_isr_member_stays_after_broker_failure() -> None:
    driver = quiet({"t": [PartitionSpec((1, 2), 1, (1,), leader_epoch=5)]}, (1, 2))
    driver.fail_brokers(1)
    assert state_of(driver.stored("t-0")) == (-1, (1,), 6)


def test_r37_state_write_is_retried_after_version_conflict() -> None:
    driver = quiet({"t": [healthy(1, 2, 3, leader_epoch=5)]}, (1, 2, 3))
    driver.before(WriteStates, lambda: driver.ensemble.write_state("t", 0, isr=(1, 3)))
    driver.fail_brokers(1)
    assert state_of(driver.stored("t-0")) == (3, (3,), 6)
    assert driver.known("t-0").partition_epoch == driver.stored("t-0").partition_epoch


def test_r38_broker_in_controlled_shutdown_does_not_join_isr() -> None:
    driver = quiet({"t": [UNDER_REPLICATED]}, (1, 2, 3))
    driver.ask(ControlledShutdownRequested(3, NO_BROKER_EPOCH, 99))
    stored_state = driver.stored("t-0")
    assert (
        propose(driver, (1, 2, 3), stored_state.leader_epoch, stored_state.partition_epoch)[0]
        is ErrorCode.OPERATION_NOT_ATTEMPTED
    )
    assert driver.stored("t-0").isr == (1, 2)


def test_r39_repeated_alter_partition_gets_the_same_response() -> None:
    driver = quiet({"t": [UNDER_REPLICATED]}, (1, 2, 3))
    assert propose(driver, (1, 2, 3)) == (ErrorCode.NONE, 4)
    assert propose(driver, (1, 2, 3)) == (ErrorCode.NONE, 4)
    assert driver.stored("t-0").partition_epoch == 4


@pytest.mark.parametrize("leader_epoch, partition_epoch", [(6, 3), (5, 4), (6, 4)])
def test_r40_leader_with_a_newer_epoch_gets_not_controller(leader_epoch: int, partition_epoch: int) -> None:
    driver = quiet({"t": [UNDER_REPLICATED]}, (1, 2, 3))
    assert propose(driver, (1, 2, 3), leader_epoch, partition_epoch)[0] is ErrorCode.NOT_CONTROLLER
    assert driver.writes() == []


def test_r41_unchanged_isr_gets_a_response_and_the_next_change_works() -> None:
    driver = quiet({"t": [UNDER_REPLICATED]}, (1, 2, 3))
    assert propose(driver, (1, 2)) == (ErrorCode.NONE, 3)
    assert propose(driver, (1, 2, 3)) == (ErrorCode.NONE, 4)
    assert propose(driver, (1,), partition_epoch=4) == (ErrorCode.NONE, 5)


def test_r42_election_follows_assignment_order() -> None:
    """The ISRs have another order than the assignments."""
    specs = [PartitionSpec((1, a, b), 1, (b, a, 1)) for a, b in [(2, 3), (3, 4), (4, 2)] * 20]
    driver = quiet({"t": specs}, (1, 2, 3, 4))
    driver.fail_brokers(1)
    leaders = [driver.stored(f"t-{i}").leader for i in range(60)]
    assert leaders == [2, 3, 4] * 20


def test_r43_preferred_replica_is_elected_only_when_in_sync() -> None:
    driver = quiet({"t": [PartitionSpec((1, 2), 2, (2,), leader_epoch=5)]}, (1, 2))
    for _ in range(10):
        driver.handle(RebalanceLeaders())
    assert driver.writes() == []
    assert not driver.performed(ReadStates), "an election without a result reads"
    driver.ensemble.write_state("t", 0, isr=(2, 1))
    driver.ensemble.notify_isr_changes([("t", 0)])
    driver.handle(IsrChangesNotified())
    for _ in range(10):
        driver.handle(RebalanceLeaders())
    assert state_of(driver.stored("t-0")) == (1, (2, 1), 6)


def test_r45_changed_topic_setting_applies_at_once() -> None:
    driver = quiet({"t": [PartitionSpec((1, 2, 3), 1, (1,), leader_epoch=5)]}, (1, 2, 3))
    driver.fail_brokers(1)
    assert state_of(driver.stored("t-0")) == (-1, (1,), 6)
    driver.ensemble.configure_topic("t", {"unclean.leader.election.enable": "true"})
    driver.follow()
    assert state_of(driver.stored("t-0")) == (2, (2,), 7)
    assert driver.stored("t-0").recovery is RecoveryState.RECOVERING
    assert driver.controller.counters["UncleanLeaderElectionsPerSec"] == 1


def test_r46_refused_states_are_not_sent() -> None:
    """The stored state of t-0 is lost."""
    driver = quiet({"t": [healthy(1, 2, 3, leader_epoch=5), healthy(1, 2, 3, leader_epoch=5)]}, (1, 2, 3))
    stored = driver.ensemble.states.cluster

    def lose() -> None:
        stored.partitions.partition_epoch[stored.row("t", 0)] = -1

    driver.before(WriteStates, lose)
    driver.fail_brokers(1)
    assert driver.entries(Api.LEADER_AND_ISR, "t-0") == {}
    assert {entry["leader_epoch"] for entry in driver.entries(Api.LEADER_AND_ISR, "t-1").values()} == {6}


def test_r47_leader_and_isr_error_is_logged_with_broker(caplog: pytest.LogCaptureFixture) -> None:
    driver = quiet({"t": [UNDER_REPLICATED]}, (1, 2, 3))
    response = LeaderAndIsrResponseReceived(2, ErrorCode.UNKNOWN_SERVER_ERROR, (), 1, driver.rows("t-0"))
    with caplog.at_level(logging.WARNING, "kframe.statechange"):
        driver.handle(response)
    message = "Received error UNKNOWN_SERVER_ERROR in LeaderAndIsr response from broker 2"
    assert caplog.messages == [f"[Controller id=1000 epoch=1] {message}"]


def test_x01_alter_partition_with_stale_broker_epoch_is_refused() -> None:
    driver = quiet({"t": [UNDER_REPLICATED]}, (1, 2, 3))
    brokers = driver.cluster.brokers
    stale_epochs = tuple(int(brokers.broker_epoch[brokers.find(broker_id)]) for broker_id in (1, 2, 3))
    driver.bounce_brokers(3)
    stored_state = driver.stored("t-0")
    code, _ = propose(driver, (1, 2, 3), stored_state.leader_epoch, stored_state.partition_epoch, epochs=stale_epochs)
    assert code is ErrorCode.OPERATION_NOT_ATTEMPTED
    current_epochs = (*stale_epochs[:2], int(brokers.broker_epoch[brokers.find(3)]))
    code, _ = propose(driver, (1, 2, 3), stored_state.leader_epoch, stored_state.partition_epoch, epochs=current_epochs)
    assert code is ErrorCode.NONE
