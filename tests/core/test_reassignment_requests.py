"""Reassignment requested by AlterPartitionReassignments, or stored by an operator (``controller.md`` 7.5 and 7.6)."""

from __future__ import annotations

import numpy as np
import pytest

from kframe.errors import ErrorCode
from kframe.model.tables import Targets
from kframe.ports.store_requests import ReadReassignments
from tests.core.driver import assigned, quiet
from tests.core.reassignments import (
    IDLE,
    INVALID,
    NONE,
    NOT_REASSIGNING,
    REASSIGNING,
    UNKNOWN,
    catch_up,
    reassign,
    store_reassignments,
    stored_targets,
    submit,
)

#: (case, target, error code). Partition t-0 is on 1, 2, 3. Broker 6 is dead, broker 5 is shutting down.
CHECKS: list[tuple[str, tuple[int, ...] | None, ErrorCode]] = [
    ("empty", (), INVALID),
    ("duplicate", (4, 4), INVALID),
    ("duplicate of its own", (1, 1), INVALID),
    ("negative", (-1, 1), INVALID),
    ("dead", (6, 1), INVALID),
    ("shutting down", (5, 1), INVALID),
    ("unknown", (99, 1), INVALID),
    ("cancel of nothing", None, IDLE),
    ("good", (4, 1), NONE),
]


@pytest.mark.parametrize("target, code", [row[1:] for row in CHECKS], ids=[row[0] for row in CHECKS])
def test_invalid_request_returns_error_code(target: tuple[int, ...] | None, code: ErrorCode) -> None:
    """controller 7.5: empty, duplicate ids, negative id, adding replica not live 39. Cancel of nothing 85."""
    driver = quiet({"t": [NOT_REASSIGNING]}, (1, 2, 3, 4, 5))
    driver.cluster.brokers.index_of([6])
    driver.cluster.brokers.shutting_down[driver.cluster.brokers.index_of([5])] = 1
    assert submit(driver, [(("t", 0), target)]) == [code]
    if code is not NONE:
        assert assigned(driver.stored("t-0")) == ((1, 2, 3), (), ())
        assert driver.batches == []


def test_existing_replicas_may_be_dead() -> None:
    """controller 7.5: only added replicas must be live."""
    driver = quiet({"t": [NOT_REASSIGNING]}, (1, 2, 4))
    assert reassign(driver, 3, 1, 4) == [NONE]


@pytest.mark.parametrize(("topic", "partition"), [("nowhere", 0), ("t", 1), ("t", -1), ("leaving", 0)])
def test_unknown_partition_returns_error(topic: str, partition: int) -> None:
    """controller 7.5: topic queued for deletion. Without a current assignment also 3."""
    driver = quiet({"t": [NOT_REASSIGNING], "leaving": [NOT_REASSIGNING]})
    driver.cluster.topics.deleting[driver.cluster.topics.find("leaving")] = 1
    assert submit(driver, [((topic, partition), (4, 5))]) == [UNKNOWN]


def test_request_overrides_stored_reassignment() -> None:
    """controller 7.5: entries of accepted partitions are removed from the stored reassignment."""
    driver = quiet({"t": [NOT_REASSIGNING, NOT_REASSIGNING]})
    driver.ensemble.request_reassignments(Targets.of([(("t", 0), (4,)), (("t", 1), (5,))]))
    assert submit(driver, [(("t", 0), (6, 1)), (("t", 1), (99,))]) == [NONE, INVALID]
    remaining = driver.store.perform(ReadReassignments())
    assert remaining is not None
    assert (remaining.names, remaining.partition.tolist()) == (("t",), [1])


def test_stored_target_is_not_validated() -> None:
    """controller 7.6: reassignTo(target) without validating liveness. The record stays until the target is reached."""
    driver = quiet({"t": [NOT_REASSIGNING, NOT_REASSIGNING]})
    store_reassignments(driver, [(("t", 0), (99, 1)), (("t", 1), (4, 5, 6))])
    assert assigned(driver.stored("t-0")) == ((99, 1, 2, 3), (99,), (2, 3))
    assert assigned(driver.stored("t-1")) == ((4, 5, 6, 1, 2, 3), (4, 5, 6), (1, 2, 3))
    assert stored_targets(driver).keys() == {"t-0", "t-1"}


def test_other_stored_target_is_retained() -> None:
    """controller 7.1: B7, a record with another target is not removed."""
    driver = quiet({"t": [REASSIGNING]})
    driver.cluster.partitions.set_reassigning(np.array([0]), True)
    driver.ensemble.request_reassignments(Targets.of([(("t", 0), (4, 6))]))
    catch_up(driver, (1, 4, 5, 6))
    assert driver.known("t-0").replicas == (4, 5, 6)
    assert stored_targets(driver).keys() == {"t-0"}
