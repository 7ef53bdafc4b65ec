"""Reassignment as in Kafka 0.8 (``controller.md`` section 7.8): refused requests, and the stored record.

``docs/explanation/reassignment.md`` has the twelve steps; ``tests/whatif/test_reassign_worked_example.py`` runs them.
"""

from __future__ import annotations

import pytest

from kframe.embedded import Api
from kframe.errors import ErrorCode
from kframe.model.events import (
    DeletionsMarked,
    ReassignmentRequested,
    ReassignmentsStored,
    Reelect,
)
from kframe.model.tables import Targets
from kframe.ports.store_requests import WriteReassignments
from kframe.testing.clusters import healthy
from tests.core.driver import Driver, assigned, quiet, state_of
from tests.core.reassignments import catch_up, stored_targets

TargetLists = dict[str, tuple[int, ...]]

NOT_REASSIGNING, INVALID = ((1, 2, 3), (), ()), ErrorCode.INVALID_REPLICA_ASSIGNMENT
GROWN = ((1, 2, 3, 4, 5), (), ())


def make_driver(live: tuple[int, ...] = (1, 2, 3, 4, 5)) -> Driver:
    """Partitions ``t-0`` and ``u-0``, both on brokers 1, 2 and 3."""
    return quiet({"t": [healthy(1, 2, 3)], "u": [healthy(1, 2, 3)]}, live, reassignment_protocol="0.8")


def targets(lists: TargetLists) -> Targets:
    return Targets.of([((name.rpartition("-")[0], int(name[-1])), replicas) for name, replicas in lists.items()])


def store_reassignments(driver: Driver, lists: TargetLists) -> None:
    """Store these reassignments as an operator does. Send the event to the controller."""
    driver.ensemble.request_reassignments(targets(lists))
    driver.handle(ReassignmentsStored())
    driver.follow()


#: (case, target of t-0, registered brokers). The reassignment of u-0 is accepted in every case.
REFUSED = [
    ("the present list", (1, 2, 3), (1, 2, 3, 4, 5)),
    ("a new replica is dead", (4, 5), (1, 2, 3, 4)),
    ("a replica that stays is dead", (1, 4), (2, 3, 4)),
    ("no replica", (), (1, 2, 3, 4, 5)),
    ("the present list, one broker twice", (1, 2, 3, 2), (1, 2, 3, 4, 5)),
]


@pytest.mark.parametrize("target, live", [row[1:] for row in REFUSED], ids=[row[0] for row in REFUSED])
def test_invalid_target_is_refused(target: tuple[int, ...], live: tuple[int, ...]) -> None:
    """controller 7.8: submission refuses and takes the partition out of storage."""
    driver = make_driver(live)
    store_reassignments(driver, {"t-0": target, "u-0": (2, 3, 4)})
    assert assigned(driver.stored("t-0")) == NOT_REASSIGNING
    assert assigned(driver.stored("u-0")) == ((1, 2, 3, 4), (), ())
    assert stored_targets(driver) == {"u-0": (2, 3, 4)}


def test_unknown_partitions_and_deleting_topics_are_refused() -> None:
    """controller 7.8: submission refuses unknown partitions and topics under deletion."""
    driver = quiet({"t": [healthy(1, 9)], "u": [healthy(1, 2)]}, (1, 2, 3), reassignment_protocol="0.8")
    driver.ensemble.mark_for_deletion(["t"])
    driver.handle(DeletionsMarked())
    store_reassignments(driver, {"t-0": (2,), "nosuch-0": (1,), "u-7": (1,), "u-0": (2, 3)})
    assert stored_targets(driver) == {"u-0": (2, 3)}
    assert assigned(driver.stored("t-0")) == ((1, 9), (), ())


def test_refused_request_returns_invalid_replica_assignment() -> None:
    """controller 7.8: submission refuses with INVALID_REPLICA_ASSIGNMENT if it was a request."""
    driver = make_driver()
    response = driver.ask(ReassignmentRequested(targets({"t-0": (1, 2, 3), "u-0": (4, 5)}), 1))
    assert response.codes.tolist() == [INVALID, ErrorCode.NONE]
    assert (assigned(driver.stored("t-0")), stored_targets(driver)) == (NOT_REASSIGNING, {"u-0": (4, 5)})


def test_broker_named_twice_counts_once() -> None:
    """controller 7.8: steps 1 to 12 with a target that Kafka 0.8 would store as it is."""
    driver = make_driver()
    store_reassignments(driver, {"t-0": (4, 5, 4)})
    assert assigned(driver.known("t-0")) == assigned(driver.stored("t-0")) == GROWN
    assert sorted(driver.recipients(Api.LEADER_AND_ISR, "t-0")) == [1, 2, 3, 4, 5]
    catch_up(driver, (1, 2, 3, 4, 5))
    assert assigned(driver.known("t-0")) == assigned(driver.stored("t-0")) == ((4, 5), (), ())
    assert stored_targets(driver) == {}


def test_reassignment_in_progress_is_not_replaced() -> None:
    """controller 7.8: no cancel, no override of a running one, by request or through storage."""
    driver = make_driver()
    store_reassignments(driver, {"t-0": (4, 5)})
    response = driver.ask(ReassignmentRequested(targets({"t-0": (1, 4)}), 1))
    assert response.codes.tolist() == [INVALID]
    driver.store.perform(WriteReassignments(targets({"t-0": (1, 4), "u-0": (1, 4)})))
    driver.handle(ReassignmentsStored())
    assert assigned(driver.stored("t-0")) == GROWN
    assert stored_targets(driver) == {"t-0": (1, 4), "u-0": (1, 4)}
    catch_up(driver, (1, 2, 3, 4, 5))
    assert assigned(driver.stored("t-0")) == ((4, 5), (), ())
    assert stored_targets(driver) == {"u-0": (1, 4)}


def test_requests_are_added_to_stored_reassignments() -> None:
    """controller 7.8: storage alone says where a partition goes, so that the next controller continues from storage."""
    driver = make_driver()
    store_reassignments(driver, {"u-0": (4, 5)})
    driver.ask(ReassignmentRequested(targets({"t-0": (4, 5)}), 1))
    driver.follow()
    assert stored_targets(driver) == {"u-0": (4, 5), "t-0": (4, 5)}
    driver.ensemble.drop_controller()
    driver.handle(Reelect())
    driver.follow()
    catch_up(driver, (1, 2, 3, 4, 5))
    assert assigned(driver.stored("t-0")) == ((4, 5), (), ())
    assert state_of(driver.stored("t-0"))[:2] == (4, (4, 5))
    assert assigned(driver.stored("u-0")) == GROWN


def test_target_in_sync_completes_at_once() -> None:
    """controller 7.8: steps 1 to 12 at once where the target is in sync already."""
    driver = make_driver()
    store_reassignments(driver, {"t-0": (3, 2)})
    assert assigned(driver.stored("t-0")) == ((3, 2), (), ())
    assert (state_of(driver.stored("t-0"))[:2], stored_targets(driver)) == ((3, (2, 3)), {})
