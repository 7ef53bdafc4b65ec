"""Topics that are temporarily unreadable: no operation starts without storage. No topic is dropped from memory."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from kframe.core.reassignment import partition_reassignment
from kframe.embedded import Api
from kframe.errors import ErrorCode
from kframe.model.changes import WriteCode
from kframe.model.events import DeletionsMarked, ReassignmentRequested, TopicModified, TopicsChanged
from kframe.model.ids import ReplicaFlag
from kframe.model.tables import Targets
from kframe.ports.store_requests import ReadDeletions, ReadTopics, StoreRequest, WriteAssignments
from kframe.testing.clusters import PartitionSpec, healthy, small_table
from tests.core.driver import Driver, assigned, quiet


@contextmanager
def unreadable(driver: Driver) -> Iterator[None]:
    """No topic is readable, so that none is overwritten."""
    perform = driver.store.perform

    def refuse(request: StoreRequest[Any]) -> Any:
        match request:
            case ReadTopics():
                return small_table({})
            case WriteAssignments(table=table):
                return (WriteCode.STALE,) * len(table)
        return perform(request)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(driver.store, "perform", refuse)
        yield


@pytest.mark.parametrize("protocol", ["3.9", "0.8"])
def test_reassignment_rejected_by_storage_does_not_start(protocol: str) -> None:
    driver = quiet({"t": [healthy(1, 2)]}, reassignment_protocol=protocol)
    with unreadable(driver):
        response = driver.ask(ReassignmentRequested(Targets.of([(("t", 0), (2, 3))]), token=1))
    assert (assigned(driver.known("t-0")), driver.batches) == (((1, 2), (), ()), [])
    assert not driver.cluster.partitions.reassigning(driver.rows("t-0")).any()
    if protocol == "3.9":
        assert response.codes.tolist() == [ErrorCode.UNKNOWN_SERVER_ERROR]


def test_completed_reassignment_is_stored_when_topic_becomes_readable() -> None:
    moving = PartitionSpec((2, 1), 1, (1, 2), adding_replicas=(2,), removing_replicas=(1,))
    driver = quiet({"t": [moving]})
    with unreadable(driver):
        driver.run(partition_reassignment.resume(driver.context, driver.rows("t-0")))
    assert assigned(driver.known("t-0")) == ((2,), (), ())
    assert assigned(driver.stored("t-0")) == ((2, 1), (2,), (1,))
    driver.handle(TopicModified("t"))
    assert assigned(driver.stored("t-0")) == ((2,), (), ())


def test_topic_is_added_when_it_becomes_readable() -> None:
    driver = quiet({})
    driver.create_topics({"late": [(1, 2)]})
    driver.events.clear()
    driver.handle(TopicModified("late"))
    assert driver.stored("late-0").leader == 1
    driver.forget()
    driver.handle(TopicsChanged())
    assert driver.writes() == []


@pytest.mark.parametrize(
    ("key", "leader", "isr", "bounced", "by_default", "checked"),
    [
        ("kframe_last_replica_hold", -1, (1,), (), (1, (1,)), (-1, (1,))),
        ("kframe_failover_check_epochs", 1, (1, 2), (1,), (1, (1, 2)), (2, (2,))),
        ("kframe_reassignment_strict", 1, (1, 3), (), (1, (1,)), (1, (1,))),
    ],
    ids=["last replica is held", "registered again without the topic", "unassigned member"],
)
@pytest.mark.parametrize("enabled", [False, True])
def test_topic_that_becomes_readable_is_checked_as_at_failover(
    key: str, leader: int, isr: tuple[int, ...], bounced: tuple[int, ...], by_default: Any, checked: Any, enabled: bool
) -> None:
    """Found by the simulator, seeds 8200121 and 8200165: the leader of an unreadable topic lost its log, and led on."""
    driver = quiet({}, (1, 2, 3), **{key: enabled})
    driver.create_topics({"late": [(1, 2)]})
    driver.ensemble.write_state("late", 0, leader=leader, isr=isr, leader_epoch=7)
    driver.bounce_brokers(*bounced)
    driver.events.clear()
    driver.handle(TopicModified("late"))
    assert (driver.stored("late-0").leader, driver.stored("late-0").isr) == (checked if enabled else by_default)


def test_reregistered_leader_of_late_topic_gets_another_leader_epoch_before_it_is_notified() -> None:
    """Found by the simulator, seed 33000409: all ISR members had registered again while the topic was unreadable."""
    driver = quiet({}, (1, 2), kframe_failover_check_epochs=True)
    driver.create_topics({"late": [(1, 2)]})
    driver.ensemble.write_state("late", 0, leader=1, isr=(1, 2), leader_epoch=7)
    driver.bounce_brokers(1, 2)
    driver.events.clear()
    driver.forget()
    driver.handle(TopicModified("late"))
    requests = driver.requests(Api.LEADER_AND_ISR)
    assert min(request["partitions"]["late-0"]["leader_epoch"] for request in requests) > 7


@pytest.mark.parametrize(("strict", "assignment"), [(True, ((3,), (), ())), (False, ((3, 1), (3,), (1,)))])
def test_reassignment_of_late_topic_ends_when_its_first_isr_is_the_target(strict: bool, assignment: Any) -> None:
    """Found by the simulator, seed 360000123: a partition never had a leader, and the failover could not read its
    topic. The reassignment stayed in progress."""
    driver = quiet({}, (1, 2, 3), kframe_reassignment_strict=strict)
    flags = np.array([ReplicaFlag.ADDING, ReplicaFlag.REMOVING], np.uint8)
    driver.create_topics({"late": [(3, 1)]})
    driver.ensemble.write_topics(replace(small_table({"late": [(3, 1)]}), flags=flags))
    driver.events.clear()
    driver.handle(TopicModified("late"))
    assert (assigned(driver.stored("late-0")), driver.stored("late-0").leader) == (assignment, 3)


@pytest.mark.parametrize("deleted", [False, True])
def test_deletion_mark_waits_until_topic_is_readable(deleted: bool) -> None:
    driver = quiet({})
    driver.create_topics({"late": [(1, 2)]})
    driver.events.clear()
    driver.ensemble.mark_for_deletion(["late"])
    driver.handle(DeletionsMarked())
    assert driver.store.perform(ReadDeletions()) == {"late"}
    if deleted:
        driver.ensemble.topics.delete(driver.ensemble.records.open_session(lambda _event: None), ("late",))
    driver.events.clear()
    driver.handle(TopicsChanged())
    driver.follow()
    queued = frozenset(name for name in driver.cluster.topics.names if driver.cluster.topics.deleting.any())
    assert queued == driver.store.perform(ReadDeletions()) == (frozenset() if deleted else {"late"})
