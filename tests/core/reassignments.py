"""Helpers for tests of reassignment: request it, let replicas catch up, and read the result."""

from __future__ import annotations

from collections.abc import Sequence

from kframe.core.operations.topic_requests import ReassignmentResponse
from kframe.embedded import Api
from kframe.errors import ErrorCode
from kframe.model.events import (
    IsrChangesNotified,
    ReassignmentRequested,
    ReassignmentsStored,
)
from kframe.model.tables import Targets
from kframe.ports.store_requests import ReadReassignments
from kframe.testing.clusters import PartitionSpec
from tests.core.driver import Driver

NONE, LEADERSHIP = ErrorCode.NONE, Api.LEADER_AND_ISR
INVALID, UNKNOWN = ErrorCode.INVALID_REPLICA_ASSIGNMENT, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
IDLE = ErrorCode.NO_REASSIGNMENT_IN_PROGRESS
ALL = (1, 2, 3, 4, 5, 6)
NOT_REASSIGNING = PartitionSpec((1, 2, 3), 1, (1, 2, 3), leader_epoch=5)
REASSIGNING = PartitionSpec(
    (4, 5, 6, 1, 2, 3), 1, (1, 2, 3), leader_epoch=5, adding_replicas=(4, 5, 6), removing_replicas=(1, 2, 3)
)
TargetLists = Sequence[tuple[tuple[str, int], Sequence[int] | None]]


def submit(driver: Driver, targets: TargetLists) -> list[ErrorCode]:
    """Return the error codes of an AlterPartitionReassignments request."""
    response: ReassignmentResponse = driver.ask(ReassignmentRequested(Targets.of(targets), len(driver.replies) + 1))
    assert response.error is NONE
    return [ErrorCode(code) for code in response.codes.tolist()]


def reassign(driver: Driver, *replicas: int) -> list[ErrorCode]:
    return submit(driver, [(("t", 0), replicas)])


def catch_up(driver: Driver, isr: tuple[int, ...]) -> None:
    """Store another ISR as the leader does, with an ISR change notification."""
    driver.ensemble.write_state("t", 0, isr=isr)
    driver.ensemble.notify_isr_changes([("t", 0)])
    driver.handle(IsrChangesNotified())


def stops(driver: Driver, name: str = "t-0") -> list[tuple[int, bool]]:
    """Return (broker, delete flag) of each StopReplica entry of a partition."""
    return [
        (request["broker"], request["partitions"][name]["delete_partition"])
        for request in driver.requests(Api.STOP_REPLICA)
        if name in request["partitions"]
    ]


def store_reassignments(driver: Driver, targets: TargetLists) -> None:
    """Store a reassignment as an operator does, and send the event to the controller."""
    driver.ensemble.request_reassignments(Targets.of(targets))
    driver.handle(ReassignmentsStored())


def stored_targets(driver: Driver) -> dict[str, tuple[int, ...]]:
    """Return the stored reassignment: target replicas by partition."""
    targets = driver.store.perform(ReadReassignments())
    if targets is None:
        return {}
    names = zip(targets.topic.tolist(), targets.partition.tolist(), strict=True)
    return {f"{targets.names[t]}-{n}": tuple(targets.replicas[i].tolist()) for i, (t, n) in enumerate(names)}
