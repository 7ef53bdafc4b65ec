"""Every bulk change makes one line in the state-change log: how many, what became of them, and the first by name."""

from __future__ import annotations

import logging

import pytest

from kframe.core.context import NAMES_LOGGED
from kframe.model.events import BrokersChanged, Elect, ElectionRequested, ElectionType
from kframe.testing.clusters import cluster_of, healthy
from tests.core.driver import Driver

PARTITIONS = NAMES_LOGGED + 5


@pytest.fixture
def driver() -> Driver:
    """A controller of ``t``, whose partitions are on 1 and 2 and led by 1."""
    return Driver(cluster_of({"t": [healthy(1, 2)] * PARTITIONS}, registered=(1, 2)))


def lines(caplog: pytest.LogCaptureFixture) -> list[str]:
    """The messages behind ``[Controller id=... epoch=...]``."""
    found = [record for record in caplog.records if record.name == "kframe.statechange"]
    assert {record.levelno for record in found} <= {logging.INFO, logging.ERROR}
    return [record.getMessage().partition("] ")[2] for record in found]


def test_a_failure_of_a_broker_is_told_in_one_line_a_move(driver: Driver, caplog: pytest.LogCaptureFixture) -> None:
    driver.handle(Elect())
    driver.ensemble.unregister_brokers([1])
    caplog.clear()
    caplog.set_level(logging.INFO, "kframe.statechange")
    driver.handle(BrokersChanged())
    names = ", ".join(f"t-{number}" for number in range(NAMES_LOGGED)) + " and 5 more"
    assert lines(caplog) == [
        f"{PARTITIONS} partitions to OFFLINE: {names}",
        f"{PARTITIONS} leaders elected under OFFLINE: {names}",
        f"{PARTITIONS} replicas to OFFLINE of: {names}",
    ]


def test_a_failover_names_id_and_controller_epoch(driver: Driver, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "kframe.statechange")
    driver.handle(Elect())
    (line,) = [record.getMessage() for record in caplog.records if record.name == "kframe.statechange"]
    assert line.startswith(f"[Controller id=1000 epoch=1] {2 * PARTITIONS} replicas to ONLINE of: t-0, t-0, t-1, t-1, ")


def test_nothing_changed_is_not_told(driver: Driver, caplog: pytest.LogCaptureFixture) -> None:
    driver.handle(Elect())
    caplog.clear()
    caplog.set_level(logging.INFO, "kframe.statechange")
    driver.handle(ElectionRequested(ElectionType.PREFERRED, None))
    assert lines(caplog) == []
