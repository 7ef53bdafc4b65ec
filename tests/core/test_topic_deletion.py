"""Topic deletion (``controller.md`` section 10): the engine, halted deletions and resumed deletions."""

from __future__ import annotations

import logging

import numpy as np
import pytest

from kframe.errors import ErrorCode
from kframe.model.events import (
    BrokersChanged,
    DeletionsMarked,
    Reelect,
)
from kframe.model.ids import NO_BROKER_EPOCH, ReplicaState
from kframe.ports.store_requests import (
    DeleteTopics,
    QueueDeletions,
    ReadDeletions,
    ReadTopicNames,
)
from kframe.testing.clusters import PartitionSpec, healthy
from tests.core.deletion import (
    ALL,
    BEGUN,
    DONE,
    HALTED,
    NONE,
    QUEUED,
    STARTED,
    confirm,
    flags,
    is_deleted,
    make_driver,
    mark,
    states,
    stops,
)
from tests.core.driver import quiet, standby
from tests.core.reassignments import reassign

# -- from the mark to completion


def test_partitions_of_deleted_topics_do_not_count_as_offline() -> None:
    """state-machines 2.4: OfflinePartitionsCount, which ignores topics whose deletion has started."""
    dead = PartitionSpec((9,), 9, (9,))
    driver = quiet({"t": [healthy(1, 2), dead], "kept": [dead]}, ALL)
    assert driver.controller.gauges()["OfflinePartitionsCount"] == 2
    mark(driver, "t")
    assert driver.controller.gauges()["OfflinePartitionsCount"] == 1


def test_topic_without_partitions_is_deleted_immediately() -> None:
    """controller 10.2: all (that is, none) of its replicas are DeletionSuccessful."""
    driver = quiet({"hollow": []})
    mark(driver, "hollow")
    assert is_deleted(driver, "hollow")


# -- 10.1


def test_deletion_marks_of_unknown_topics_are_removed() -> None:
    """controller 10.1: names that no topic has. Their marks are deleted."""
    driver = make_driver()
    mark(driver, "nowhere")
    assert (driver.store.perform(ReadDeletions()), driver.batches) == (frozenset(), [])


def test_reassignment_does_not_halt_newly_marked_topic() -> None:
    """controller 10.1: ineligible only affects topics already queued. On the first event it is a no-op."""
    moving = PartitionSpec((3, 1), 1, (1,), adding_replicas=(3,), removing_replicas=(1,))
    driver = quiet({"t": [moving]}, ALL)
    driver.cluster.partitions.set_reassigning(np.array([0]), True)
    mark(driver, "t")
    assert flags(driver) == {QUEUED, BEGUN}


# -- halted and resumed deletions


def test_startup_of_other_broker_does_not_resume_deletion() -> None:
    """controller 10.5: no other event resumes it, there is no timer."""
    driver = make_driver((1,))
    mark(driver, "t")
    confirm(driver, 1, "t-0", "t-1")
    driver.forget()
    driver.start_brokers(3)
    assert flags(driver) == {QUEUED, BEGUN, HALTED}
    assert stops(driver, "t-0") == []


@pytest.mark.parametrize(
    "error, failed, replica_states",
    [
        (NONE, ("t-1",), {"t-0": DONE, "t-1": ReplicaState.OFFLINE}),
        (ErrorCode.STALE_CONTROLLER_EPOCH, (), dict.fromkeys(("t-0", "t-1"), ReplicaState.OFFLINE)),
    ],
    ids=["one partition", "top level"],
)
def test_stop_replica_error_halts_deletion(
    error: ErrorCode, failed: tuple[str, ...], replica_states: dict[str, ReplicaState]
) -> None:
    """controller 10.3: error or top-level error, failReplicaDeletion. Without pending requests it is Offline again."""
    driver = make_driver()
    mark(driver, "t")
    confirm(driver, 1, "t-0", "t-1", error=error, failed=failed)
    assert flags(driver) == {QUEUED, BEGUN, HALTED}
    confirm(driver, 2, "t-0", "t-1")
    assert {name: states(driver, name)[1] for name in replica_states} == replica_states
    assert {states(driver, name)[2] for name in replica_states} == {DONE}
    driver.forget()
    driver.bounce_brokers(1)
    confirm(driver, 1, *(name for name, state in replica_states.items() if state is not DONE))
    assert is_deleted(driver)


def test_response_to_earlier_controller_epoch_is_ignored() -> None:
    """controller 10.3: responses to requests of another controller epoch have other row numbers."""
    driver = make_driver()
    mark(driver, "t")
    confirm(driver, 1, "t-0", "t-1", controller_epoch=driver.context.controller_epoch - 1)
    assert states(driver, "t-0") == {1: STARTED, 2: STARTED}


def test_repeated_response_resumes_deletion(caplog: pytest.LogCaptureFixture) -> None:
    """controller 10.3: every response about replicas of started deletions calls resumeDeletions."""
    driver = make_driver()
    mark(driver, "t")
    confirm(driver, 1, "t-0", "t-1")
    with caplog.at_level(logging.INFO, "kframe.controller"):
        confirm(driver, 1, "t-0", "t-1")
    assert any(text.endswith("Handling deletion for topics t") for text in caplog.messages)
    assert (states(driver, "t-0"), is_deleted(driver)) == ({1: DONE, 2: STARTED}, False)


