"""Reassignment (``controller.md`` section 7): its phases, its progress, and deletion."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from kframe.embedded import Api
from kframe.errors import ErrorCode
from kframe.model.events import (
    ListReassignmentsRequested,
    StopReplicaResponseReceived,
)
from kframe.model.ids import ReplicaFlag, ReplicaState
from kframe.ports.store_requests import WriteAssignments, WriteStates
from kframe.testing.clusters import PartitionSpec, healthy
from tests.core.driver import Driver, assigned, elected, quiet, refusals, state_of
from tests.core.reassignments import (
    ALL,
    LEADERSHIP,
    NONE,
    NOT_REASSIGNING,
    REASSIGNING,
    TargetLists,
    catch_up,
    reassign,
    stops,
    store_reassignments,
    submit,
)

# -- phases


def test_assignment_is_stored_before_requests_are_sent() -> None:
    """controller 7.1: U1 comes before A1."""
    driver = quiet({"t": [NOT_REASSIGNING]})
    reassign(driver, 4, 5, 6)
    order = [type(effect).__name__ for effect in driver.effects]
    assert order.index("WriteAssignments") < order.index("WriteStates") < order.index("Send")


def test_phase_b_completes_reassignment() -> None:
    """
    controller 7.1: B1 to B8, once the whole target is in sync.
    state-machines 3.2: NonExistent takes the replica out of the assignment.
    """
    driver = quiet({"t": [NOT_REASSIGNING]})
    reassign(driver, 4, 5, 6)
    driver.forget()
    catch_up(driver, (1, 2, 3, 4))
    assert len(driver.performed(WriteAssignments)) == len(driver.performed(WriteStates)) == 0
    driver.forget()
    catch_up(driver, (1, 2, 3, 4, 5, 6))
    assert assigned(driver.stored("t-0")) == assigned(driver.known("t-0")) == ((4, 5, 6), (), ())
    assert [tuple(change.leader_epoch.tolist()) for change in driver.writes()] == [(7,), (8,), (9,), (10,)]
    assert state_of(driver.stored("t-0")) == (4, (4, 5, 6), 10)
    assert driver.known("t-0").replica_states == (ReplicaState.ONLINE,) * 3
    assert not len(driver.cluster.partitions.reassigning_rows())
    last = driver.batches[-1]
    assert {request["api"] for request in last} == {Api.UPDATE_METADATA}
    assert {request["broker"] for request in last} == set(ALL)
    assert last[0]["partitions"]["t-0"]["replicas"] == [4, 5, 6]


def test_removed_replicas_are_deleted_without_waiting_for_their_brokers() -> None:
    """controller 7.2: Offline, DeletionStarted, DeletionSuccessful, NonExistent in four calls. Answers are ignored."""
    driver = quiet({"t": [REASSIGNING]})
    driver.cluster.partitions.set_reassigning(np.array([0]), True)
    catch_up(driver, (1, 4, 5, 6))
    assert stops(driver) == [(1, False), (2, False), (3, False), (1, True), (2, True), (3, True)]
    before = driver.known("t-0")
    driver.forget()
    storage_error = ((("t", 0), ErrorCode.KAFKA_STORAGE_ERROR),)
    driver.handle(
        StopReplicaResponseReceived(2, NONE, storage_error, driver.context.controller_epoch, driver.rows("t-0"))
    )
    assert (driver.known("t-0"), driver.effects) == (before, [])


@pytest.mark.parametrize(
    "leader, isr, elects",
    [(4, (1, 2, 3, 4, 5, 6), False), (1, (1, 4, 5, 6), True), (None, (1, 4, 5, 6), True)],
    ids=["leader stays", "leader leaves", "no leader"],
)
def test_phase_b_elects_if_leader_is_not_in_target(leader: int | None, isr: tuple[int, ...], elects: bool) -> None:
    """controller 7.1: B3, a leader in the target stays and its leader epoch is raised. Else one is elected."""
    driver = quiet({"t": [replace(REASSIGNING, leader=leader)]})
    driver.cluster.partitions.set_reassigning(np.array([0]), True)
    catch_up(driver, isr)
    first = driver.writes()[0]
    assert driver.cluster.brokers.ids_of(first.leader) == [4]
    assert (first.leader_epoch.tolist(), first.isr.counts.tolist()) == ([6], [len(isr)])
    assert set(driver.recipients(LEADERSHIP, "t-0")) == {4, 5, 6}
    assert driver.stored("t-0").leader == 4
    assert elects == (leader != 4)


@pytest.mark.parametrize("strict", [False, True])
@pytest.mark.parametrize("leader", [4, 1], ids=["leader stays", "leader leaves"])
def test_leader_receives_target_after_isr_shrinks_to_it(leader: int, strict: bool) -> None:
    """Found by the simulator, seed 5124: a leader ignores ISR members that are not among its replicas. It then
    acknowledged writes without them, and the next controller elected one of them."""
    driver = quiet({"t": [replace(REASSIGNING, leader=leader)]}, kframe_reassignment_strict=strict)
    driver.cluster.partitions.set_reassigning(np.array([0]), True)
    catch_up(driver, (1, 2, 3, 4, 5, 6))
    recipients = [
        request["partitions"]["t-0"] for batch in driver.batches for request in batch if request["api"] == LEADERSHIP
    ]
    assert all(set(entry["isr"]) <= set(entry["replicas"]) for entry in recipients) is strict
    assert set(driver.recipients(LEADERSHIP, "t-0")) == {4, 5, 6}
    assert (driver.stored("t-0").leader, driver.stored("t-0").isr) == (4, (4, 5, 6))
    assert assigned(driver.stored("t-0")) == ((4, 5, 6), (), ())


#: (case, target, number of assignment writes, number of state writes).
UNMOVED = [("order only", (2, 1, 3), 2), ("identical", (1, 2, 3), 1)]


@pytest.mark.parametrize("target, writes", [row[1:] for row in UNMOVED], ids=[row[0] for row in UNMOVED])
def test_reassignment_to_same_replicas_runs_phase_b(target: tuple[int, ...], writes: int) -> None:
    """controller 7.3: order-only change runs phase B. An identical list still runs B3, B6 and B8."""
    driver = quiet({"t": [NOT_REASSIGNING]})
    assert reassign(driver, *target) == [NONE]
    assert assigned(driver.stored("t-0")) == (target, (), ())
    assert state_of(driver.stored("t-0")) == (1, (1, 2, 3), 6)
    assert len(driver.performed(WriteAssignments)) == writes
    assert {(b, e["is_new"]) for b, e in driver.entries(LEADERSHIP, "t-0").items()} == {(n, False) for n in (1, 2, 3)}
    assert stops(driver) == []
    assert not len(driver.cluster.partitions.reassigning_rows())


@pytest.mark.parametrize("strict", [False, True])
def test_override_sends_first_request_of_added_replica_as_new(strict: bool) -> None:
    """Found by the simulator, seed 200001: the removal of a replica sent the added one without ``is_new``. A broker
    with a failed log directory then takes it offline, and refuses the next request."""
    moving = PartitionSpec((4, 1, 2), 1, (1, 2), 5, adding_replicas=(4,))
    driver = quiet({"t": [moving]}, kframe_reassignment_strict=strict)
    assert reassign(driver, 3, 1, 2) == [NONE]
    first: dict[int, bool] = {}
    for request in driver.requests(LEADERSHIP):
        first.setdefault(request["broker"], request["partitions"]["t-0"]["is_new"])
    assert first == {1: False, 2: False, 3: strict}


@pytest.mark.parametrize("live", [ALL, (1, 2, 3, 4, 5)], ids=["all", "but one"])
def test_cancellation_of_resumed_reassignment_has_no_illegal_transition(
    live: tuple[int, ...], caplog: pytest.LogCaptureFixture
) -> None:
    """The added replicas are Online, or Offline with their broker, when the next controller resumes the
    reassignment."""
    driver = elected({"t": [REASSIGNING]}, live)
    assert submit(driver, [(("t", 0), None)]) == [NONE]
    assert assigned(driver.stored("t-0")) == ((1, 2, 3), (), ())
    assert refusals(caplog) == []


def test_stale_leader_epoch_write_is_retried() -> None:
    """controller 7.1: A1, retry on BADVERSION."""
    driver = quiet({"t": [NOT_REASSIGNING]})
    driver.before(WriteStates, lambda: driver.ensemble.write_state("t", 0, isr=(1, 3)))
    assert reassign(driver, 4, 5, 6) == [NONE]
    assert state_of(driver.stored("t-0")) == (1, (1, 3), 6)
    assert {tuple(entry["isr"]) for entry in driver.entries(LEADERSHIP, "t-0").values()} == {(1, 3)}


@pytest.mark.parametrize("source", ["api", "storage"])
def test_last_target_of_repeated_partition_is_used(source: str) -> None:
    """controller 7.5: one target a partition, the last one named."""
    driver = quiet({"t": [NOT_REASSIGNING]})
    targets: TargetLists = [(("t", 0), (4, 5)), (("t", 0), (5, 6))]
    if source == "api":
        submit(driver, targets)
    else:
        store_reassignments(driver, targets)
    assert [len(change) for change in driver.writes()] == [1]
    assert assigned(driver.stored("t-0")) == ((5, 6, 1, 2, 3), (5, 6), (1, 2, 3))


# -- 7.4 progress, 7.7 list


def test_startup_of_other_broker_does_not_resume_reassignment() -> None:
    """controller 6.2: only reassignments whose target contains a new broker."""
    driver = quiet({"t": [REASSIGNING]}, (1, 2))
    driver.cluster.partitions.set_reassigning(np.array([0]), True)
    driver.start_brokers(3)
    assert state_of(driver.stored("t-0"))[2] == 5


def test_list_reassignments() -> None:
    """controller 7.7: given partitions or all. Partitions without a reassignment and unknown partitions are omitted."""
    driver = quiet({"t": [NOT_REASSIGNING, REASSIGNING], "u": [REASSIGNING, healthy(1)]})
    driver.cluster.partitions.set_reassigning(np.array([1, 2]), True)

    def listed(*names: tuple[str, int]) -> list[str]:
        token = len(driver.replies) + 1
        response = driver.ask(ListReassignmentsRequested(names or None, token))
        assert response.error is NONE
        return [driver.cluster.name(row) for row in response.rows.tolist()]

    assert listed() == ["t-1", "u-0"]
    assert listed(("u", 0), ("t", 0), ("nowhere", 3), ("t", 99)) == ["u-0"]
    assert listed(("t", 0)) == []


# -- targets that cannot lead


def fail_target(driver: Driver) -> None:
    driver.fail_brokers(4)


def lose_target_directory(driver: Driver) -> None:
    driver.cluster.flag_replicas(0, driver.cluster.brokers.index_of([4]), ReplicaFlag.OFFLINE_DIR)


@pytest.mark.parametrize("cause_fault", [fail_target, lose_target_directory])
def test_replicas_are_retained_while_no_target_replica_can_lead(cause_fault: Callable[[Driver], None]) -> None:
    """Found by the simulator, seed 42098: the leader added the target to the ISR just after the target had failed.
    Kafka completes the reassignment and removes the last valid logs. The partition has no leader and counts as Online.
    """
    driver = quiet({"t": [NOT_REASSIGNING]}, kframe_reassignment_strict=True)
    reassign(driver, 4)
    cause_fault(driver)
    catch_up(driver, (1, 2, 3, 4))
    assert assigned(driver.stored("t-0")) == ((4, 1, 2, 3), (4,), (1, 2, 3))
    assert (driver.stored("t-0").leader, driver.stored("t-0").isr, stops(driver)) == (1, (1, 2, 3, 4), [])


def test_waiting_reassignment_completes_when_target_is_live() -> None:
    driver = quiet({"t": [NOT_REASSIGNING]}, kframe_reassignment_strict=True)
    reassign(driver, 4)
    driver.fail_brokers(4)
    catch_up(driver, (1, 2, 3, 4))
    driver.start_brokers(4)
    assert assigned(driver.stored("t-0")) == ((4,), (), ())
    assert (driver.stored("t-0").leader, driver.stored("t-0").isr) == (4, (4,))


def test_reassignment_initialises_partition_without_state() -> None:
    """Found by the simulator, seed 51644: the only broker of the partition has failed. Kafka responds with an error. It
    tries the added replicas after the next broker change: golden trace ``reassign-errors``."""
    driver = quiet({"t": [PartitionSpec((9,))]}, (1, 3), kframe_reassignment_strict=True)
    assert reassign(driver, 3, 1) == [NONE]
    assert assigned(driver.stored("t-0")) == ((3, 1), (), ())
    assert state_of(driver.stored("t-0"))[:2] == (3, (3, 1))
    assert driver.known("t-0").replica_states == (ReplicaState.ONLINE, ReplicaState.ONLINE)
