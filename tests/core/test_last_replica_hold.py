"""The last in-sync replica after a crash (X9): automatic election, or a wait for an operator."""

from __future__ import annotations

import logging

import pytest

from kframe.core.state_machines import last_replica_hold
from kframe.errors import ErrorCode
from kframe.model.events import (
    ControlledShutdownRequested,
    ElectionRequested,
    ElectionType,
    RebalanceLeaders,
)
from kframe.model.ids import NO_BROKER_EPOCH, NO_LEADER
from kframe.testing.clusters import PartitionSpec, healthy
from tests.core.driver import Driver, elected, quiet

HOLD = {"kframe_last_replica_hold": "true"}
LAST = PartitionSpec((1, 2), 1, (1,))
"""Broker 1 is the only ISR member."""


def shut_down(driver: Driver, broker_id: int) -> None:
    driver.handle(ControlledShutdownRequested(broker_id, NO_BROKER_EPOCH))
    driver.fail_brokers(broker_id)


def leader(driver: Driver, name: str = "t-0") -> int | None:
    """Return the stored leader's id, or NO_LEADER."""
    return driver.stored(name).leader


def ask(driver: Driver, election_type: ElectionType) -> list[int]:
    event = ElectionRequested(election_type, (("t", 0),), token=len(driver.replies) + 1)
    return [int(code) for code in driver.ask(event).codes]


@pytest.mark.parametrize("config, expected", [({}, 1), (HOLD, NO_LEADER)], ids=["as Kafka", "held"])
@pytest.mark.parametrize("bounced", [False, True], ids=["seen to go", "bounced"])
def test_last_in_sync_replica_is_not_elected_after_crash(bounced: bool, config: dict[str, str], expected: int) -> None:
    driver = quiet({"t": [LAST]}, (1, 2, 3), **config)
    if bounced:
        driver.bounce_brokers(1)
    else:
        driver.fail_brokers(1)
        driver.start_brokers(1)
    assert leader(driver) == expected
    driver.start_brokers(4)
    assert leader(driver) == expected, "tried again whenever a broker comes"


def test_unclean_election_by_operator_elects_held_replica() -> None:
    driver = quiet({"t": [LAST, LAST]}, (1, 2, 3), **HOLD)
    driver.bounce_brokers(1)
    assert ask(driver, ElectionType.PREFERRED) == [ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE]
    assert ask(driver, ElectionType.UNCLEAN) == [ErrorCode.NONE]
    assert [leader(driver, name) for name in ("t-0", "t-1")] == [1, NO_LEADER]
    assert driver.stored("t-0").isr == (1,)


def test_leader_rebalance_does_not_elect_held_replica() -> None:
    driver = quiet({"t": [LAST]}, (1, 2, 3), **HOLD, leader_imbalance_per_broker_percentage="0")
    driver.bounce_brokers(1)
    driver.handle(RebalanceLeaders())
    assert leader(driver) == NO_LEADER


def test_topic_with_unclean_election_elects_held_replica() -> None:
    driver = quiet({"t": [PartitionSpec((1,), 1, (1,))]}, (1, 2, 3), **HOLD, unclean_leader_election_enable="true")
    driver.bounce_brokers(1)
    assert leader(driver) == 1


def test_granted_controlled_shutdown_verifies_logs_until_next_crash() -> None:
    driver = quiet({"t": [PartitionSpec((1,), 1, (1,))]}, (1, 2, 3), **HOLD)
    shut_down(driver, 1)
    assert leader(driver) == NO_LEADER
    driver.start_brokers(1)
    assert leader(driver) == 1
    driver.bounce_brokers(1)
    assert leader(driver) == NO_LEADER


def test_exit_after_refused_controlled_shutdown_is_a_crash() -> None:
    """The broker leads a partition that has no other candidate. The controller grants nothing."""
    driver = quiet({"t": [LAST]}, (1, 2, 3), **HOLD)
    shut_down(driver, 1)
    driver.start_brokers(1)
    assert leader(driver) == NO_LEADER


@pytest.mark.parametrize("responses", [(True, False), (False, True)])
def test_last_response_decides_if_controlled_shutdown_was_granted(responses: tuple[bool, ...]) -> None:
    driver = quiet({"t": [PartitionSpec((1,), 1, (1,))]}, (1, 2, 3), **HOLD)
    context = driver.controller.context
    (broker,) = context.cluster.brokers.index_of([1])
    for granted in responses:
        last_replica_hold.on_shutdown_response(context, int(broker), granted)
    driver.fail_brokers(1)
    driver.start_brokers(1)
    assert leader(driver) == (1 if responses[-1] else NO_LEADER)


def test_hold_applies_only_to_last_in_sync_replica() -> None:
    """The hold applies to a last in-sync replica only: not to other ISR members, nor to a present leader."""
    driver = quiet({"t": [healthy(1, 2), LAST]}, (1, 3), **HOLD)
    driver.start_brokers(2)
    driver.start_brokers(4)
    assert [leader(driver, name) for name in ("t-0", "t-1")] == [1, 1]
    driver.fail_brokers(1)
    assert [leader(driver, name) for name in ("t-0", "t-1")] == [2, NO_LEADER]


@pytest.mark.parametrize(
    "stored, expected",
    [
        (PartitionSpec((1, 2), NO_LEADER, (1,)), NO_LEADER),
        (PartitionSpec((1, 2), 1, (1,)), 1),
        (PartitionSpec((1, 9), 9, (9, 1)), 1),
    ],
    ids=["was left without a leader", "leads", "takes over from who died in between"],
)
def test_failover_holds_last_replica_of_leaderless_partition(stored: PartitionSpec, expected: int) -> None:
    driver = elected({"t": [stored]}, (1, 2), **HOLD)
    assert leader(driver) == expected


def test_held_election_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    driver = quiet({"t": [LAST]}, (1, 2, 3), **HOLD)
    with caplog.at_level(logging.ERROR, "kframe.statechange"):
        driver.bounce_brokers(1)
    assert any("t-0: stays offline: its last in-sync replica" in line for line in caplog.messages)
