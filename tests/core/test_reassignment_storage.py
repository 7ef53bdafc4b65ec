"""Reassignment stored by an operator (``controller.md`` section 7.6)."""

from __future__ import annotations

from kframe.model.effects import Enqueue
from kframe.model.events import (
    ListReassignmentsRequested,
    ReassignmentsStored,
)
from kframe.model.tables import Targets
from kframe.ports.store_requests import ReadReassignments, WriteReassignments
from tests.core.driver import assigned, quiet
from tests.core.reassignments import (
    NOT_REASSIGNING,
    REASSIGNING,
    catch_up,
    reassign,
    store_reassignments,
    stored_targets,
)


def test_stored_target_is_not_validated() -> None:
    """controller 7.6: reassignTo(target) without validating liveness. The record stays until the target is reached."""
    driver = quiet({"t": [NOT_REASSIGNING, NOT_REASSIGNING]})
    store_reassignments(driver, [(("t", 0), (99, 1)), (("t", 1), (4, 5, 6))])
    assert assigned(driver.stored("t-0")) == ((99, 1, 2, 3), (99,), (2, 3))
    assert assigned(driver.stored("t-1")) == ((4, 5, 6, 1, 2, 3), (4, 5, 6), (1, 2, 3))
    assert stored_targets(driver).keys() == {"t-0", "t-1"}


def test_failed_entries_are_removed() -> None:
    """controller 7.6: unknown, being deleted."""
    driver = quiet({"t": [NOT_REASSIGNING], "leaving": [NOT_REASSIGNING]})
    driver.cluster.topics.deleting[driver.cluster.topics.find("leaving")] = 1
    store_reassignments(
        driver, [(("nowhere", 0), (1,)), (("t", 0), (4, 5, 6)), (("t", 7), (1,)), (("leaving", 0), (4,))]
    )
    assert stored_targets(driver).keys() == {"t-0"}
    assert len(driver.performed(WriteReassignments)) == 1


def test_empty_reassignment_record_is_deleted_and_the_next_is_read() -> None:
    """controller 7.6: if that empties it, it is deleted and the event re-enqueued to watch again."""
    driver = quiet({"t": [NOT_REASSIGNING]})
    store_reassignments(driver, [(("nowhere", 0), (1,))])
    assert driver.store.perform(ReadReassignments()) is None
    assert Enqueue(ReassignmentsStored()) in driver.effects
    driver.follow()
    driver.ensemble.request_reassignments(Targets.of([(("t", 0), (4, 5, 6))]))
    assert driver.events == [ReassignmentsStored()]


def test_completed_target_is_removed() -> None:
    """controller 7.1: B7, removed from the record only if its target equals the completed replica list."""
    driver = quiet({"t": [NOT_REASSIGNING, NOT_REASSIGNING]})
    store_reassignments(driver, [(("t", 0), (3, 2, 1)), (("t", 1), (4, 5, 6))])
    assert stored_targets(driver).keys() == {"t-1"}
    driver.handle(ListReassignmentsRequested(None, 1))
    assert driver.replies[1].rows.tolist() == [1]


def test_other_stored_target_is_retained() -> None:
    """controller 7.1: B7, a record with another target is not removed."""
    driver = quiet({"t": [REASSIGNING]})
    driver.cluster.partitions.reassigning[0] = 1
    driver.ensemble.request_reassignments(Targets.of([(("t", 0), (4, 6))]))
    catch_up(driver, (1, 4, 5, 6))
    assert driver.known("t-0").replicas == (4, 5, 6)
    assert stored_targets(driver).keys() == {"t-0"}


def test_stored_reassignment_overrides_request() -> None:
    """controller 7.6: a submission through storage overrides one through the API."""
    driver = quiet({"t": [NOT_REASSIGNING]})
    reassign(driver, 4, 5, 6)
    store_reassignments(driver, [(("t", 0), (1, 4))])
    assert assigned(driver.stored("t-0")) == ((1, 4, 2, 3), (4,), (2, 3))
