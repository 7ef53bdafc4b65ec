"""Split brain, epochs and the controller role: defects R01 to R08, R14 to R18."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from kframe.core.operations.topic_requests import TopicsResponse
from kframe.embedded import Api, MemoryStore
from kframe.errors import ControllerFenced, ErrorCode
from kframe.model.admin import NewTopic
from kframe.model.cluster import ClusterState
from kframe.model.events import (
    BrokersChanged,
    CreateTopicsRequested,
    ElectionRequested,
    ElectionType,
    ReassignmentRequested,
    SessionExpired,
)
from kframe.model.tables import Targets
from kframe.ports.store_requests import (
    AssignTopicIds,
    Claim,
    CreateTopics,
    DeleteTopics,
    DropDeletions,
    DropNotifications,
    DropPreferredElection,
    OwnsRole,
    Prepare,
    ReadController,
    WriteAssignments,
    WriteReassignments,
    WriteStates,
)
from kframe.testing.clusters import StateSpec, change_of, healthy, registration, small_table
from tests.defects.controller_group import ControllerGroup, entries


def controller_group(controllers: int = 2) -> ControllerGroup:
    return ControllerGroup({"t": [healthy(1, 2, 3, leader_epoch=5)]}, controllers=controllers)


def create(token: int, name: str = "new") -> CreateTopicsRequested:
    return CreateTopicsRequested((NewTopic(name, assignments=((0, (1, 2)),)),), 1_000, token=token)


def test_r01_paused_controller_sends_no_requests() -> None:
    """The controller paused beyond its session timeout with a pending broker failure. Another controller took over."""
    cluster = controller_group()
    assert {request["controller_epoch"] for request in cluster.wires[0].take()} == {1}
    cluster.ensemble.unregister_brokers([1])
    cluster.depose(0, by=1)
    assert {request["controller_epoch"] for request in cluster.wires[1].take()} == {2}
    before = cluster.zxid
    cluster.run(0)
    assert cluster.zxid == before
    assert cluster.wires[0].take() == []
    assert [loop.controller.active for loop in cluster.loops] == [False, True]


def test_r02_controller_does_not_adopt_a_successors_epoch() -> None:
    """The new controller's notification arrives before the end of its own session."""
    cluster = controller_group()
    cluster.depose(0, by=1)
    cluster.wires[0].take()
    cluster.run(0)
    assert (cluster.loops[0].controller.active, cluster.loops[0].controller.controller_epoch) == (False, -1)
    cluster.ensemble.unregister_brokers([3])
    before = cluster.zxid
    cluster.run(0)
    assert cluster.zxid == before
    assert cluster.wires[0].take() == []


#: Every store write that only the active controller may make.
WRITES: dict[str, Callable[[MemoryStore, ClusterState], object]] = {
    "prepare": lambda store, _: store.perform(Prepare()),
    "states": lambda store, cluster: store.perform(
        WriteStates(cluster, change_of(cluster, {"t-0": StateSpec(2, (2,), 6, 0)}, 1))
    ),
    "assignments": lambda store, _: store.perform(WriteAssignments(small_table({"t": [(3, 2)]}))),
    "topic ids": lambda store, _: store.perform(AssignTopicIds(("t",))),
    "deletions dropped": lambda store, _: store.perform(DropDeletions(("t",))),
    "topics deleted": lambda store, _: store.perform(DeleteTopics(("t",))),
    "reassignments": lambda store, _: store.perform(WriteReassignments(Targets.of([(("t", 0), (3, 2))]))),
    "preferred election": lambda store, _: store.perform(DropPreferredElection()),
    "notifications": lambda store, _: store.perform(
        DropNotifications(("/isr_change_notification/isr_change_0000000000",))
    ),
}


@pytest.mark.parametrize("write", WRITES.values(), ids=WRITES.keys())
def test_r03_write_of_deposed_controller_is_fenced(write: Callable[[MemoryStore, ClusterState], object]) -> None:
    cluster = controller_group()
    cluster.depose(0, by=1)
    cluster.ensemble.request_preferred_election([("t", 0)])
    cluster.ensemble.notify_isr_changes([("t", 0)])
    before = cluster.zxid
    with pytest.raises(ControllerFenced):
        write(cluster.stores[0], cluster.loops[0].controller.cluster)
    assert cluster.zxid == before


def test_r05_queued_events_have_no_effect_after_role_loss() -> None:
    """The events were queued before the role was lost. They concern a new broker, which needs requests but no write."""
    cluster = controller_group()
    cluster.wires[0].take()
    for _ in range(1_000):
        cluster.loops[0].queue.put(BrokersChanged())
        cluster.loops[0].submit(lambda token: ElectionRequested(ElectionType.PREFERRED, (("t", 0),), token))
    cluster.ensemble.register_brokers([registration(4)])
    cluster.depose(0, by=1)
    before = cluster.zxid
    cluster.run(0)
    assert cluster.zxid == before
    assert cluster.wires[0].take() == []


