"""ISR members that registered again while no controller was active, as the next controller treats them."""

from __future__ import annotations

from typing import Any

import pytest

from kframe.model.events import Reelect
from kframe.testing.clusters import PartitionSpec, healthy
from tests.core.driver import Driver, elected, standby

CHECKED: dict[str, Any] = {"kframe_failover_check_epochs": "true"}
#: Storage has no leader, so that the first controller writes one.
NEW = PartitionSpec((1, 2, 3))


def failed_over(driver: Driver, *bounced: int, dead: tuple[int, ...] = ()) -> None:
    """A controller takes over and resigns. Brokers fail and register. The controller takes over again."""
    driver.handle(Reelect())
    driver.ensemble.drop_controller()
    driver.ensemble.bounce_brokers(bounced)
    driver.ensemble.unregister_brokers(dead)
    driver.forget()
    driver.handle(Reelect())


@pytest.mark.parametrize(
    ("bounced", "dead", "leader", "isr"),
    [
        ((), (), 1, (1, 2, 3)),
        ((1,), (), 2, (2, 3)),
        ((3,), (), 1, (1, 2)),
        ((1, 2), (), 3, (3,)),
        ((1, 2, 3), (), 1, (1, 2, 3)),
        ((1,), (2, 3), 1, (1,)),
        ((2,), (1,), 3, (3,)),
        ((2, 3), (1,), 2, (2, 3)),
    ],
    ids=[
        "nobody",
        "the leader",
        "a follower",
        "all but one",
        "all",
        "the last that lives",
        "a dead leader's follower",
        "all that live",
    ],
)
def test_broker_reregistered_without_controller_leaves_isr(
    bounced: tuple[int, ...], dead: tuple[int, ...], leader: int, isr: tuple[int, ...]
) -> None:
    """They stay in the ISR if no other member is registered."""
    driver = standby({"t": [NEW]}, (1, 2, 3), **CHECKED)
    failed_over(driver, *bounced, dead=dead)
    stored = driver.stored("t-0")
    assert (stored.leader, stored.isr) == (leader, isr)


def test_members_leave_in_one_write() -> None:
    """Found by the simulator, seed 265204826: a controller failed after it had removed one of two members. The state
    was newer than the registration of the other, and the next controller let it lead with an empty disk."""
    driver = standby({"t": [NEW]}, (1, 2, 3), **CHECKED)
    failed_over(driver, 1, 2)
    removal, election = 1, 1
    assert driver.stored("t-0").partition_epoch == removal + election


@pytest.mark.parametrize(
    ("config", "bounced", "dead", "raised"),
    [
        (CHECKED, (1, 2, 3), (), 1),
        (CHECKED, (1,), (2, 3), 3),
        (CHECKED, (), (), 0),
        ({}, (1, 2, 3), (), 0),
    ],
    ids=["all registered again", "alone, and two members fail", "no broker", "as Kafka"],
)
def test_reregistered_leader_that_stays_gets_another_leader_epoch(
    config: dict[str, Any], bounced: tuple[int, ...], dead: tuple[int, ...], raised: int
) -> None:
    """Found by the simulator, seed 3017: the leader had an empty disk, and continued under its leader epoch. A follower
    with other records under that epoch did not truncate them."""
    driver = standby({"t": [NEW]}, (1, 2, 3), **config)
    failed_over(driver, *bounced, dead=dead)
    assert driver.stored("t-0").leader_epoch == raised


def test_reregistered_broker_can_lead_by_default() -> None:
    driver = standby({"t": [NEW]}, (1, 2, 3))
    failed_over(driver, 1)
    assert (driver.stored("t-0").leader, driver.stored("t-0").isr) == (1, (1, 2, 3))


def test_isr_written_after_reregistration_is_retained() -> None:
    driver = elected({"t": [NEW, NEW]}, (1, 2, 3), **CHECKED)
    driver.ensemble.drop_controller()
    driver.ensemble.bounce_brokers([1])
    driver.ensemble.write_state("t", 0, isr=(1, 2))
    driver.handle(Reelect())
    assert [(driver.stored(name).leader, driver.stored(name).isr) for name in ("t-0", "t-1")] == [
        (1, (1, 2)),
        (2, (2, 3)),
    ]


def test_isr_without_zxid_is_retained() -> None:
    """As for a cluster that was copied into an in-memory store."""
    driver = standby({"t": [healthy(1, 2, 3)]}, (1, 2, 3), **CHECKED)
    failed_over(driver, 1)
    assert driver.stored("t-0").leader == 1
    assert driver.cluster.state_zxid is None, "of no use any more"
