"""The replica state machine, rule by rule (``state-machines.md`` sections 3 to 3.4)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from kframe.core.context import ATTEMPTS_MAX
from kframe.core.state_machines import replica_state_machine
from kframe.core.state_machines.replica_state_machine import PartitionReplicas
from kframe.embedded import Api
from kframe.errors import StoreError
from kframe.model.effects import Send
from kframe.model.ids import EPOCH_DURING_DELETE, NO_EPOCH, ReplicaState
from kframe.ports.store_requests import ReadStates, WriteStates
from kframe.testing.clusters import PartitionSpec
from tests.core.driver import Driver, active, erase, kinds, overtake, refusals, state_of

STATED = PartitionSpec((1, 2, 3), leader=1, isr=(1, 2, 3), leader_epoch=5)
STATELESS = PartitionSpec((1, 2, 3))
NON_EXISTENT, NEW, ONLINE, OFFLINE = (
    ReplicaState.NON_EXISTENT,
    ReplicaState.NEW,
    ReplicaState.ONLINE,
    ReplicaState.OFFLINE,
)
STARTED, SUCCESSFUL, INELIGIBLE = (
    ReplicaState.DELETION_STARTED,
    ReplicaState.DELETION_SUCCESSFUL,
    ReplicaState.DELETION_INELIGIBLE,
)


def change_state(
    driver: Driver, target: ReplicaState, *names: str, initial_state: ReplicaState | None = None
) -> PartitionReplicas:
    """Change the state of replicas written ``t-0@1``, first to ``initial_state``. Return the refused replicas."""
    replicas = driver.replicas(*names)
    if initial_state is not None:
        driver.cluster.partitions.set_replica_states(replicas.slots(driver.cluster.partitions), initial_state)
    return driver.run(replica_state_machine.transition(driver.context, replicas, target))


def take_offline(driver: Driver, *names: str) -> PartitionReplicas:
    return change_state(driver, OFFLINE, *names)


def replica_state(driver: Driver, name: str) -> ReplicaState:
    p = driver.cluster.partitions
    (state,) = p.replica_states(driver.replicas(name).slots(p)).tolist()
    return ReplicaState(state)


# -- 3.1 the bulk call


def test_illegal_transition_does_not_affect_other_replicas(caplog: pytest.LogCaptureFixture) -> None:
    """state-machines 3.1: invalid ones are logged and skipped."""
    driver = active(STATED, STATED)
    p = driver.cluster.partitions
    p.set_replica_states(driver.replicas("t-0@2").slots(p), NON_EXISTENT)
    refused = take_offline(driver, "t-0@2", "t-1@2")
    assert refused.rows.tolist() == [0]
    assert driver.stored("t-0").isr == (1, 2, 3)
    assert driver.stored("t-1").isr == (1, 3)
    assert len(refusals(caplog)) == 1


@pytest.mark.parametrize("names, writes", [(("t-0@2", "t-1@3"), 1), (("t-0@3", "t-0@2", "t-1@3"), 2)])
def test_replicas_of_all_brokers_share_a_batch(names: tuple[str, ...], writes: int) -> None:
    """state-machines 3.1: one send at the end, after a write for each replica that a partition loses."""
    driver = active(STATED, STATED)
    take_offline(driver, *names)
    assert kinds(driver.effects) == ["WriteStates"] * writes + ["Send"]


# -- 3.2 effects by target


#: (case, partition, whether its topic is being deleted, states of the replica on broker 2, and the requests:
#: (broker, is_new, leader epoch) of LeaderAndIsr, (delete, leader epoch) of StopReplica to broker 2, and brokers of
#: UpdateMetadata).
REQUESTS: list[tuple[str, PartitionSpec, bool, ReplicaState, ReplicaState, list[Any], list[Any], list[int]]] = [
    ("new", STATED, False, NON_EXISTENT, NEW, [(2, True, 5)], [], [1, 2, 3]),
    ("new without a state", STATELESS, False, NON_EXISTENT, NEW, [], [], []),
    ("new to online", STATED, False, NEW, ONLINE, [], [], []),
    ("offline to online", STATED, False, OFFLINE, ONLINE, [(2, False, 5)], [], [1, 2, 3]),
    ("ineligible to online", STATED, False, INELIGIBLE, ONLINE, [(2, False, 5)], [], [1, 2, 3]),
    ("offline to online without a state", STATELESS, False, OFFLINE, ONLINE, [], [], []),
    ("offline", STATED, False, ONLINE, OFFLINE, [(1, False, 6), (3, False, 6)], [(False, 5)], [1, 2, 3]),
    ("offline without a state", STATELESS, False, ONLINE, OFFLINE, [], [(False, NO_EPOCH)], [1, 2, 3]),
    ("offline under deletion", STATED, True, ONLINE, OFFLINE, [], [(False, EPOCH_DURING_DELETE)], []),
    ("deleted from an assignment", STATED, False, OFFLINE, STARTED, [], [(True, 5)], []),
    ("deleted", STATED, True, OFFLINE, STARTED, [], [(True, EPOCH_DURING_DELETE)], []),
    ("deletion succeeds", STATED, True, STARTED, SUCCESSFUL, [], [], []),
    ("deletion fails", STATED, True, STARTED, INELIGIBLE, [], [], []),
    ("deletion completes", STATED, True, SUCCESSFUL, NON_EXISTENT, [], [], []),
]


@pytest.mark.parametrize(
    "spec, deleting, initial_state, target, led, stopped, informed",
    [row[1:] for row in REQUESTS],
    ids=[row[0] for row in REQUESTS],
)
def test_requests_of_transition(
    spec: PartitionSpec,
    deleting: bool,
    initial_state: ReplicaState,
    target: ReplicaState,
    led: list[Any],
    stopped: list[Any],
    informed: list[int],
) -> None:
    """state-machines 3.2 and 3.3: effects by target."""
    driver = active(spec)
    driver.cluster.topics.deleting[0] = deleting
    change_state(driver, target, "t-0@2", initial_state=initial_state)
    entries = driver.entries(Api.LEADER_AND_ISR, "t-0")
    assert [(broker, entry["is_new"], entry["leader_epoch"]) for broker, entry in entries.items()] == led
    stops = driver.entries(Api.STOP_REPLICA, "t-0")
    assert [(broker, entry["delete_partition"], entry["leader_epoch"]) for broker, entry in stops.items()] == [
        (2, *entry) for entry in stopped
    ]
    assert [request["broker"] for request in driver.requests(Api.UPDATE_METADATA)] == informed
    assert replica_state(driver, "t-0@2") is target


def test_leader_cannot_become_new(caplog: pytest.LogCaptureFixture) -> None:
    """state-machines 3.2: New where it leads already."""
    driver = active(STATED)
    change_state(driver, NEW, "t-0@1", initial_state=NON_EXISTENT)
    assert driver.effects == []
    assert replica_state(driver, "t-0@1") is NON_EXISTENT
    assert "t-0: cannot be New: it is the leader" in refusals(caplog)[0]


# -- 3.4 out of the ISR


def erase_first(driver: Driver) -> None:
    erase(driver, "t-0")


def erase_after_a_race(driver: Driver) -> None:
    driver.ensemble.write_state("t", 0, isr=(1, 2))
    driver.before(ReadStates, lambda: erase(driver, "t-0"))


@pytest.mark.parametrize("cause_fault", [erase_first, erase_after_a_race, overtake])
def test_failed_isr_write_keeps_replica_state(
    cause_fault: Callable[[Driver], None], caplog: pytest.LogCaptureFixture
) -> None:
    """state-machines 3.4: no state in storage.
    state-machines 3.4: a later controller's state is final.
    state-machines 3.3: failures are logged, and the replica keeps its state although it was stopped.
    """
    driver = active(STATED, STATED)
    driver.before(WriteStates, lambda: cause_fault(driver))
    take_offline(driver, "t-0@2", "t-1@2")
    assert replica_state(driver, "t-0@2") is ONLINE
    assert replica_state(driver, "t-1@2") is OFFLINE
    assert driver.recipients(Api.STOP_REPLICA, "t-0") == [2]
    assert driver.recipients(Api.LEADER_AND_ISR, "t-0") == []
    assert driver.stored("t-0").leader_epoch in (5, 20)
    assert len(refusals(caplog)) == 1
    assert "t-0: is unchanged" in refusals(caplog)[0]


def test_missing_state_of_deleting_topic_is_ignored(caplog: pytest.LogCaptureFixture) -> None:
    """state-machines 3.4: no state in storage, topic queued for deletion."""
    driver = active(STATED)
    driver.cluster.topics.deleting[0] = 1
    driver.before(WriteStates, lambda: erase(driver, "t-0"))
    take_offline(driver, "t-0@2")
    assert refusals(caplog) == []
    assert replica_state(driver, "t-0@2") is ONLINE


@pytest.mark.parametrize(
    "spec, removed_broker, expected",
    [
        (STATED, 1, (-1, (2, 3), 6)),
        (STATED, 2, (1, (1, 3), 6)),
        (PartitionSpec((1, 2, 3), 1, (3, 2, 1), leader_epoch=5), 2, (1, (3, 1), 6)),
        (PartitionSpec((1, 2, 3), 2, (2,), leader_epoch=5), 2, (-1, (2,), 6)),
        (PartitionSpec((1, 2, 3), None, (2,), leader_epoch=5), 2, (-1, (2,), 6)),
    ],
    ids=["leader leaves", "follower leaves", "order kept", "last member stays", "last member without leader"],
)
def test_offline_replica_leaves_isr(
    spec: PartitionSpec, removed_broker: int, expected: tuple[int, tuple[int, ...], int]
) -> None:
    """state-machines 3.4: replica in the ISR.
    state-machines 3.4: last member stays.
    state-machines 5: the last ISR member is always kept, as since 1.1.
    """
    driver = active(spec)
    take_offline(driver, f"t-0@{removed_broker}")
    view = driver.stored("t-0")
    assert state_of(view) == state_of(driver.known("t-0")) == expected
    assert (view.controller_epoch, view.partition_epoch) == (4, 1)


def test_replica_outside_isr_costs_no_write() -> None:
    """state-machines 3.4: replica not in the ISR, no write, cached with our controller epoch."""
    driver = active(PartitionSpec((1, 2, 3), 1, (1, 3), leader_epoch=5, controller_epoch=2))
    take_offline(driver, "t-0@2")
    assert (driver.writes(), replica_state(driver, "t-0@2")) == ([], OFFLINE)
    assert {broker: entry["leader_epoch"] for broker, entry in driver.entries(Api.LEADER_AND_ISR, "t-0").items()} == {
        1: 5,
        3: 5,
    }
    assert (driver.known("t-0").controller_epoch, driver.stored("t-0").controller_epoch) == (4, 2)


@pytest.mark.parametrize("isr, expected", [((1, 2), (1, (1,), 6)), ((1, 3), (1, (1, 3), 5))])
def test_stale_version_is_read_and_written_again(
    isr: tuple[int, ...], expected: tuple[int, tuple[int, ...], int]
) -> None:
    """state-machines 3.4: stale version."""
    driver = active(STATED, STATED)
    driver.before(WriteStates, lambda: driver.ensemble.write_state("t", 0, isr=isr))
    take_offline(driver, "t-0@2", "t-1@2")
    assert state_of(driver.stored("t-0")) == expected
    assert driver.written()[0] == ["t-0", "t-1"]
    assert driver.written()[1:] == ([["t-0"]] if 2 in isr else [])
    assert driver.recipients(Api.LEADER_AND_ISR, "t-0") == [1, 3]
    assert replica_state(driver, "t-0@2") is OFFLINE


def test_isr_removal_attempts_are_bounded(caplog: pytest.LogCaptureFixture) -> None:
    """state-machines 3.4: attempts are bounded (Kafka's are not)."""
    driver = active(STATED)
    for _ in range(ATTEMPTS_MAX):
        driver.before(WriteStates, lambda: driver.ensemble.write_state("t", 0, isr=(1, 2, 3)))
    take_offline(driver, "t-0@2")
    assert len(driver.writes()) == ATTEMPTS_MAX
    assert replica_state(driver, "t-0@2") is ONLINE
    assert "keeps changing" in refusals(caplog)[-1]


def test_requests_of_failed_transition_are_dropped() -> None:
    """state-machines 2.4: no poisoned batch of replicas. Once there are requests, only sending can fail."""
    driver = active(STATED, STATED)
    driver.fail(Send, StoreError("no transport"))
    with pytest.raises(StoreError):
        take_offline(driver, "t-0@2")
    driver.forget()
    take_offline(driver, "t-1@3")
    assert driver.recipients(Api.STOP_REPLICA, "t-0") == []
    assert driver.recipients(Api.STOP_REPLICA, "t-1") == [3]


# -- 4 order


@pytest.mark.parametrize("target", [OFFLINE, STARTED])
def test_relocated_row_keeps_replicas_of_transition(target: ReplicaState) -> None:
    """The controller reads a stale state again. If the new ISR exceeds the slots of the row, the row is relocated. The
    same replicas still change state."""
    driver = active(PartitionSpec((1, 2), leader=1, isr=(1, 2)), live=(1, 2, 3, 4))
    before = driver.cluster.partitions.slot_start.tolist()
    replicas = driver.replicas("t-0@1", "t-0@2")
    driver.before(WriteStates, lambda: driver.ensemble.write_state("t", 0, isr=(2, 3, 4, 1)))
    for state in dict.fromkeys((OFFLINE, target)):
        driver.run(replica_state_machine.transition(driver.context, replicas, state))
    assert driver.cluster.partitions.slot_start.tolist() != before
    assert driver.stored("t-0").isr == (3, 4)
    assert [replica_state(driver, name) for name in ("t-0@1", "t-0@2")] == [target] * 2
