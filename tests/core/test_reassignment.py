"""Reassignment (``controller.md`` section 7): phases, submissions, and what makes it go on."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from kframe.core.admin import ReassignmentResponse
from kframe.embedded import Api
from kframe.errors import ErrorCode
from kframe.model.asks import WriteAssignments, WriteReassignments, WriteStates
from kframe.model.effects import Effect, Enqueue
from kframe.model.events import (
    BrokersChanged,
    Elect,
    IsrChangesLeft,
    ListReassignmentsRequested,
    ReassignmentRequested,
    ReassignmentsLeft,
    SessionExpired,
    StopReplicaAnswered,
)
from kframe.model.ids import ReplicaState
from kframe.model.tables import Targets
from kframe.testing.clusters import PartitionSpec, cluster_of, healthy
from tests.core.driver import Driver, assigned, quiet, refusals, state_of

NONE, LEADERSHIP = ErrorCode.NONE, Api.LEADER_AND_ISR
INVALID, UNKNOWN = ErrorCode.INVALID_REPLICA_ASSIGNMENT, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
IDLE = ErrorCode.NO_REASSIGNMENT_IN_PROGRESS
ALL = (1, 2, 3, 4, 5, 6)
RESTED = PartitionSpec((1, 2, 3), 1, (1, 2, 3), leader_epoch=5)
MOVING = PartitionSpec(
    (4, 5, 6, 1, 2, 3), 1, (1, 2, 3), leader_epoch=5, adding_replicas=(4, 5, 6), removing_replicas=(1, 2, 3)
)
Wanted = Sequence[tuple[tuple[str, int], Sequence[int] | None]]


def submit(driver: Driver, wanted: Wanted) -> list[ErrorCode]:
    """The codes of an AlterPartitionReassignments."""
    response: ReassignmentResponse = driver.ask(ReassignmentRequested(Targets.of(wanted), len(driver.replies) + 1))
    assert response.error is NONE
    return [ErrorCode(code) for code in response.codes.tolist()]


def move(driver: Driver, *replicas: int) -> list[ErrorCode]:
    return submit(driver, [(("t", 0), replicas)])


def catch_up(driver: Driver, isr: tuple[int, ...]) -> None:
    """Let the leader store another ISR and leave word of it."""
    driver.ensemble.write_state("t", 0, isr=isr)
    driver.ensemble.notify_isr_changes([("t", 0)])
    driver.handle(IsrChangesLeft())


def asked(driver: Driver, kind: type[Effect]) -> int:
    return sum(isinstance(effect, kind) for effect in driver.effects)


def stops(driver: Driver, name: str = "t-0") -> list[tuple[int, bool]]:
    """(broker, whether it deletes) of each StopReplica entry of a partition."""
    return [
        (request["broker"], request["partitions"][name]["delete_partition"])
        for request in driver.requests(Api.STOP_REPLICA)
        if name in request["partitions"]
    ]


# -- phases


def test_phase_u_and_a() -> None:
    """controller 7.1: U1 and U2, then A1 and A2, for 1,2,3 to 4,5,6."""
    driver = quiet({"t": [RESTED]})
    assert move(driver, 4, 5, 6) == [NONE]
    lists = ((4, 5, 6, 1, 2, 3), (4, 5, 6), (1, 2, 3))
    assert assigned(driver.known("t-0")) == assigned(driver.stored("t-0")) == lists
    assert state_of(driver.stored("t-0")) == (1, (1, 2, 3), 6)
    told = driver.entries(LEADERSHIP, "t-0")
    assert {broker: entry["is_new"] for broker, entry in told.items()} == {
        1: False, 2: False, 3: False, 4: True, 5: True, 6: True
    }  # fmt: skip
    fields = ("replicas", "adding_replicas", "removing_replicas", "leader_epoch", "isr")
    assert {tuple(tuple(e[f]) if f != "leader_epoch" else e[f] for f in fields) for e in told.values()} == {
        (*lists, 6, (1, 2, 3))
    }
    assert set(driver.told(Api.UPDATE_METADATA, "t-0")) == set(ALL)
    assert driver.known("t-0").replica_states == (ReplicaState.NEW,) * 3 + (ReplicaState.ONLINE,) * 3
    assert (asked(driver, WriteAssignments), stops(driver)) == (1, [])


def test_storage_has_the_new_assignment_before_brokers_are_told() -> None:
    """controller 7.1: U1 comes before A1."""
    driver = quiet({"t": [RESTED]})
    move(driver, 4, 5, 6)
    order = [type(effect).__name__ for effect in driver.effects]
    assert order.index("WriteAssignments") < order.index("WriteStates") < order.index("Send")


def test_phase_b() -> None:
    """
    controller 7.1: B1 to B8, once the whole target is in sync.
    state-machines 3.2: NonExistent takes the replica out of the assignment.
    """
    driver = quiet({"t": [RESTED]})
    move(driver, 4, 5, 6)
    driver.forget()
    catch_up(driver, (1, 2, 3, 4))
    assert asked(driver, WriteAssignments) == asked(driver, WriteStates) == 0
    driver.forget()
    catch_up(driver, (1, 2, 3, 4, 5, 6))
    assert assigned(driver.stored("t-0")) == assigned(driver.known("t-0")) == ((4, 5, 6), (), ())
    assert [tuple(change.leader_epoch.tolist()) for change in driver.writes()] == [(7,), (8,), (9,), (10,)]
    assert state_of(driver.stored("t-0")) == (4, (4, 5, 6), 10)
    assert driver.known("t-0").replica_states == (ReplicaState.ONLINE,) * 3
    assert not driver.cluster.partitions.reassigning.any()
    last = driver.batches[-1]
    assert {one["api"] for one in last} == {Api.UPDATE_METADATA}
    assert {one["broker"] for one in last} == set(ALL)
    assert last[0]["partitions"]["t-0"]["replicas"] == [4, 5, 6]


def test_removed_replicas_are_deleted_without_waiting_for_their_brokers() -> None:
    """controller 7.2: Offline, DeletionStarted, DeletionSuccessful, NonExistent in four calls; answers are ignored."""
    driver = quiet({"t": [MOVING]})
    driver.cluster.partitions.reassigning[0] = 1
    catch_up(driver, (1, 4, 5, 6))
    assert stops(driver) == [(1, False), (2, False), (3, False), (1, True), (2, True), (3, True)]
    before = driver.known("t-0")
    driver.forget()
    storage_error = ((("t", 0), ErrorCode.KAFKA_STORAGE_ERROR),)
    driver.handle(StopReplicaAnswered(2, NONE, storage_error, driver.context.controller_epoch, driver.rows("t-0")))
    assert (driver.known("t-0"), driver.effects) == (before, [])


@pytest.mark.parametrize(
    "leader, isr, elects",
    [(4, (1, 2, 3, 4, 5, 6), False), (1, (1, 4, 5, 6), True), (None, (1, 4, 5, 6), True)],
    ids=["leader stays", "leader leaves", "no leader"],
)
def test_leader_in_phase_b(leader: int | None, isr: tuple[int, ...], elects: bool) -> None:
    """controller 7.1: B3, a leader in the target stays and its leader epoch is raised; else one is elected."""
    spec = PartitionSpec(
        MOVING.replicas, leader, (1, 2, 3), leader_epoch=5, adding_replicas=(4, 5, 6), removing_replicas=(1, 2, 3)
    )
    driver = quiet({"t": [spec]})
    driver.cluster.partitions.reassigning[0] = 1
    catch_up(driver, isr)
    first = driver.writes()[0]
    assert driver.cluster.brokers.ids_of(first.leader) == [4]
    assert (first.leader_epoch.tolist(), first.isr.counts.tolist()) == ([6], [len(isr)])
    assert set(driver.told(LEADERSHIP, "t-0")) == {4, 5, 6}
    assert driver.stored("t-0").leader == 4
    assert elects == (leader != 4)


def test_target_in_sync_but_dead_leaves_no_leader(caplog: pytest.LogCaptureFixture) -> None:
    """controller 7.1: B3 finds nobody, which is only logged; B4 then removes the old leader."""
    driver = quiet({"t": [MOVING]}, (1, 2, 3))
    driver.cluster.partitions.reassigning[0] = 1
    catch_up(driver, (1, 4, 5, 6))
    assert (driver.stored("t-0").leader, driver.stored("t-0").replicas) == (-1, (4, 5, 6))
    assert any("no leader could be elected under REASSIGN" in line for line in refusals(caplog))


#: (case, target, writes of assignments, of states)
UNMOVED = [("order only", (2, 1, 3), 2), ("identical", (1, 2, 3), 1)]


@pytest.mark.parametrize("target, writes", [row[1:] for row in UNMOVED], ids=[row[0] for row in UNMOVED])
def test_nothing_to_move_is_never_free(target: tuple[int, ...], writes: int) -> None:
    """controller 7.3: order-only change runs phase B; an identical list still runs B3, B6 and B8."""
    driver = quiet({"t": [RESTED]})
    assert move(driver, *target) == [NONE]
    assert assigned(driver.stored("t-0")) == (target, (), ())
    assert state_of(driver.stored("t-0")) == (1, (1, 2, 3), 6)
    assert asked(driver, WriteAssignments) == writes
    assert {(b, e["is_new"]) for b, e in driver.entries(LEADERSHIP, "t-0").items()} == {(n, False) for n in (1, 2, 3)}
    assert stops(driver) == []
    assert not driver.cluster.partitions.reassigning.any()


def test_override_stops_what_falls_out() -> None:
    """controller 7.1: U3, replicas of the current list that are not in the new one are stopped."""
    driver = quiet({"t": [MOVING]})
    assert move(driver, 3, 4, 2) == [NONE]
    assert assigned(driver.stored("t-0")) == ((3, 4, 2, 1), (4,), (1,))
    assert stops(driver) == [(5, False), (6, False), (5, True), (6, True)]
    assert driver.cluster.partitions.reassigning[0]


def test_cancel_goes_back_to_the_origin() -> None:
    """controller 7.5: null replicas cancel; the origin is a complete assignment, so phase B follows at once."""
    driver = quiet({"t": [MOVING]})
    assert submit(driver, [(("t", 0), None)]) == [NONE]
    assert assigned(driver.stored("t-0")) == ((1, 2, 3), (), ())
    assert driver.stored("t-0").leader == 1
    assert {broker for broker, _ in stops(driver)} == {4, 5, 6}
    assert submit(driver, [(("t", 0), None)]) == [IDLE]


def test_raced_epoch_bump_is_made_again() -> None:
    """controller 7.1: A1, retry on BADVERSION."""
    driver = quiet({"t": [RESTED]})
    driver.before(WriteStates, lambda: driver.ensemble.write_state("t", 0, isr=(1, 3)))
    assert move(driver, 4, 5, 6) == [NONE]
    assert state_of(driver.stored("t-0")) == (1, (1, 3), 6)
    assert {tuple(entry["isr"]) for entry in driver.entries(LEADERSHIP, "t-0").values()} == {(1, 3)}


def test_many_partitions_fare_as_each_by_itself() -> None:
    """controller 7.5: one request may succeed partially."""
    driver = quiet({"t": [RESTED, RESTED, RESTED], "u": [MOVING]})
    codes = submit(
        driver,
        [(("t", 2), (4, 5, 6)), (("nowhere", 0), (1,)), (("u", 0), None), (("t", 0), (1, 9)), (("t", 1), (3, 2, 1))],
    )
    assert codes == [NONE, UNKNOWN, NONE, INVALID, NONE]
    lists = {view.topic + str(view.partition): assigned(driver.stored(f"{view.topic}-{view.partition}"))
             for view in driver.cluster}  # fmt: skip
    assert lists == {
        "t0": ((1, 2, 3), (), ()), "t1": ((3, 2, 1), (), ()), "t2": ((4, 5, 6, 1, 2, 3), (4, 5, 6), (1, 2, 3)),
        "u0": ((1, 2, 3), (), ()),
    }  # fmt: skip


@pytest.mark.parametrize("how", ["api", "storage"])
def test_partition_named_twice(how: str) -> None:
    """controller 7.5: one target a partition, the last one named."""
    driver = quiet({"t": [RESTED]})
    wanted: Wanted = [(("t", 0), (4, 5)), (("t", 0), (5, 6))]
    if how == "api":
        submit(driver, wanted)
    else:
        left(driver, wanted)
    assert [len(change) for change in driver.writes()] == [1]
    assert assigned(driver.stored("t-0")) == ((5, 6, 1, 2, 3), (5, 6), (1, 2, 3))


# -- 7.5 submission to the API

#: (case, target, code) where t-0 is rested on 1, 2, 3, and broker 6 is dead, 5 shutting down.
CHECKS: list[tuple[str, tuple[int, ...] | None, ErrorCode]] = [
    ("empty", (), INVALID),
    ("duplicate", (4, 4), INVALID),
    ("duplicate of its own", (1, 1), INVALID),
    ("negative", (-1, 1), INVALID),
    ("dead", (6, 1), INVALID),
    ("shutting down", (5, 1), INVALID),
    ("unknown", (99, 1), INVALID),
    ("cancel of nothing", None, IDLE),
    ("good", (4, 1), NONE),
]


@pytest.mark.parametrize("target, code", [row[1:] for row in CHECKS], ids=[row[0] for row in CHECKS])
def test_checks_of_the_api(target: tuple[int, ...] | None, code: ErrorCode) -> None:
    """controller 7.5: empty, duplicate ids, negative id, adding replica not live 39; cancel of nothing 85."""
    driver = quiet({"t": [RESTED]}, (1, 2, 3, 4, 5))
    driver.cluster.brokers.index_of([6])
    driver.cluster.brokers.shutting_down[driver.cluster.brokers.index_of([5])] = 1
    assert submit(driver, [(("t", 0), target)]) == [code]
    if code is not NONE:
        assert assigned(driver.stored("t-0")) == ((1, 2, 3), (), ())
        assert driver.batches == []


def test_replicas_that_are_there_already_may_be_dead() -> None:
    """controller 7.5: only added replicas must be live."""
    driver = quiet({"t": [RESTED]}, (1, 2, 4))
    assert move(driver, 3, 1, 4) == [NONE]


@pytest.mark.parametrize(("topic", "partition"), [("nowhere", 0), ("t", 1), ("t", -1), ("leaving", 0)])
def test_unknown_partitions(topic: str, partition: int) -> None:
    """controller 7.5: topic queued for deletion or no current assignment 3."""
    driver = quiet({"t": [RESTED], "leaving": [RESTED]})
    driver.cluster.topics.deleting[driver.cluster.topics.find("leaving")] = 1
    assert submit(driver, [((topic, partition), (4, 5))]) == [UNKNOWN]


def test_partition_that_never_had_a_leader() -> None:
    """controller 7.5: an error of the reassignment itself is an unknown server error; the controller goes on."""
    driver = quiet({"t": [PartitionSpec((1, 2)), RESTED]})
    assert submit(driver, [(("t", 0), (3, 4)), (("t", 1), (4, 5, 6))]) == [ErrorCode.UNKNOWN_SERVER_ERROR, NONE]
    assert driver.controller.active


def test_not_controller() -> None:
    """controller 1: NOT_CONTROLLER at the top."""
    driver = quiet({"t": [RESTED]})
    driver.handle(SessionExpired())
    response = driver.ask(ReassignmentRequested(Targets.of([(("t", 0), (4,))]), 1))
    assert (response.error, len(response.codes)) == (ErrorCode.NOT_CONTROLLER, 0)
    listed = driver.ask(ListReassignmentsRequested(None, 2))
    assert (listed.error, len(listed.rows)) == (ErrorCode.NOT_CONTROLLER, 0)


def test_api_supersedes_what_is_left_in_storage() -> None:
    """controller 7.5: entries of accepted partitions are removed from the stored reassignment."""
    driver = quiet({"t": [RESTED, RESTED]})
    driver.ensemble.leave_reassignments(Targets.of([(("t", 0), (4,)), (("t", 1), (5,))]))
    assert submit(driver, [(("t", 0), (6, 1)), (("t", 1), (99,))]) == [NONE, INVALID]
    left = driver.store.read_reassignments()
    assert left is not None
    assert (left.names, left.partition.tolist()) == (("t",), [1])


# -- 7.6 submission through storage


def left(driver: Driver, wanted: Wanted) -> None:
    driver.ensemble.leave_reassignments(Targets.of(wanted))
    driver.handle(ReassignmentsLeft())


def stored_targets(driver: Driver) -> set[str]:
    found = driver.store.read_reassignments()
    if found is None:
        return set()
    return {f"{found.names[t]}-{n}" for t, n in zip(found.topic.tolist(), found.partition.tolist(), strict=True)}


def test_storage_is_believed() -> None:
    """controller 7.6: reassignTo(target) without validating liveness; the record stays until the target is reached."""
    driver = quiet({"t": [RESTED, RESTED]})
    left(driver, [(("t", 0), (99, 1)), (("t", 1), (4, 5, 6))])
    assert assigned(driver.stored("t-0")) == ((99, 1, 2, 3), (99,), (2, 3))
    assert assigned(driver.stored("t-1")) == ((4, 5, 6, 1, 2, 3), (4, 5, 6), (1, 2, 3))
    assert stored_targets(driver) == {"t-0", "t-1"}


def test_failed_entries_are_removed() -> None:
    """controller 7.6: unknown, being deleted."""
    driver = quiet({"t": [RESTED], "leaving": [RESTED]})
    driver.cluster.topics.deleting[driver.cluster.topics.find("leaving")] = 1
    left(driver, [(("nowhere", 0), (1,)), (("t", 0), (4, 5, 6)), (("t", 7), (1,)), (("leaving", 0), (4,))])
    assert stored_targets(driver) == {"t-0"}
    assert asked(driver, WriteReassignments) == 1


def test_record_that_is_empty_goes_and_the_next_one_is_seen() -> None:
    """controller 7.6: if that empties it, it is deleted and the event re-enqueued to watch again."""
    driver = quiet({"t": [RESTED]})
    left(driver, [(("nowhere", 0), (1,))])
    assert driver.store.read_reassignments() is None
    assert Enqueue(ReassignmentsLeft()) in driver.effects
    driver.follow()
    driver.ensemble.leave_reassignments(Targets.of([(("t", 0), (4, 5, 6))]))
    assert driver.events == [ReassignmentsLeft()]


def test_reached_target_is_removed() -> None:
    """controller 7.1: B7, removed from the record only if its target equals the completed replica list."""
    driver = quiet({"t": [RESTED, RESTED]})
    left(driver, [(("t", 0), (3, 2, 1)), (("t", 1), (4, 5, 6))])
    assert stored_targets(driver) == {"t-1"}
    driver.handle(ListReassignmentsRequested(None, 1))
    assert driver.replies[1].rows.tolist() == [1]


def test_other_target_in_storage_stays() -> None:
    """controller 7.1: B7, a record that wants other replicas is not what was completed."""
    driver = quiet({"t": [MOVING]})
    driver.cluster.partitions.reassigning[0] = 1
    driver.ensemble.leave_reassignments(Targets.of([(("t", 0), (4, 6))]))
    catch_up(driver, (1, 4, 5, 6))
    assert driver.known("t-0").replicas == (4, 5, 6)
    assert stored_targets(driver) == {"t-0"}


def test_storage_overrides_the_api() -> None:
    """controller 7.6: a submission through storage overrides one through the API."""
    driver = quiet({"t": [RESTED]})
    move(driver, 4, 5, 6)
    left(driver, [(("t", 0), (1, 4))])
    assert assigned(driver.stored("t-0")) == ((1, 4, 2, 3), (4,), (2, 3))


# -- 7.4 progress, 7.7 list


def test_start_of_a_target_broker_goes_on() -> None:
    """controller 7.4: broker startup of a target broker (6.2 step 6)."""
    driver = quiet({"t": [MOVING, RESTED]}, (1, 2, 3))
    driver.cluster.partitions.reassigning[0] = 1
    driver.start_broker(5)
    driver.handle(BrokersChanged())
    entry = driver.entries(LEADERSHIP, "t-0")[5]
    assert (entry["leader_epoch"], entry["is_new"]) == (6, True)
    assert state_of(driver.stored("t-1"))[2] == 5


def test_start_of_another_broker_does_not() -> None:
    """controller 6.2: only reassignments whose target contains a new broker."""
    driver = quiet({"t": [MOVING]}, (1, 2))
    driver.cluster.partitions.reassigning[0] = 1
    driver.start_broker(3)
    driver.handle(BrokersChanged())
    assert state_of(driver.stored("t-0"))[2] == 5


@pytest.mark.parametrize("isr, reached", [((1, 2, 3), False), ((1, 4, 5, 6), True)], ids=["behind", "in sync"])
def test_failover_goes_on(isr: tuple[int, ...], reached: bool) -> None:
    """controller 3.2: step 8, resume reassignments: storage keeps adding and removing until B6."""
    spec = PartitionSpec(MOVING.replicas, 1, isr, 5, adding_replicas=(4, 5, 6), removing_replicas=(1, 2, 3))
    driver = Driver(cluster_of({"t": [spec, RESTED]}, ALL), {"auto.leader.rebalance.enable": False})
    driver.handle(Elect())
    assert assigned(driver.stored("t-0")) == (((4, 5, 6), (), ()) if reached else assigned(driver.known("t-0")))
    assert bool(driver.cluster.partitions.reassigning[0]) is not reached
    assert driver.stored("t-0").leader_epoch > 5
    assert driver.stored("t-1").leader_epoch == 5


def test_failover_takes_up_what_is_left_in_storage() -> None:
    """controller 3.2: step 8, the stored reassignment first."""
    driver = Driver(cluster_of({"t": [RESTED, RESTED]}, ALL), {"auto.leader.rebalance.enable": False})
    driver.ensemble.leave_reassignments(Targets.of([(("t", 1), (4, 5, 6))]))
    driver.handle(Elect())
    assert [assigned(driver.stored(name))[1] for name in ("t-0", "t-1")] == [(), (4, 5, 6)]
    assert driver.stored("t-1").leader_epoch == 6, "begun once"


def test_list() -> None:
    """controller 7.7: given partitions or all; those that are not moving and unknown ones are left out in silence."""
    driver = quiet({"t": [RESTED, MOVING], "u": [MOVING, healthy(1)]})
    driver.cluster.partitions.reassigning[[1, 2]] = 1

    def listed(*names: tuple[str, int]) -> list[str]:
        token = len(driver.replies) + 1
        response = driver.ask(ListReassignmentsRequested(names or None, token))
        assert response.error is NONE
        return [driver.cluster.name(row) for row in response.rows.tolist()]

    assert listed() == ["t-1", "u-0"]
    assert listed(("u", 0), ("t", 0), ("nowhere", 3), ("t", 99)) == ["u-0"]
    assert listed(("t", 0)) == []


# -- deletion


def test_reassignment_is_halted_deletion() -> None:
    """controller 7.1: phase 0 marks the topic ineligible for deletion, which matters once it is queued; 10.5."""
    driver = Driver(cluster_of({"t": [MOVING]}, ALL), {"auto.leader.rebalance.enable": False})
    driver.ensemble.mark_for_deletion(["t"])
    driver.handle(Elect())
    topics = driver.cluster.topics
    assert (topics.deleting.tolist(), topics.deletion_started.tolist()) == ([1], [0])
    assert topics.deletion_halted.tolist() == [1]
    catch_up(driver, (1, 4, 5, 6))
    assert (driver.known("t-0").replicas, topics.deletion_started.tolist()) == ((4, 5, 6), [1])
