"""Reassignment, added partitions, deletion and topic ids: defects R34, R46, R49 to R64, X3, X5."""

from __future__ import annotations

import pytest

from kframe.embedded import Api
from kframe.errors import ErrorCode
from kframe.model.events import (
    BrokersChanged,
    DeletionsMarked,
    PreferredElectionStored,
    Reelect,
    SessionExpired,
    TopicModified,
    TopicsChanged,
)
from kframe.model.ids import ReplicaState
from kframe.ports.store_requests import CreateTopics, ReadDeletions, ReadReassignments, ReadTopicNames, WriteAssignments
from kframe.testing.clusters import PartitionSpec, healthy, small_table
from tests.core.deletion import confirm, is_deleted, mark
from tests.core.driver import Driver, assigned, elected, quiet
from tests.core.reassignments import catch_up, reassign, stops, store_reassignments, stored_targets, submit

BROKERS = (1, 2, 3, 4)


def fail_over(driver: Driver) -> None:
    """The session ends. The same instance takes over again."""
    driver.ensemble.expire(driver.store)
    driver.events.clear()
    driver.handle(SessionExpired())
    driver.forget()
    driver.handle(Reelect())


def test_r34_stop_replica_has_current_leader_epoch() -> None:
    """A replica that has received a later epoch refuses a late request."""
    driver = quiet({"t": [healthy(1, 2, leader_epoch=5)]}, BROKERS)
    reassign(driver, 3, 2)
    catch_up(driver, (1, 2, 3))
    epochs = [
        request["partitions"]["t-0"]["leader_epoch"]
        for request in driver.requests(Api.STOP_REPLICA)
        if request["broker"] == 1 and request["partitions"]["t-0"]["delete_partition"]
    ]
    assert epochs
    assert min(epochs) > 5


def test_r46_storage_leaders_metadata_and_memory_agree_after_each_step() -> None:
    driver = quiet({"t": [healthy(1, 2, leader_epoch=5)]}, BROKERS)
    for step in (lambda: reassign(driver, 3, 4), lambda: catch_up(driver, (1, 2, 3, 4))):
        driver.forget()
        step()
        stored = driver.stored("t-0").leader_epoch
        assert driver.known("t-0").leader_epoch == stored
        received = driver.entries(Api.LEADER_AND_ISR, "t-0")
        assert received[3]["leader_epoch"] == received[4]["leader_epoch"] == stored
        assert {entry["leader_epoch"] for entry in driver.entries(Api.UPDATE_METADATA, "t-0").values()} == {stored}


def test_r49_removed_replica_leaves_isr_and_leader_is_notified() -> None:
    """The topic had no new messages. The removed replica still appeared in sync."""
    driver = quiet({"t": [healthy(2, 1, leader_epoch=5)]}, BROKERS)
    reassign(driver, 3, 2)
    driver.forget()
    catch_up(driver, (2, 1, 3))
    assert set(driver.stored("t-0").isr) == {2, 3}
    last = driver.entries(Api.LEADER_AND_ISR, "t-0")[2]
    assert (last["replicas"], last["adding_replicas"], last["removing_replicas"]) == ([3, 2], [], [])
    assert set(last["isr"]) == {2, 3}
    first = next(
        request["partitions"]["t-0"] for request in driver.requests(Api.LEADER_AND_ISR) if request["broker"] == 2
    )
    assert (first["replicas"], first["leader_epoch"]) == ([3, 2], 7)


def test_r51_failover_keeps_a_reassignment_by_request() -> None:
    driver = quiet({"t": [healthy(1, 2, leader_epoch=5)]}, (1, 2, 3, 4, 5, 6))
    store_reassignments(driver, [(("t", 0), (3, 4))])
    assert driver.stored("t-0").adding_replicas == (3, 4)
    assert reassign(driver, 5, 6) == [ErrorCode.NONE]
    fail_over(driver)
    assert assigned(driver.stored("t-0")) == ((5, 6, 1, 2), (5, 6), (1, 2))


def test_r52_failover_completes_reassignment_with_target_in_sync() -> None:
    spec = PartitionSpec((4, 2, 1), 1, (1, 2, 4), leader_epoch=5, adding_replicas=(4,), removing_replicas=(1,))
    driver = elected({"t": [spec]}, BROKERS)
    assert assigned(driver.stored("t-0")) == ((4, 2), (), ())
    assert set(driver.stored("t-0").isr) == {4, 2}
    assert (1, True) in stops(driver)


def test_r53_incomplete_reassignments_stay_in_storage() -> None:
    driver = quiet({"t": [healthy(1, 2), healthy(1, 2), healthy(1, 2)]}, BROKERS)
    store_reassignments(driver, [(("t", 0), (2, 1)), (("t", 1), (3, 2)), (("t", 2), (4, 2))])
    assert sorted(stored_targets(driver)) == ["t-1", "t-2"]


