"""Reassignment stored by an operator (``controller.md`` section 7.6)."""

from __future__ import annotations

from kframe.model.effects import Enqueue
from kframe.model.events import (
    ListReassignmentsRequested,
    ReassignmentsLeft,
)
from kframe.model.store_requests import WriteReassignments
from kframe.model.tables import Targets
from tests.core.driver import assigned, quiet
from tests.core.reassignments import (
    MOVING,
    RESTED,
    asked,
    catch_up,
    leave,
    move,
    stored_targets,
)


def test_storage_is_believed() -> None:
    """controller 7.6: reassignTo(target) without validating liveness. The record stays until the target is reached."""
    driver = quiet({"t": [RESTED, RESTED]})
    leave(driver, [(("t", 0), (99, 1)), (("t", 1), (4, 5, 6))])
    assert assigned(driver.stored("t-0")) == ((99, 1, 2, 3), (99,), (2, 3))
    assert assigned(driver.stored("t-1")) == ((4, 5, 6, 1, 2, 3), (4, 5, 6), (1, 2, 3))
    assert stored_targets(driver).keys() == {"t-0", "t-1"}


def test_failed_entries_are_removed() -> None:
    """controller 7.6: unknown, being deleted."""
    driver = quiet({"t": [RESTED], "leaving": [RESTED]})
    driver.cluster.topics.deleting[driver.cluster.topics.find("leaving")] = 1
    leave(driver, [(("nowhere", 0), (1,)), (("t", 0), (4, 5, 6)), (("t", 7), (1,)), (("leaving", 0), (4,))])
    assert stored_targets(driver).keys() == {"t-0"}
    assert asked(driver, WriteReassignments) == 1


def test_empty_reassignment_record_is_deleted_and_the_next_is_read() -> None:
    """controller 7.6: if that empties it, it is deleted and the event re-enqueued to watch again."""
    driver = quiet({"t": [RESTED]})
    leave(driver, [(("nowhere", 0), (1,))])
    assert driver.store.read_reassignments() is None
    assert Enqueue(ReassignmentsLeft()) in driver.effects
    driver.follow()
    driver.ensemble.leave_reassignments(Targets.of([(("t", 0), (4, 5, 6))]))
    assert driver.events == [ReassignmentsLeft()]


def test_reached_target_is_removed() -> None:
    """controller 7.1: B7, removed from the record only if its target equals the completed replica list."""
    driver = quiet({"t": [RESTED, RESTED]})
    leave(driver, [(("t", 0), (3, 2, 1)), (("t", 1), (4, 5, 6))])
    assert stored_targets(driver).keys() == {"t-1"}
    driver.handle(ListReassignmentsRequested(None, 1))
    assert driver.replies[1].rows.tolist() == [1]


def test_other_target_in_storage_stays() -> None:
    """controller 7.1: B7, a record with another target is not removed."""
    driver = quiet({"t": [MOVING]})
    driver.cluster.partitions.reassigning[0] = 1
    driver.ensemble.leave_reassignments(Targets.of([(("t", 0), (4, 6))]))
    catch_up(driver, (1, 4, 5, 6))
    assert driver.known("t-0").replicas == (4, 5, 6)
    assert stored_targets(driver).keys() == {"t-0"}


def test_storage_overrides_the_api() -> None:
    """controller 7.6: a submission through storage overrides one through the API."""
    driver = quiet({"t": [RESTED]})
    move(driver, 4, 5, 6)
    leave(driver, [(("t", 0), (1, 4))])
    assert assigned(driver.stored("t-0")) == ((1, 4, 2, 3), (4,), (2, 3))