def test_response_for_topic_not_deleting_is_ignored() -> None:
    """controller 10.3: entries whose topic has deletion started."""
    driver = make_driver()
    driver.forget()
    confirm(driver, 1, "t-0", "kept-0")
    confirm(driver, 9, "t-0")
    assert (driver.effects, states(driver, "t-0")[1]) == ([], ReplicaState.ONLINE)


# -- failover


@pytest.mark.parametrize(
    "spec, live, begun",
    [
        (healthy(1, 2), ALL, True),
        (healthy(1, 2), (1, 3), False),
        (PartitionSpec((3, 1), 1, (1,), adding_replicas=(3,), removing_replicas=(1,)), ALL, False),
    ],
    ids=["well", "offline replica", "reassignment"],
)
def test_failover_resumes_or_halts_deletion(spec: PartitionSpec, live: tuple[int, ...], begun: bool) -> None:
    """controller 3.2: step 5, topics with an offline replica or a running reassignment start ineligible; step 9."""
    driver = standby({"t": [spec], "kept": [healthy(1)]}, live)
    driver.ensemble.mark_for_deletion(["t", "nowhere"])
    driver.handle(Reelect())
    assert flags(driver) == ({QUEUED, BEGUN} if begun else {QUEUED, HALTED})
    assert flags(driver, "kept") == set()


def test_failover_completes_deletion_of_empty_topic() -> None:
    """controller 10.2: all (that is, none) of the replicas of an empty topic are DeletionSuccessful."""
    driver = standby({"kept": [healthy(1, 2)]}, ALL)
    driver.store.perform(QueueDeletions(("nowhere",)))
    driver.handle(Reelect())
    assert (driver.store.perform(ReadDeletions()), len(driver.performed(DeleteTopics))) == (frozenset(), 1)
    assert driver.store.perform(ReadTopicNames()) == {"kept"}


@pytest.mark.parametrize("at_failover", [False, True])
def test_disabled_deletion_removes_marks(at_failover: bool) -> None:
    """controller 10.1: delete.topic.enable=false, the marks go and the topics stay."""
    driver = standby({"t": [healthy(1)]}, ALL, delete_topic_enable=False)
    if not at_failover:
        driver.handle(Reelect())
        driver.forget()
    driver.ensemble.mark_for_deletion(["t"])
    driver.handle(Reelect() if at_failover else DeletionsMarked())
    assert (flags(driver), driver.store.perform(ReadDeletions())) == (set(), frozenset())


@pytest.mark.parametrize("strict", [False, True])
def test_strict_reassignment_does_not_halt_deletion(strict: bool) -> None:
    """Found by the simulator, seeds 8 and 72: a topic without a leader was neither reassigned nor deleted."""
    moving = PartitionSpec((2, 1), None, (1,), 3, adding_replicas=(2,))
    driver = standby({"t": (moving,)}, (1, 2), kframe_reassignment_strict=strict)
    driver.ensemble.mark_for_deletion(["t"])
    driver.handle(Reelect())
    assert (HALTED in flags(driver), BEGUN in flags(driver)) == (not strict, strict)


def test_reassignment_without_leader_does_not_block_deletion() -> None:
    """Found by the simulator, seed 85: replicas that a reassignment added to a partition without a leader."""
    driver = quiet({"t": [PartitionSpec((3,)), healthy(1, 2)]}, (1, 2))
    reassign(driver, 2)
    driver.register_brokers(3)
    mark(driver, "t")
    driver.handle(BrokersChanged())
    for broker_id in (1, 2, 3):
        confirm(driver, broker_id, "t-0", "t-1")
    assert is_deleted(driver)


def test_response_of_earlier_registration_does_not_halt_deletion() -> None:
    """Found by the simulator, seed 911: the late response arrived after deletion had restarted with the new
    registration. The successful response then matched no replica in deletion."""
    driver = make_driver()
    mark(driver, "t")
    driver.bounce_brokers(1)
    confirm(driver, 1, "t-0", "t-1", error=ErrorCode.STALE_BROKER_EPOCH)
    assert HALTED not in flags(driver)
    for broker_id in (2, 1):
        confirm(driver, broker_id, "t-0", "t-1")
    assert is_deleted(driver)


@pytest.mark.parametrize("known", [True, False], ids=["its epoch is known", "the transport has no epoch"])
def test_failed_deletion_of_earlier_registration_does_not_halt_deletion(known: bool) -> None:
    """The response waited behind the event of the new registration, which had restarted the deletion."""
    driver = make_driver()
    earlier = int(driver.cluster.brokers.broker_epoch[driver.cluster.brokers.index_of([1])[0]])
    mark(driver, "t")
    driver.bounce_brokers(1)
    confirm(driver, 1, "t-0", "t-1", failed=("t-0",), broker_epoch=earlier if known else NO_BROKER_EPOCH)
    assert (HALTED in flags(driver)) is not known
