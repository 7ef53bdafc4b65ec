"""Automatic leader rebalance to preferred replicas (``controller.md`` section 11.4)."""

from __future__ import annotations

from typing import Final

import numpy as np
import pytest

from kframe.model.effects import SetTimer
from kframe.model.events import RebalanceLeaders
from kframe.ports.store_requests import ReadStates
from kframe.testing.clusters import PartitionSpec, healthy
from tests.core.driver import Driver, elected, quiet

BALANCED: Final = healthy(1, 2)
IMBALANCED: Final = PartitionSpec((1, 2), 2, (2, 1))
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
    ("at the limit", [IMBALANCED] + [BALANCED] * 9, 10, []),
    ("above the limit", [IMBALANCED, IMBALANCED] + [BALANCED] * 9, 10, ["t-0", "t-1"]),
    ("one of nine", [IMBALANCED] + [BALANCED] * 8, 10, ["t-0"]),
    ("zero allows none", [IMBALANCED] + [BALANCED] * 99, 0, ["t-0"]),
    ("zero and none", [BALANCED] * 3, 0, []),
    ("a hundred allows all", [IMBALANCED] * 3, 100, []),
    ("those that cannot move count", [IMBALANCED, STUCK] + [BALANCED] * 9, 10, ["t-0"]),
    ("those without leader count", [IMBALANCED, LEADERLESS] + [BALANCED] * 9, 10, ["t-0", "t-1"]),
    ("those without state count in the total only", [IMBALANCED, STATELESS] + [BALANCED] * 8, 10, []),
    ("those without state are not imbalanced", [STATELESS] * 3 + [BALANCED], 10, []),
]


@pytest.mark.parametrize("specs, percentage, names", [row[1:] for row in LIMITS], ids=[row[0] for row in LIMITS])
def test_rebalance_above_imbalance_percentage(specs: list[PartitionSpec], percentage: int, names: list[str]) -> None:
    """controller 11.4: ratio = imbalanced / total. If ratio > pct / 100, strictly."""
    driver = rebalanced(*specs, leader_imbalance_per_broker_percentage=percentage)
    assert elected_partitions(driver) == names


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


def test_brokers_are_rebalanced_in_sequence() -> None:
    """controller 11.4: one bulk preferred election per broker that is over the limit. Others are left alone."""
    not_preferred = PartitionSpec((3, 1), 1, (1, 3))
    at_limit = [PartitionSpec((2, 3), 3, (3, 2))] + [healthy(2, 3)] * 9
    driver = quiet({"t": [IMBALANCED, not_preferred, IMBALANCED, not_preferred], "u": at_limit})
    driver.handle(RebalanceLeaders())
    assert driver.written() == [["t-0", "t-2"], ["t-1", "t-3"]]


def test_partition_in_reassignment_is_rebalanced() -> None:
    """controller 11.4: since 2.6. The first of all replicas counts, adding or not."""
    adding = PartitionSpec((3, 1, 2), 1, (1, 2, 3), adding_replicas=(3,), removing_replicas=(2,))
    driver = quiet({"t": [adding, IMBALANCED]})
    driver.cluster.partitions.set_reassigning(np.array([0]), True)
    driver.handle(RebalanceLeaders())
    assert sorted(elected_partitions(driver)) == ["t-0", "t-1"]


# -- timers


def timers(driver: Driver) -> list[float]:
    return [effect.delay_ms for effect in driver.effects if isinstance(effect, SetTimer)]


@pytest.mark.parametrize("enabled, expected", [(True, [5_000.0]), (False, [])])
def test_first_check_is_five_seconds_after_failover(enabled: bool, expected: list[float]) -> None:
    """controller 3.2: step 11, if auto.leader.rebalance.enable: first check after 5 s."""
    driver = elected({"t": [IMBALANCED]}, (1, 2), auto_leader_rebalance_enable=enabled)
    assert timers(driver) == expected
    driver.clock.advance(4.999)
    driver.follow()
    assert driver.stored("t-0").leader == 2
    driver.clock.advance(0.001)
    driver.follow()
    assert driver.stored("t-0").leader == (1 if enabled else 2)


@pytest.mark.parametrize("spec", [BALANCED, IMBALANCED, STUCK], ids=["balanced", "imbalanced", "stuck"])
def test_next_check_is_after_interval(spec: PartitionSpec) -> None:
    """controller 11.4: every interval, rescheduled after each run."""
    driver = rebalanced(spec, leader_imbalance_check_interval_seconds=7)
    assert timers(driver) == [7_000.0]
