"""ISR change and log directory notifications of brokers, and LeaderAndIsr responses (``controller.md`` 12 and 13.2)."""

from __future__ import annotations

import pytest

from kframe.embedded import Api
from kframe.errors import ErrorCode
from kframe.model.events import (
    BrokersChanged,
    IsrChangesNotified,
    LeaderAndIsrResponseReceived,
    UpdateMetadataResponseReceived,
)
from kframe.model.ids import NO_BROKER_EPOCH, NO_STATE, PartitionState, ReplicaFlag
from kframe.ports.store_requests import ReadIsrChanges, ReadLogDirEvents
from kframe.testing.clusters import PartitionSpec, healthy
from tests.core.driver import Driver, erase, kinds, quiet

NONE, STORAGE = ErrorCode.NONE, ErrorCode.KAFKA_STORAGE_ERROR
STALE = ErrorCode.STALE_CONTROLLER_EPOCH
NAMES = ("t-0", "t-1", "u-0")


def make_driver(**config: object) -> Driver:
    return quiet({"t": [healthy(1, 2), healthy(2, 1)], "u": [healthy(1, 3)]}, (1, 2, 3), **config)


def respond(
    driver: Driver,
    broker_id: int,
    *names: str,
    failed: tuple[str, ...] = (),
    stale: tuple[str, ...] = (),
    error: ErrorCode = NONE,
    controller_epoch: int | None = None,
    broker_epoch: int = NO_BROKER_EPOCH,
) -> None:
    """Respond to LeaderAndIsr for these partitions as a broker."""
    errors = [(name, STORAGE) for name in failed] + [(name, STALE) for name in stale]
    named = tuple(((name.rpartition("-")[0], int(name.rpartition("-")[2])), code) for name, code in errors)
    epoch = driver.context.controller_epoch if controller_epoch is None else controller_epoch
    driver.handle(LeaderAndIsrResponseReceived(broker_id, error, named, epoch, driver.rows(*names), broker_epoch))


def offline(driver: Driver) -> set[str]:
    """Return replicas on offline log directories, written ``t-0@1``."""
    p = driver.cluster.partitions
    replicas = set()
    for row in range(len(driver.cluster)):
        ids = driver.cluster.brokers.ids_of(p.flagged_replicas(row, ReplicaFlag.OFFLINE_DIR))
        replicas |= {f"{driver.cluster.name(row)}@{broker}" for broker in ids}
    return replicas


# -- 13.2


def test_isr_change_notification_refreshes_and_announces_partitions() -> None:
    """controller 13.2: refresh leadership from storage, send UpdateMetadata to all, delete the notification."""
    driver = make_driver()
    driver.ensemble.write_state("t", 0, isr=(1,))
    driver.ensemble.notify_isr_changes([("t", 0), ("nowhere", 0), ("t", 99)])
    driver.ensemble.notify_isr_changes([("u", 0)])
    driver.follow()
    assert driver.known("t-0").isr == (1,)
    assert {request["api"] for batch in driver.batches for request in batch} == {Api.UPDATE_METADATA}
    assert driver.recipients(Api.UPDATE_METADATA, "t-0") == driver.recipients(Api.UPDATE_METADATA, "u-0") == [1, 2, 3]
    assert driver.entries(Api.UPDATE_METADATA, "t-0")[3]["isr"] == [1]
    assert driver.recipients(Api.UPDATE_METADATA, "t-1") == []
    assert driver.store.perform(ReadIsrChanges()).paths == ()
    assert driver.writes() == []


def test_isr_change_notification_drops_deleted_state() -> None:
    """controller 13.2: refresh leadership from storage."""
    driver = make_driver()
    erase(driver, "t-0")
    driver.ensemble.notify_isr_changes([("t", 0), ("u", 0)])
    driver.follow()
    assert (driver.known("t-0").partition_epoch, driver.known("t-0").isr) == (NO_STATE, ())
    assert driver.recipients(Api.UPDATE_METADATA, "t-0") == []
    assert driver.recipients(Api.UPDATE_METADATA, "u-0") == [1, 2, 3]


def test_isr_change_notification_of_unknown_partition_is_deleted() -> None:
    """controller 13.2: the notifications that were read are deleted in every case."""
    driver = make_driver()
    driver.ensemble.notify_isr_changes([("nowhere", 0)])
    driver.handle(IsrChangesNotified())
    assert (driver.batches, driver.store.perform(ReadIsrChanges()).paths) == ([], ())


# -- 12