def test_r54_reassignment_completes_after_adding_replica_restarts() -> None:
    driver = quiet({"t": [healthy(1, 2, leader_epoch=5)]}, BROKERS)
    reassign(driver, 4, 2)
    driver.ensemble.unregister_brokers([4])
    fail_over(driver)
    driver.register_brokers(4)
    driver.forget()
    driver.handle(BrokersChanged())
    assert driver.entries(Api.LEADER_AND_ISR, "t-0")[4]["is_new"]
    catch_up(driver, (1, 2, 4))
    assert assigned(driver.stored("t-0")) == ((4, 2), (), ())


INVALID_TARGETS = {
    "empty": ("t", 0, ()),
    "unknown topic": ("nowhere", 0, (1, 2)),
    "unknown partition": ("t", 7, (1, 2)),
    "a broker twice": ("t", 0, (3, 3)),
    "a broker that is none": ("t", 0, (1, -5)),
    "a dead broker": ("t", 0, (1, 77)),
}


@pytest.mark.parametrize("topic, partition, replicas", INVALID_TARGETS.values(), ids=INVALID_TARGETS.keys())
def test_r55_invalid_reassignment_is_refused_and_others_start(
    topic: str, partition: int, replicas: tuple[int, ...]
) -> None:
    driver = quiet({"t": [healthy(1, 2)], "u": [healthy(1, 2)]}, BROKERS)
    codes = submit(driver, [((topic, partition), replicas), (("u", 0), (3, 2))])
    assert codes[0] in (ErrorCode.INVALID_REPLICA_ASSIGNMENT, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    assert codes[1] is ErrorCode.NONE
    assert driver.stored("t-0").replicas == (1, 2)
    assert driver.stored("u-0").adding_replicas == (3,)


@pytest.mark.parametrize("name", ["empty", "unknown topic", "unknown partition"])
def test_r55_invalid_znode_is_removed_and_the_next_is_read(name: str) -> None:
    topic, partition, replicas = INVALID_TARGETS[name]
    driver = quiet({"t": [healthy(1, 2)], "u": [healthy(1, 2)]}, BROKERS)
    store_reassignments(driver, [((topic, partition), replicas)])
    assert driver.store.perform(ReadReassignments()) is None
    driver.follow()
    store_reassignments(driver, [(("u", 0), (3, 2))])
    assert driver.stored("u-0").adding_replicas == (3,)
    assert driver.controller.active


def test_r56_cancelled_replica_is_deleted_with_current_leader_epoch() -> None:
    driver = quiet({"t": [healthy(1, 2, leader_epoch=5)]}, BROKERS)
    reassign(driver, 3, 2)
    leader_epoch = driver.entries(Api.LEADER_AND_ISR, "t-0")[3]["leader_epoch"]
    driver.forget()
    assert submit(driver, [(("t", 0), None)]) == [ErrorCode.NONE]
    assert assigned(driver.stored("t-0")) == ((2, 1), (), ())
    assert (3, True) in stops(driver)
    last = [request for request in driver.requests(Api.STOP_REPLICA) if request["broker"] == 3][-1]["partitions"]["t-0"]
    assert last["leader_epoch"] >= leader_epoch
    assert driver.stored("t-0").leader_epoch > leader_epoch


def test_r57_removed_replicas_receive_deletion() -> None:
    driver = quiet({"t": [healthy(1, 2, leader_epoch=5)]}, BROKERS)
    reassign(driver, 3, 4)
    driver.forget()
    catch_up(driver, (1, 2, 3, 4))
    assert {broker for broker, delete in stops(driver) if delete} == {1, 2}


def test_r58_only_added_replicas_are_sent_as_new() -> None:
    driver = quiet({"t": [healthy(1, 2, leader_epoch=5)]}, BROKERS)
    reassign(driver, 3, 2)
    sent = [
        (request["broker"], request["partitions"]["t-0"]["is_new"]) for request in driver.requests(Api.LEADER_AND_ISR)
    ]
    assert set(sent) == {(1, False), (2, False), (3, True)}


def test_r59_partitions_added_during_an_assignment_write_stay() -> None:
    driver = quiet({"t": [healthy(1, 2, leader_epoch=5)]}, BROKERS)
    driver.before(WriteAssignments, lambda: driver.write_topics(small_table({"t": [(1, 2), (2, 4)]})))
    reassign(driver, 3, 2)
    assert assigned(driver.stored("t-0")) == ((3, 2, 1), (3,), (1,))
    assert driver.stored("t-1").replicas == (2, 4)
    driver.handle(TopicModified("t"))
    assert driver.stored("t-1").leader == 2


def test_r60_deleting_topic_ignores_new_partitions() -> None:
    driver = quiet({"t": [healthy(1, 2)]}, (1, 2, 3))
    mark(driver, "t")
    driver.write_topics(small_table({"t": [(1, 2), (2, 3)]}))
    driver.handle(TopicModified("t"))
    assert driver.ensemble.stored().row("t", 1) is None
    confirm(driver, 1, "t-0")
    confirm(driver, 2, "t-0")
    assert is_deleted(driver)


@pytest.mark.parametrize("remaining", ["mark", "record and mark"])
def test_r61_next_controller_completes_a_deletion_from_any_step(remaining: str) -> None:
    driver = quiet({"t": [healthy(1, 2)], "kept": [healthy(1, 2)]}, (1, 2))
    driver.ensemble.mark_for_deletion(["t"])
    if remaining == "mark":
        driver.ensemble.topics.delete(driver.store._connected(), ("t",))
    fail_over(driver)
    if remaining == "record and mark":
        confirm(driver, 1, "t-0")
        confirm(driver, 2, "t-0")
    assert driver.store.perform(ReadDeletions()) == frozenset()
    assert driver.store.perform(ReadTopicNames()) == {"kept"}


def test_r61_topic_deletion_waits_for_reassignment() -> None:
    driver = quiet({"t": [healthy(1, 2)]}, BROKERS)
    reassign(driver, 3, 2)
    fail_over(driver)
    driver.ensemble.mark_for_deletion(["t"])
    fail_over(driver)
    assert stops(driver) == []
    catch_up(driver, (1, 2, 3))
    for broker in (2, 3):
        confirm(driver, broker, "t-0")
    assert is_deleted(driver)


def test_r62_topic_is_deleted_after_all_replicas_confirm() -> None:
    """Replica 2 was only stopped. The controller receives no event for that."""
    driver = quiet({"t": [healthy(1, 2)]}, (1, 2))
    mark(driver, "t")
    confirm(driver, 1, "t-0")
    assert not is_deleted(driver)
    assert driver.known("t-0").replica_states == (ReplicaState.DELETION_SUCCESSFUL, ReplicaState.DELETION_STARTED)
    confirm(driver, 2, "t-0")
    assert is_deleted(driver)


def test_r63_deleted_topic_is_removed_from_every_index() -> None:
    driver = quiet({name: [healthy(1, 2), healthy(2, 1)] for name in ("a", "b", "c")}, (1, 2))
    topics = driver.cluster.topics
    ids = {name: name.encode() * 16 for name in ("a", "b", "c")}
    for index, name in enumerate(topics.names):
        topics.set_id(index, ids[name])
    mark(driver, "b")
    for broker in (1, 2):
        confirm(driver, broker, "b-0", "b-1")
    assert [name in topics for name in ("a", "b", "c")] == [True, False, True]
    assert [topics.find_id(ids[name]) is None for name in ("a", "b", "c")] == [False, True, False]
    assert [driver.cluster.row(name, 1) is None for name in ("a", "b", "c")] == [False, True, False]
    announced = {driver.cluster.name(row) for row in driver.context.announced_rows().tolist()}
    assert announced == {"a-0", "a-1", "c-0", "c-1"}
    hosted = driver.context.replica_index.rows_on(driver.context.mask(driver.cluster.brokers.index_of([1])))
    p = driver.cluster.partitions
    assert len([row for row in hosted.tolist() if p.topic[row] >= 0 and p.replica_count[row]]) == 4


def test_r64_topic_keeps_its_id_and_a_new_topic_gets_another() -> None:
    driver = quiet({"t": [healthy(1, 2, leader_epoch=5)]}, BROKERS, inter_broker_protocol_version="3.9")
    fail_over(driver)
    first = stored_id(driver)
    assert any(first)
    reassign(driver, 3, 2)
    catch_up(driver, (1, 2, 3))
    fail_over(driver)
    driver.ensemble.request_preferred_election([("t", 0)])
    driver.handle(PreferredElectionStored())
    assert stored_id(driver) == first
    assert driver.cluster.topics.ids[0].tobytes() == first
    driver.ensemble.mark_for_deletion(["t"])
    driver.handle(DeletionsMarked())
    for broker in (2, 3):
        confirm(driver, broker, "t-0")
    driver.store.perform(CreateTopics(small_table({"t": [(1, 2)]}), ({},)))
    driver.handle(TopicsChanged())
    assert any(stored_id(driver))
    assert stored_id(driver) != first


def stored_id(driver: Driver) -> bytes:
    topics = driver.ensemble.stored().topics
    index = topics.find("t")
    assert index is not None
    topic_id: bytes = topics.ids[index].tobytes()
    return topic_id
