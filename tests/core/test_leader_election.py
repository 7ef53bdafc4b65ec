"""Elections through the engine, rule by rule (``elections.md`` sections 1 to 3). Section 5 is the truth table."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from kframe.core.state_machines import leader_election, partition_state_machine
from kframe.core.state_machines.leader_election import Strategy
from kframe.embedded import Api
from kframe.model.events import (
    ControlledShutdownRequested,
)
from kframe.model.ids import NO_BROKER_EPOCH, ElectionKind, PartitionState, ReplicaFlag
from kframe.ports.store_requests import WriteStates
from kframe.testing.clusters import PartitionSpec, healthy
from tests.core.driver import Driver, active, state_of
from tests.core.elections import UNCLEAN, RecordingSelection, elect

# -- 1 inputs, 2 initial rule


def shut_down(driver: Driver) -> None:
    driver.cluster.brokers.shutting_down[driver.cluster.brokers.index_of([1])] = 1


def unregister(driver: Driver) -> None:
    driver.cluster.brokers.unregister(driver.cluster.brokers.index_of([1]))


def lose_the_directory(driver: Driver) -> None:
    driver.cluster.flag_replicas(0, driver.cluster.brokers.index_of([1]), ReplicaFlag.OFFLINE_DIR)


@pytest.mark.parametrize("cause_fault", [shut_down, unregister, lose_the_directory])
@pytest.mark.parametrize("isr", [None, (1, 2, 3)], ids=["initial", "offline"])
def test_replica_is_online_on_live_broker_and_log_dir(
    isr: tuple[int, ...] | None, cause_fault: Callable[[Driver], None]
) -> None:
    """elections 1: online is registered, not shutting down, and no offline log directory.
    elections 2: a shutting-down broker is not eligible.
    """
    driver = active(PartitionSpec((1, 2, 3), isr=isr))
    cause_fault(driver)
    elect(driver, leader_election.OFFLINE)
    assert state_of(driver.stored("t-0"))[:2] == (2, (2, 3))
    assert driver.recipients(Api.LEADER_AND_ISR, "t-0") == [2, 3]


def test_shutting_down_broker_is_recipient_only_in_controlled_shutdown() -> None:
    """elections 1: shutting-down brokers count only in controlled shutdown. There they are recipients."""
    driver = active(PartitionSpec((1, 2, 3), 1, (1, 2, 3)))
    shut_down(driver)
    elect(driver, leader_election.CONTROLLED_SHUTDOWN)
    assert state_of(driver.stored("t-0"))[:2] == (2, (2, 3))
    assert driver.recipients(Api.LEADER_AND_ISR, "t-0") == [1, 2, 3]


def test_reassignment_target_excludes_removing_replicas() -> None:
    """elections 1: target is replicas minus removing, order kept."""
    driver = active(PartitionSpec((1, 3, 2), 1, (1, 2, 3), removing_replicas=(1,)))
    elect(driver, leader_election.REASSIGN)
    assert state_of(driver.stored("t-0")) == (3, (1, 2, 3), 1)
    assert driver.recipients(Api.LEADER_AND_ISR, "t-0") == [2, 3]


def test_new_partition_is_initialised_when_broker_starts() -> None:
    """elections 2: retried whenever trigger-online runs."""
    driver = active(PartitionSpec((7, 8)), live=(1,))
    for broker_id, expected in ((2, None), (8, (8, (8,), 0))):
        driver.start_brokers(broker_id)
        view = driver.stored("t-0")
        assert (state_of(view) if view.leader is not None else None) == expected


# -- 3 strategies


@pytest.mark.parametrize(
    "strategy",
    [leader_election.OFFLINE, leader_election.REASSIGN, leader_election.PREFERRED, leader_election.CONTROLLED_SHUTDOWN],
    ids=lambda strategy: strategy.kind.name,
)  # fmt: skip
def test_election_raises_leader_epoch_and_keeps_recovery_state(strategy: Strategy) -> None:
    """elections 3: leader_epoch plus one, recovery kept.
    elections 3: a clean election keeps RECOVERING.
    state-machines 1: derived state.
    """
    spec = PartitionSpec((1, 2), 2, (2, 1), leader_epoch=5, controller_epoch=0, partition_epoch=3, recovery=1)
    driver = active(spec)
    elect(driver, strategy)
    view = driver.stored("t-0")
    assert (*state_of(view), view.recovery, view.partition_epoch) == (1, (2, 1), 6, 1, 4)
    assert driver.writes()[0].expected.tolist() == [3]


@pytest.mark.parametrize(
    "strategy", [leader_election.OFFLINE, leader_election.UNCLEAN], ids=["by config", "by the operator"]
)
def test_election_is_clean_while_isr_member_is_online(strategy: Strategy) -> None:
    """elections 3: unclean only if no ISR member is online."""
    recording = RecordingSelection()
    spec, dead = PartitionSpec((1, 2, 3), 3, (3, 2)), PartitionSpec((1, 9), 9, (9,))
    driver = active(spec, dead, live=(1, 2), config=UNCLEAN, selection=recording)
    rows = driver.rows("t-0", "t-1")
    driver.run(partition_state_machine.transition(driver.context, rows, PartitionState.ONLINE, strategy))
    assert recording.elections == [(ElectionKind.OFFLINE, ["t-0", "t-1"], [0, 1])]
    assert state_of(driver.stored("t-0")) == (2, (2,), 1)
    assert state_of(driver.stored("t-1")) == (1, (1,), 1)
    assert driver.context.counters["UncleanLeaderElectionsPerSec"] == 1


def test_operator_unclean_election_overrides_topic_setting() -> None:
    """elections 3: allowUnclean of the strategy."""
    driver = active(PartitionSpec((1, 9), 9, (9,)))
    driver.cluster.topics.unclean[0] = 0
    elect(driver, leader_election.UNCLEAN)
    assert (*state_of(driver.stored("t-0")), driver.stored("t-0").recovery) == (1, (1,), 1, 1)


def test_rejected_unclean_election_is_counted_on_retry() -> None:
    """elections 3: the meter is marked before the write succeeds."""
    driver = active(PartitionSpec((1, 9), 9, (9,)), config=UNCLEAN)
    driver.before(WriteStates, lambda: driver.ensemble.write_state("t", 0, leader_epoch=3))
    elect(driver, leader_election.OFFLINE)
    assert state_of(driver.stored("t-0")) == (1, (1,), 4)
    assert driver.context.counters["UncleanLeaderElectionsPerSec"] == 2


def test_election_from_empty_isr_is_unclean() -> None:
    """elections 3: leader not in the old ISR means RECOVERING, also if that ISR was empty."""
    driver = active(PartitionSpec((1, 2), None, ()), config=UNCLEAN)
    elect(driver, leader_election.OFFLINE)
    assert (*state_of(driver.stored("t-0")), driver.stored("t-0").recovery) == (1, (1,), 1, 1)


@pytest.mark.parametrize("protocol, recovery", [("3.2-IV0", 1), ("3.1-IV0", 0), ("3.9", 1), ("2.7", 0)])
def test_unclean_leader_is_recovering_from_protocol_3_2(protocol: str, recovery: int) -> None:
    """elections 3: RECOVERING from inter-broker protocol 3.2.
    state-machines 5: recovery state from inter-broker protocol 3.2.
    """
    driver = active(PartitionSpec((1, 9), 9, (9,)), config={**UNCLEAN, "inter.broker.protocol.version": protocol})
    elect(driver, leader_election.OFFLINE)
    assert driver.stored("t-0").recovery == recovery


@pytest.mark.parametrize(
    "strategy", [leader_election.PREFERRED, leader_election.REASSIGN], ids=["preferred", "reassign"]
)
def test_strategy_elects_without_checking_current_leader(strategy: Strategy) -> None:
    """elections 3: preferred and reassign do not check the present leader."""
    driver = active(healthy(1, 2, leader_epoch=5))
    elect(driver, strategy)
    assert state_of(driver.stored("t-0")) == (1, (1, 2), 6)


def test_controlled_shutdown_of_follower_elects_no_leader() -> None:
    """elections 3: controlled shutdown of a follower."""
    recording = RecordingSelection()
    driver = active(healthy(2, 1, leader_epoch=5), selection=recording)
    driver.handle(ControlledShutdownRequested(1, NO_BROKER_EPOCH, token=1))
    assert recording.elections == []
    assert state_of(driver.stored("t-0")) == (2, (2,), 6)