def test_r06_reelected_controller_handles_each_event_once() -> None:
    """One topic comes by request and one by notification. They cause as many events as in the controller's first
    term."""
    cluster = controller_group(controllers=1)
    loop, client = cluster.loops[0], cluster.ensemble.connect()
    client.open(lambda _: None)

    def handled(created: str, watched: str) -> int:
        loop.submit(lambda token: create(token, created))
        client.perform(CreateTopics(small_table({watched: [(2, 3)]}), ({},)))
        return loop.run_until_idle()

    first_count = handled("created", "watched")
    for _ in range(5):
        cluster.ensemble.drop_controller()
        cluster.run()
    assert loop.controller.controller_epoch == 6
    cluster.wires[0].take()
    assert handled("created-6", "watched-6") == first_count
    requests = cluster.wires[0].take()
    assert [broker for broker, _ in entries(requests, Api.LEADER_AND_ISR, "created-6-0")] == [1, 2]
    assert [broker for broker, _ in entries(requests, Api.LEADER_AND_ISR, "watched-6-0")] == [2, 3]
    assert {cluster.stored(f"{name}-6-0").partition_epoch for name in ("created", "watched")} == {0}


def test_r06_timers_are_cancelled_after_role_loss() -> None:
    cluster = controller_group()
    assert cluster.clocks[0].pending
    cluster.depose(0, by=1)
    cluster.run(0)
    assert cluster.clocks[0].pending == {}


def test_r07_reassignment_cancelled_by_another_controller_stays_cancelled() -> None:
    cluster = ControllerGroup({"t": [healthy(1, 2)]}, (1, 2, 3, 4), controllers=2)

    def move(replicas: tuple[int, ...] | None) -> Callable[[int], ReassignmentRequested]:
        return lambda token: ReassignmentRequested(Targets.of([(("t", 0), replicas)]), token)

    first = cluster.loops[0].submit(move((3, 4)))
    cluster.run(0)
    assert cluster.stored("t-0").adding_replicas == (3, 4)
    cluster.depose(0, by=1)
    second = cluster.loops[1].submit(move(None))
    cluster.run()
    cluster.wires[0].take()
    cluster.ensemble.drop_controller()
    cluster.run(0)
    assert cluster.loops[0].controller.active
    received = entries(cluster.wires[0].take(), Api.LEADER_AND_ISR, "t-0")
    assert received[-1][1]["replicas"] == [1, 2]
    assert cluster.loops[0].controller.cluster["t", 0].adding_replicas == ()
    assert (first.result(0).codes.tolist(), second.result(0).codes.tolist()) == ([0], [0])
    assert cluster.stored("t-0").replicas == (1, 2)
    assert cluster.stored("t-0").adding_replicas == ()


def test_r08_new_topic_gets_leader_after_session_expiry_and_reelection() -> None:
    cluster = controller_group(controllers=1)
    cluster.ensemble.expire(cluster.stores[0])
    cluster.run()
    assert cluster.loops[0].controller.controller_epoch == 2
    created = cluster.loops[0].submit(create)
    cluster.run()
    assert created.result(0) == TopicsResponse({"new": ErrorCode.NONE})
    assert cluster.stored("new-0").leader == 1


def test_r14_controller_znode_of_older_session_gives_no_role() -> None:
    """Both sessions are of controller 1000."""
    cluster = controller_group(controllers=1)
    older, newer = cluster.stores[0], cluster.ensemble.connect()
    newer.open(lambda _: None)
    assert newer.perform(Claim(1000)) is None
    assert (newer.perform(ReadController()).controller_id, newer.perform(OwnsRole()), newer.may_act()) == (
        1000,
        False,
        False,
    )
    with pytest.raises(ControllerFenced):
        newer.perform(Prepare())
    older.close()
    assert newer.perform(Claim(1000)) == 2


def test_r15_watches_are_registered_after_session_expiry() -> None:
    cluster = controller_group(controllers=1)
    cluster.ensemble.expire(cluster.stores[0])
    cluster.run()
    for broker_id in (1, 2):
        cluster.ensemble.unregister_brokers([broker_id])
        cluster.run()
    assert (cluster.stored("t-0").leader, cluster.stored("t-0").isr) == (3, (3,))
    cluster.ensemble.mark_for_deletion(["t"])
    cluster.run()
    topics = cluster.loops[0].controller.cluster.topics
    assert bool(topics.deleting[topics.find("t")])


def test_r16_session_expiry_precedes_queued_events() -> None:
    cluster = controller_group(controllers=1)
    for _ in range(10_000):
        cluster.loops[0].submit(lambda token: ElectionRequested(ElectionType.PREFERRED, (("t", 0),), token))
    cluster.loops[0].notify(SessionExpired())
    assert len(cluster.loops[0].queue) == 1
    first = cluster.loops[0].queue.take()
    assert first is not None
    cluster.loops[0].process(first)
    assert not cluster.loops[0].controller.active


def test_r18_pending_requests_get_a_single_answer_at_session_expiry() -> None:
    cluster = controller_group(controllers=1)
    futures = [
        cluster.loops[0].submit(lambda token: ElectionRequested(ElectionType.PREFERRED, (("t", 0),), token))
        for _ in range(100)
    ]
    cluster.ensemble.expire(cluster.stores[0])
    assert [future.result(0).error for future in futures] == [ErrorCode.NOT_CONTROLLER] * 100
