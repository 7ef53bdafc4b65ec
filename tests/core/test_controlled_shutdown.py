"""Controlled shutdown (``controller.md`` section 8): valid requests, moved leaders and responses."""

from __future__ import annotations

import pytest

from kframe.embedded import Api
from kframe.errors import ErrorCode
from kframe.model.events import ControlledShutdownRequested
from kframe.model.ids import NO_BROKER_EPOCH
from kframe.testing.clusters import PartitionSpec, healthy, registration
from tests.core.driver import Driver, quiet, state_of

LED, FOLLOWED, ALONE = healthy(2, 1), healthy(1, 2, 3), healthy(2)
REGISTERED = [registration(1, broker_epoch=10), registration(2, broker_epoch=20), registration(3, broker_epoch=30)]


def ask(driver: Driver, broker_id: int, broker_epoch: int = NO_BROKER_EPOCH) -> tuple[ErrorCode, list[str]]:
    """Return the error and the remaining partitions."""
    response = driver.ask(ControlledShutdownRequested(broker_id, broker_epoch, token=len(driver.replies) + 1))
    return response.error, [driver.cluster.name(row) for row in response.remaining.tolist()]


#: (broker, broker epoch in the request, error).
ASKERS = [
    ("as registered", 2, 20, ErrorCode.NONE),
    ("without an epoch", 2, NO_BROKER_EPOCH, ErrorCode.NONE),
    ("with a later epoch", 2, 21, ErrorCode.NONE),
    ("with an earlier epoch", 2, 19, ErrorCode.STALE_BROKER_EPOCH),
    ("unknown, with an epoch", 9, 20, ErrorCode.UNKNOWN_SERVER_ERROR),
    ("unknown, without an epoch", 9, NO_BROKER_EPOCH, ErrorCode.BROKER_NOT_AVAILABLE),
    ("dead, with an epoch", 4, 20, ErrorCode.UNKNOWN_SERVER_ERROR),
    ("dead, without an epoch", 4, NO_BROKER_EPOCH, ErrorCode.BROKER_NOT_AVAILABLE),
]


@pytest.mark.parametrize("broker_id, broker_epoch, error", [row[1:] for row in ASKERS], ids=[row[0] for row in ASKERS])
def test_request_needs_registered_broker_and_current_epoch(broker_id: int, broker_epoch: int, error: ErrorCode) -> None:
    """controller 8: an epoch that is shown is compared; unregistered brokers are refused.
    controller 3.5: the broker epoch of a ControlledShutdown is at least the cached one.
    """
    driver = quiet({"t": [LED, PartitionSpec((4, 1), 1, (1,))]}, REGISTERED)
    assert ask(driver, broker_id, broker_epoch)[0] is error
    assert (driver.writes() == []) is (error is not ErrorCode.NONE)


def test_led_partitions_elect_and_followers_leave_isr() -> None:
    """controller 8: led partitions are elected, followers leave the ISR. Partitions with one replica do not count."""
    driver = quiet({"t": [LED, FOLLOWED, ALONE]}, (1, 2, 3))
    assert ask(driver, 2) == (ErrorCode.NONE, [])
    assert [state_of(driver.stored(f"t-{n}")) for n in range(3)] == [(1, (1,), 1), (1, (1, 3), 1), (2, (2,), 0)]


def test_followers_receive_two_stop_replica_requests() -> None:
    """controller 8: StopReplica is queued twice for followers. The old leader receives the new one."""
    driver = quiet({"t": [LED, FOLLOWED]}, (1, 2, 3))
    ask(driver, 2)
    assert driver.recipients(Api.STOP_REPLICA, "t-1") == [2, 2]
    assert driver.recipients(Api.LEADER_AND_ISR, "t-0") == [1, 2]


def test_broker_is_shutting_down_until_it_unregisters() -> None:
    """controller 8: it stays shutting down whatever remains, until its registration ends."""
    driver = quiet({"t": [PartitionSpec((2, 3), 2, (2,))]}, (1, 2, 3))
    assert ask(driver, 2) == (ErrorCode.NONE, ["t-0"])
    assert driver.cluster.brokers.shutting_down.tolist() == [0, 1, 0]
    assert ask(driver, 2) == (ErrorCode.NONE, ["t-0"])
    driver.fail_brokers(2)
    assert driver.cluster.brokers.shutting_down.tolist() == [0, 0, 0]
