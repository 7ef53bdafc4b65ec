"""Helpers for tests of topic deletion: mark topics, confirm deletions and read the remaining state."""

from __future__ import annotations

from kframe.embedded import Api
from kframe.errors import ErrorCode
from kframe.model.events import (
    DeletionsMarked,
    StopReplicaResponseReceived,
)
from kframe.model.ids import NO_BROKER_EPOCH, ReplicaState
from kframe.ports.store_requests import ReadDeletions, ReadTopicNames
from kframe.testing.clusters import healthy
from tests.core.driver import Driver, quiet

NONE, STORAGE = ErrorCode.NONE, ErrorCode.KAFKA_STORAGE_ERROR
ALL = (1, 2, 3)
STARTED, DONE, INELIGIBLE = (
    ReplicaState.DELETION_STARTED,
    ReplicaState.DELETION_SUCCESSFUL,
    ReplicaState.DELETION_INELIGIBLE,
)
QUEUED, HALTED, BEGUN = "deleting", "deletion_halted", "deletion_started"


def make_driver(live: tuple[int, ...] = ALL, **config: object) -> Driver:
    """Topic ``t`` has two partitions on brokers 1 and 2. Topic ``kept`` has one partition on all three brokers."""
    return quiet({"t": [healthy(1, 2), healthy(2, 1)], "kept": [healthy(1, 2, 3)]}, live, **config)


def mark(driver: Driver, *names: str) -> None:
    """Mark topics for deletion and send the event to the controller."""
    driver.ensemble.mark_for_deletion(names)
    driver.handle(DeletionsMarked())
    driver.events.clear()


def confirm(
    driver: Driver,
    broker_id: int,
    *names: str,
    error: ErrorCode = NONE,
    failed: tuple[str, ...] = (),
    controller_epoch: int | None = None,
    broker_epoch: int = NO_BROKER_EPOCH,
) -> None:
    """Respond to StopReplica (with delete) for these partitions as a broker."""
    epoch = driver.context.controller_epoch if controller_epoch is None else controller_epoch
    errors = tuple(((name.rpartition("-")[0], int(name.rpartition("-")[2])), STORAGE) for name in failed)
    driver.handle(StopReplicaResponseReceived(broker_id, error, errors, epoch, driver.rows(*names), broker_epoch))
    driver.events.clear()


def flags(driver: Driver, name: str = "t") -> set[str]:
    """Return the deletion sets that contain the topic: queued, halted, started."""
    topics = driver.cluster.topics
    return {column for column in (QUEUED, HALTED, BEGUN) if getattr(topics, column)[topics.find(name)]}


def states(driver: Driver, name: str) -> dict[int, ReplicaState]:
    view = driver.known(name)
    return dict(zip(view.replicas, view.replica_states, strict=True))


def is_deleted(driver: Driver, name: str = "t") -> bool:
    stored = name in driver.store.perform(ReadTopicNames()) or name in driver.store.perform(ReadDeletions())
    known = name in driver.cluster.topics
    assert stored == known
    return not known


def stops(driver: Driver, name: str) -> list[tuple[int, bool, int]]:
    """Return (broker, delete flag, leader epoch) of each StopReplica entry of a partition."""
    entries = [(request["broker"], request["partitions"].get(name)) for request in driver.requests(Api.STOP_REPLICA)]
    return [
        (broker, entry["delete_partition"], entry["leader_epoch"]) for broker, entry in entries if entry is not None
    ]
