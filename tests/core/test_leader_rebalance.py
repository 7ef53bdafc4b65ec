"""Automatic leader rebalance to preferred replicas (``controller.md`` section 11.4)."""

from __future__ import annotations

from typing import Final

import pytest

from kframe.embedded import Api
from kframe.model.effects import SetTimer
from kframe.model.events import RebalanceLeaders
from kframe.ports.store_requests import ReadStates, WriteStates
from kframe.testing.clusters import PartitionSpec, healthy
from tests.core.driver import Driver, elected, quiet, state_of

HOME: Final = healthy(1, 2)
OFFLINE_BROKERS: Final = PartitionSpec((1, 2), 2, (2, 1))
#: No preferred election is possible: the preferred replica is not in sync, or the partition has no leader.
STUCK: Final = PartitionSpec((1, 2), 2, (2,))
LEADERLESS: Final = PartitionSpec((1, 2), None, (1, 2))
STATELESS: Final = PartitionSpec((1, 2))


def elected_partitions(driver: Driver) -> list[str]:
    """Return the partitions with a new leader, in the order of the writes."""
    return [name for names in driver.written() for name in names]


def rebalanced(*specs: PartitionSpec, live: tuple[int, ...] = (1, 2, 3), **config: object) -> Driver:
    driver = quiet({"t": specs}, live, **config)
    driver.handle(RebalanceLeaders())
    return driver


#: (case, partitions whose preferred replica is on broker 1, percentage, elected partitions).
LIMITS = [
    ("at the limit", [OFFLINE_BROKERS] + [HOME] * 9, 10, []),
    ("above the limit", [OFFLINE_BROKERS, OFFLINE_BROKERS] + [HOME] * 9, 10, ["t-0", "t-1"]),
    ("one of nine", [OFFLINE_BROKERS] + [HOME] * 8, 10, ["t-0"]),
    ("zero allows none", [OFFLINE_BROKERS] + [HOME] * 99, 0, ["t-0"]),
    ("zero and none", [HOME] * 3, 0, []),
    ("a hundred allows all", [OFFLINE_BROKERS] * 3, 100, []),
    ("those that cannot move count", [OFFLINE_BROKERS, STUCK] + [HOME] * 9, 10, ["t-0"]),
    ("those without leader count", [OFFLINE_BROKERS, LEADERLESS] + [HOME] * 9, 10, ["t-0", "t-1"]),
    ("those without state count in the total only", [OFFLINE_BROKERS, STATELESS] + [HOME] * 8, 10, []),
    ("those without state are not away", [STATELESS] * 3 + [HOME], 10, []),
]


@pytest.mark.parametrize("specs, percentage, names", [row[1:] for row in LIMITS], ids=[row[0] for row in LIMITS])
def test_rebalance_above_imbalance_percentage(specs: list[PartitionSpec], percentage: int, names: list[str]) -> None:
    """controller 11.4: ratio = imbalanced / total. If ratio > pct / 100, strictly."""
    driver = rebalanced(*specs, leader_imbalance_per_broker_percentage=percentage)
    assert elected_partitions(driver) == names


def test_rebalance_uses_preferred_elections() -> None:
    """controller 11.4: a preferred election. All replicas receive LeaderAndIsr."""
    driver = rebalanced(OFFLINE_BROKERS)
    assert state_of(driver.stored("t-0")) == (1, (2, 1), 1)
    assert driver.recipients(Api.LEADER_AND_ISR, "t-0") == [1, 2]


@pytest.mark.parametrize(
    "spec, live",
    [(STUCK, (1, 2)), (PartitionSpec((1, 2), 2, (1, 2)), (2,))],
    ids=["not in sync", "dead"],
)
def test_ineligible_preferred_replica_is_not_elected(spec: PartitionSpec, live: tuple[int, ...]) -> None:
    """controller 11.4: candidates need the preferred replica online. It must be in the ISR."""
    driver = rebalanced(spec, live=live)
    assert (driver.writes(), driver.batches) == ([], [])
    assert not driver.performed(ReadStates), "an election without a result reads states"


def test_shutting_down_broker_is_not_elected() -> None:
    """controller 11.4: online is live and not shutting down."""
    driver = quiet({"t": [OFFLINE_BROKERS]})
    driver.cluster.brokers.shutting_down[driver.cluster.brokers.index_of([1])] = 1
    driver.handle(RebalanceLeaders())
    assert driver.writes() == []


def test_brokers_are_rebalanced_in_sequence() -> None:
    """controller 11.4: one bulk preferred election per broker that is over the limit. Others are left alone."""
    not_preferred = PartitionSpec((3, 1), 1, (1, 3))
    at_limit = [PartitionSpec((2, 3), 3, (3, 2))] + [healthy(2, 3)] * 9
    driver = quiet({"t": [OFFLINE_BROKERS, not_preferred, OFFLINE_BROKERS, not_preferred], "u": at_limit})
    driver.handle(RebalanceLeaders())
    assert driver.written() == [["t-0", "t-2"], ["t-1", "t-3"]]


def test_partition_in_reassignment_is_rebalanced() -> None:
    """controller 11.4: since 2.6. The first of all replicas counts, adding or not."""
    adding = PartitionSpec((3, 1, 2), 1, (1, 2, 3), adding_replicas=(3,), removing_replicas=(2,))
    driver = quiet({"t": [adding, OFFLINE_BROKERS]})
    driver.cluster.partitions.reassigning[0] = 1
    driver.handle(RebalanceLeaders())
    assert sorted(elected_partitions(driver)) == ["t-0", "t-1"]


def test_stale_version_is_retried() -> None:
    """controller 11.4: as in any election. The state in storage at that time counts."""
    driver = quiet({"t": [OFFLINE_BROKERS]})
    driver.before(WriteStates, lambda: driver.ensemble.write_state("t", 0, isr=(2,)))
    driver.handle(RebalanceLeaders())
    assert state_of(driver.stored("t-0")) == (2, (2,), 0)


# -- timers


def timers(driver: Driver) -> list[float]:
    return [effect.delay_ms for effect in driver.effects if isinstance(effect, SetTimer)]


@pytest.mark.parametrize("enabled, expected", [(True, [5_000.0]), (False, [])])
def test_first_check_is_five_seconds_after_failover(enabled: bool, expected: list[float]) -> None:
    """controller 3.2: step 11, if auto.leader.rebalance.enable: first check after 5 s."""
    driver = elected({"t": [OFFLINE_BROKERS]}, (1, 2), auto_leader_rebalance_enable=enabled)
    assert timers(driver) == expected
    driver.clock.advance(4.999)
    driver.follow()
    assert driver.stored("t-0").leader == 2
    driver.clock.advance(0.001)
    driver.follow()
    assert driver.stored("t-0").leader == (1 if enabled else 2)


@pytest.mark.parametrize("spec", [HOME, OFFLINE_BROKERS, STUCK], ids=["home", "away", "stuck"])
def test_next_check_is_after_interval(spec: PartitionSpec) -> None:
    """controller 11.4: every interval, rescheduled after each run."""
    driver = rebalanced(spec, leader_imbalance_check_interval_seconds=7)
    assert timers(driver) == [7_000.0]
