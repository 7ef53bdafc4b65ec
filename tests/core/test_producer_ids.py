"""Blocks of producer ids (``controller.md`` section 15)."""

from __future__ import annotations

import pytest

from kframe.core.operations.producer_ids import ProducerIdsResponse
from kframe.errors import ErrorCode, StoreError
from kframe.model.events import ProducerIdsRequested
from kframe.ports.store_requests import AllocateProducerIds
from kframe.testing.clusters import registration
from tests.core.driver import Driver, quiet


def make_driver() -> Driver:
    return quiet({}, (registration(1, broker_epoch=100), registration(2, broker_epoch=200)))


#: (case, broker, broker epoch, code).
CHECKS = [
    ("good", 1, 100, ErrorCode.NONE),
    ("unknown broker", 9, 100, ErrorCode.BROKER_ID_NOT_REGISTERED),
    ("older registration", 1, 99, ErrorCode.STALE_BROKER_EPOCH),
    ("later registration", 1, 101, ErrorCode.STALE_BROKER_EPOCH),
    ("no epoch", 1, -1, ErrorCode.STALE_BROKER_EPOCH),
    ("another broker's", 2, 100, ErrorCode.STALE_BROKER_EPOCH),
    ("broker that has gone", 3, 300, ErrorCode.BROKER_ID_NOT_REGISTERED),
    ("the controller itself", 1000, -1, ErrorCode.NONE),
    ("somebody in its name", 1000, 100, ErrorCode.BROKER_ID_NOT_REGISTERED),
]


@pytest.mark.parametrize("broker, broker_epoch, code", [row[1:] for row in CHECKS], ids=[row[0] for row in CHECKS])
def test_request_needs_registered_broker_and_current_epoch(broker: int, broker_epoch: int, code: ErrorCode) -> None:
    """controller 3.5: the broker epoch of an AllocateProducerIds is equal to the cached one.
    controller 15: unknown broker 102; an epoch that is not equal 77.
    """
    driver = make_driver()
    driver.cluster.brokers.index_of([3])
    response = driver.ask(ProducerIdsRequested(broker, broker_epoch, 1))
    assert response == ProducerIdsResponse(code, 0, 0 if code else 1000)
    assert bool(driver.performed(AllocateProducerIds)) == (code is ErrorCode.NONE)


def test_blocks_of_1000_ids_are_unique() -> None:
    """controller 15: block 0..999, then the next 1000 after block_end. A later controller continues."""
    driver = make_driver()
    blocks = [
        driver.ask(ProducerIdsRequested(broker, 100 * broker, token)) for token, broker in enumerate((1, 2, 1), 1)
    ]
    assert [(block.first, block.length) for block in blocks] == [(0, 1000), (1000, 1000), (2000, 1000)]
    assert driver.connect().perform(AllocateProducerIds(2)) == 3000


def test_storage_failure_returns_error_to_broker() -> None:
    """controller 15: the broker is not left waiting, since it can send the request to the next controller."""
    driver = make_driver()
    driver.fail(AllocateProducerIds, StoreError("lost"))
    assert driver.ask(ProducerIdsRequested(1, 100, 1)).error is ErrorCode.NOT_CONTROLLER
    assert not driver.controller.active