def test_log_dir_event_sends_leader_and_isr_to_broker() -> None:
    """controller 12: all replicas of those brokers to Online: LeaderAndIsr with every partition, same epochs."""
    driver = make_driver()
    driver.ensemble.notify_log_dir_event(1)
    driver.ensemble.notify_log_dir_event(99)
    driver.follow()
    (request,) = driver.requests(Api.LEADER_AND_ISR)
    assert (request["broker"], set(request["partitions"])) == (1, set(NAMES))
    assert {(entry["leader_epoch"], entry["is_new"]) for entry in request["partitions"].values()} == {(0, False)}
    assert driver.writes() == []
    assert driver.store.perform(ReadLogDirEvents()).paths == ()


def test_repeated_storage_error_has_no_effect() -> None:
    """controller 12: newly offline ones only."""
    driver = make_driver()
    respond(driver, 1, *NAMES, failed=("t-0",))
    driver.forget()
    respond(driver, 1, *NAMES, failed=("t-0",))
    assert driver.effects == []
    respond(driver, 1, *NAMES, failed=("t-0", "t-1"))
    assert offline(driver) == {"t-0@1", "t-1@1"}
    assert driver.written() == [["t-1"]]


def test_recovered_replica_triggers_no_election() -> None:
    """controller 12: no election is triggered by that. Other errors neither add nor remove."""
    driver = quiet({"t": [PartitionSpec((1, 2), 1, (1,)), healthy(1)]}, (1, 2))
    respond(driver, 1, "t-0", "t-1", failed=("t-0", "t-1"))
    assert [driver.known(name).state for name in ("t-0", "t-1")] == [PartitionState.OFFLINE] * 2
    driver.forget()
    respond(driver, 1, "t-0", "t-1", stale=("t-1",))
    assert (offline(driver), driver.effects) == ({"t-1@1"}, [])


@pytest.mark.parametrize(
    "error, controller_epoch, broker",
    [(STALE, None, 1), (NONE, 0, 1), (NONE, 9, 1), (NONE, None, 77)],
    ids=["top-level error", "earlier controller epoch", "later controller epoch", "unknown broker"],
)
def test_failed_or_stale_response_has_no_effect(error: ErrorCode, controller_epoch: int | None, broker: int) -> None:
    """controller 12: each response without top-level error. Rows of another controller epoch are ignored."""
    driver = make_driver()
    respond(driver, broker, *NAMES, failed=("t-0",), error=error, controller_epoch=controller_epoch)
    assert (offline(driver), driver.effects) == (set(), [])


@pytest.mark.parametrize("bounced", [True, False], ids=["earlier registration", "current registration"])
@pytest.mark.parametrize("failed", [True, False], ids=["storage error", "no error"])
def test_response_of_earlier_registration_changes_no_log_dirs(bounced: bool, failed: bool) -> None:
    """The event of the new registration was handled before the response. The new registration has working disks, or
    has failed ones."""
    driver = make_driver()
    earlier = int(driver.cluster.brokers.broker_epoch[driver.cluster.brokers.index_of([2])[0]])
    if bounced:
        driver.bounce_brokers(2)
    if not failed:
        respond(driver, 2, *NAMES[:2], failed=("t-0",))
    respond(driver, 2, *NAMES[:2], failed=("t-0",) if failed else (), broker_epoch=earlier)
    assert offline(driver) == ({"t-0@2"} if failed is not bounced else set())


def test_error_of_unassigned_replica_is_ignored() -> None:
    """controller 12: unknown partitions are ignored, and so are partitions without a replica on this broker."""
    driver = make_driver()
    errors = ((("nowhere", 0), STORAGE), (("u", 0), STORAGE))
    driver.handle(LeaderAndIsrResponseReceived(2, NONE, errors, driver.context.controller_epoch, driver.rows("t-0")))
    assert (offline(driver), driver.effects) == (set(), [])


@pytest.mark.parametrize("cause", ["dies", "bounces"])
def test_registration_clears_offline_log_dirs(cause: str) -> None:
    """controller 6.2 and 6.3: forget the offline log directories of these brokers."""
    driver = make_driver()
    respond(driver, 1, *NAMES, failed=("t-0",))
    if cause == "dies":
        driver.ensemble.unregister_brokers([1])
    else:
        driver.ensemble.bounce_brokers([1])
    driver.handle(BrokersChanged())
    assert offline(driver) == set()


# -- UpdateMetadata


@pytest.mark.parametrize("error", [NONE, STALE, ErrorCode.STALE_BROKER_EPOCH])
def test_update_metadata_error_is_only_logged(error: ErrorCode, caplog: pytest.LogCaptureFixture) -> None:
    """controller 2: UpdateMetadataResponseReceived, the error is only logged."""
    driver = make_driver()
    driver.handle(UpdateMetadataResponseReceived(1, error))
    assert kinds(driver.effects) == []
    assert (error.name in caplog.text) == (error is not NONE)
