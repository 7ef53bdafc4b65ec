"""The replica state machine, rule by rule (``state-machines.md`` sections 3 to 3.4)."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
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


def change_state(
    driver: Driver, target: ReplicaState, *names: str, initial_state: ReplicaState | None = None
) -> PartitionReplicas:
    """Change the state of replicas written ``t-0@1``. Return the refused ones. ``given`` is their state before."""
    replicas = driver.replicas(*names)
    if initial_state is not None:
        driver.cluster.partitions.replica_state[replicas.slots(driver.cluster.partitions)] = initial_state
    return driver.run(replica_state_machine.transition(driver.context, replicas, target))


def take_offline(driver: Driver, *names: str) -> PartitionReplicas:
    return change_state(driver, ReplicaState.OFFLINE, *names)


def replica_state(driver: Driver, name: str) -> ReplicaState:
    (slot,) = driver.replicas(name).slots(driver.cluster.partitions)
    return ReplicaState(int(driver.cluster.partitions.replica_state[slot]))


# -- 3.1 the bulk call


def test_empty_transition_has_no_effect() -> None:
    """state-machines 3.1: empty input."""
    driver = active(STATED)
    assert len(take_offline(driver)) == 0
    assert driver.effects == []


def test_illegal_transition_does_not_affect_other_replicas(caplog: pytest.LogCaptureFixture) -> None:
    """state-machines 3.1: invalid ones are logged and skipped."""
    driver = active(STATED, STATED)
    driver.cluster.partitions.replica_state[driver.replicas("t-0@2").slots(driver.cluster.partitions)] = (
        ReplicaState.NON_EXISTENT
    )
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


def test_brokers_leave_isr_in_scala_hash_order() -> None:
    """state-machines 3.1: grouped by broker id.

    If twelve members leave the ISR at once, the last one in that order, broker 4, stays.
    """
    broker_ids = tuple(range(1, 13))
    driver = active(PartitionSpec(broker_ids, leader=1, isr=broker_ids), live=broker_ids)
    take_offline(driver, *(f"t-0@{broker_id}" for broker_id in broker_ids))
    assert state_of(driver.stored("t-0")) == (-1, (4,), 12)
    order = [5, 10, 1, 6, 9, 2, 12, 7, 3, 11, 8, 4]
    isrs = [set(driver.cluster.brokers.ids_of(change.isr.values)) for change in driver.writes()]
    removed = [sorted(before - after) for before, after in zip([set(broker_ids), *isrs], isrs, strict=False)]
    assert removed == [[broker_id] for broker_id in order[:-1]] + [[]]


# -- 3.2 effects by target


def test_new_replica_of_led_partition_receives_leader_and_isr() -> None:
    """state-machines 3.2: New with leadership."""
    driver = active(STATED)
    change_state(driver, ReplicaState.NEW, "t-0@2", initial_state=ReplicaState.NON_EXISTENT)
    (request,) = driver.requests(Api.LEADER_AND_ISR)
    recipients = request["partitions"]["t-0"]
    assert (request["broker"], recipients["is_new"], recipients["leader_epoch"], recipients["replicas"]) == (
        2,
        True,
        5,
        [1, 2, 3],
    )
    assert driver.recipients(Api.UPDATE_METADATA, "t-0") == [1, 2, 3]
    assert driver.writes() == []


def test_leader_cannot_become_new(caplog: pytest.LogCaptureFixture) -> None:
    """state-machines 3.2: New where it leads already."""
    driver = active(STATED)
    change_state(driver, ReplicaState.NEW, "t-0@1", initial_state=ReplicaState.NON_EXISTENT)
    assert driver.effects == []
    assert replica_state(driver, "t-0@1") is ReplicaState.NON_EXISTENT
    assert "t-0: cannot be New: it is the leader" in refusals(caplog)[0]


@pytest.mark.parametrize("initial_state", [ReplicaState.ONLINE, ReplicaState.OFFLINE, ReplicaState.DELETION_INELIGIBLE])
def test_other_state_to_online_sends_leader_and_isr(initial_state: ReplicaState) -> None:
    """state-machines 3.2: Online from others."""
    driver = active(STATED, PartitionSpec((1, 2)))
    change_state(driver, ReplicaState.ONLINE, "t-0@2", "t-1@2", initial_state=initial_state)
    (request,) = driver.requests(Api.LEADER_AND_ISR)
    assert (request["broker"], list(request["partitions"])) == (2, ["t-0"])
    assert request["partitions"]["t-0"]["is_new"] is False
    assert driver.recipients(Api.UPDATE_METADATA, "t-0") == [1, 2, 3]
    assert replica_state(driver, "t-1@2") is ReplicaState.ONLINE


@pytest.mark.parametrize("deleting, leader_epoch", [(True, EPOCH_DURING_DELETE), (False, 5)])
def test_deletion_starts_with_stop_replica(deleting: bool, leader_epoch: int) -> None:
    """state-machines 3.2: ReplicaDeletionStarted."""
    driver = active(STATED)
    driver.cluster.topics.deleting[0] = deleting
    change_state(driver, ReplicaState.DELETION_STARTED, "t-0@2", initial_state=ReplicaState.OFFLINE)
    (request,) = driver.requests(Api.STOP_REPLICA)
    assert request["broker"] == 2
    assert request["partitions"] == {"t-0": {"leader_epoch": leader_epoch, "delete_partition": True}}
    assert kinds(driver.effects) == ["Send"]


@pytest.mark.parametrize(
    "spec, initial_state, target",
    [
        (PartitionSpec((1, 2)), ReplicaState.NON_EXISTENT, ReplicaState.NEW),
        (STATED, ReplicaState.NEW, ReplicaState.ONLINE),
        (STATED, ReplicaState.DELETION_STARTED, ReplicaState.DELETION_SUCCESSFUL),
        (STATED, ReplicaState.DELETION_STARTED, ReplicaState.DELETION_INELIGIBLE),
        (STATED, ReplicaState.OFFLINE, ReplicaState.DELETION_INELIGIBLE),
        (STATED, ReplicaState.DELETION_SUCCESSFUL, ReplicaState.NON_EXISTENT),
    ],
)
def test_transition_sends_nothing(spec: PartitionSpec, initial_state: ReplicaState, target: ReplicaState) -> None:
    """state-machines 3.2: New without leadership.
    state-machines 3.2: Online from New.
    state-machines 3.2: ReplicaDeletionSuccessful and ReplicaDeletionIneligible.
    state-machines 3.2: NonExistent drops its state and sends nothing.
    """
    driver = active(spec)
    change_state(driver, target, "t-0@2", initial_state=initial_state)
    assert driver.effects == []
    assert replica_state(driver, "t-0@2") is target


# -- 3.3 to Offline


@pytest.mark.parametrize("spec, leader_epoch", [(STATED, 5), (PartitionSpec((1, 2, 3)), NO_EPOCH)])
def test_offline_transition_sends_stop_replica(spec: PartitionSpec, leader_epoch: int) -> None:
    """state-machines 3.3: StopReplica without delete, with the leader epoch known before."""
    driver = active(spec)
    take_offline(driver, "t-0@2")
    (request,) = driver.requests(Api.STOP_REPLICA)
    assert request["broker"] == 2
    assert request["partitions"] == {"t-0": {"leader_epoch": leader_epoch, "delete_partition": False}}


def test_offline_transition_sends_leader_and_isr_to_other_replicas() -> None:
    """state-machines 3.3: LeaderAndIsr to all assigned replicas but this one, metadata to all."""
    driver = active(STATED, live=(1, 2, 3, 9))
    take_offline(driver, "t-0@2")
    assert driver.recipients(Api.LEADER_AND_ISR, "t-0") == [1, 3]
    recipients = driver.requests(Api.LEADER_AND_ISR)[0]["partitions"]["t-0"]
    assert (recipients["isr"], recipients["leader_epoch"], recipients["replicas"], recipients["is_new"]) == (
        [1, 3],
        6,
        [1, 2, 3],
        False,
    )
    assert driver.recipients(Api.UPDATE_METADATA, "t-0") == [1, 2, 3, 9]
    assert replica_state(driver, "t-0@2") is ReplicaState.OFFLINE


def test_offline_transition_of_deleting_topic_is_not_announced() -> None:
    """state-machines 3.3: topic queued for deletion."""
    driver = active(STATED)
    driver.cluster.topics.deleting[0] = 1
    take_offline(driver, "t-0@2")
    assert driver.requests(Api.LEADER_AND_ISR) == driver.requests(Api.UPDATE_METADATA) == []
    assert driver.recipients(Api.STOP_REPLICA, "t-0") == [2]
    assert driver.stored("t-0").isr == (1, 3)
    assert replica_state(driver, "t-0@2") is ReplicaState.OFFLINE


def test_offline_transition_without_state_sends_live_brokers() -> None:
    """state-machines 3.3: partition without leadership."""
    driver = active(PartitionSpec((1, 2)))
    take_offline(driver, "t-0@2")
    assert [request["broker"] for request in driver.requests(Api.UPDATE_METADATA)] == [1, 2, 3]
    assert driver.recipients(Api.UPDATE_METADATA, "t-0") == []
    assert driver.writes() == []
    assert driver.requests(Api.LEADER_AND_ISR) == []
    assert replica_state(driver, "t-0@2") is ReplicaState.OFFLINE


def test_stop_replica_to_dead_broker_is_dropped() -> None:
    """state-machines 3.3: StopReplica to a dead broker is dropped when the batch is sent."""
    driver = active(STATED, live=(1, 3))
    change_state(driver, ReplicaState.OFFLINE, "t-0@2", initial_state=ReplicaState.ONLINE)
    assert driver.requests(Api.STOP_REPLICA) == []
    assert driver.recipients(Api.LEADER_AND_ISR, "t-0") == [1, 3]


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
    assert replica_state(driver, "t-0@2") is ReplicaState.ONLINE
    assert replica_state(driver, "t-1@2") is ReplicaState.OFFLINE
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
    assert replica_state(driver, "t-0@2") is ReplicaState.ONLINE


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


def test_worked_example_of_isr_removal() -> None:
    """state-machines 3.4: worked example."""
    driver = active(STATED)
    seen = []
    for removed_broker in (1, 2, 3):
        take_offline(driver, f"t-0@{removed_broker}")
        seen.append(state_of(driver.stored("t-0")))
    assert seen == [(-1, (2, 3), 6), (-1, (3,), 7), (-1, (3,), 8)]


def test_replica_outside_isr_writes_nothing() -> None:
    """state-machines 3.4: replica not in the ISR, no write, LeaderAndIsr with the unchanged leader epoch."""
    driver = active(PartitionSpec((1, 2, 3), 1, (1, 3), leader_epoch=5, partition_epoch=7))
    take_offline(driver, "t-0@2")
    assert driver.writes() == []
    assert driver.recipients(Api.LEADER_AND_ISR, "t-0") == [1, 3]
    recipients = driver.requests(Api.LEADER_AND_ISR)[0]["partitions"]["t-0"]
    assert (recipients["leader_epoch"], recipients["partition_epoch"]) == (5, 7)
    assert replica_state(driver, "t-0@2") is ReplicaState.OFFLINE


def test_replica_outside_isr_updates_cached_controller_epoch() -> None:
    """state-machines 3.4: replica not in the ISR, cached with our controller epoch."""
    driver = active(PartitionSpec((1, 2, 3), 1, (1, 3), leader_epoch=5, controller_epoch=2))
    take_offline(driver, "t-0@2")
    assert driver.known("t-0").controller_epoch == 4
    assert driver.stored("t-0").controller_epoch == 2


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
    assert replica_state(driver, "t-0@2") is ReplicaState.OFFLINE


def test_isr_removal_attempts_are_bounded(caplog: pytest.LogCaptureFixture) -> None:
    """state-machines 3.4: attempts are bounded (Kafka's are not)."""
    driver = active(STATED)
    for _ in range(ATTEMPTS_MAX):
        driver.before(WriteStates, lambda: driver.ensemble.write_state("t", 0, isr=(1, 2, 3)))
    take_offline(driver, "t-0@2")
    assert len(driver.writes()) == ATTEMPTS_MAX
    assert replica_state(driver, "t-0@2") is ReplicaState.ONLINE
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


def test_broker_gets_leader_and_isr_then_metadata_then_stop_replica() -> None:
    """state-machines 4: LeaderAndIsr, UpdateMetadata, StopReplica."""
    driver = active(STATED, STATED)
    take_offline(driver, "t-0@2", "t-1@3")
    (batch,) = driver.batches
    for broker in (2, 3):
        assert [request["api"] for request in batch if request["broker"] == broker] == [
            Api.LEADER_AND_ISR, Api.UPDATE_METADATA, Api.STOP_REPLICA,
        ]  # fmt: skip
    (send,) = driver.performed(Send)
    assert np.array_equal(send.requests.stop_delete, [0, 0])


@pytest.mark.parametrize("target", [ReplicaState.OFFLINE, ReplicaState.DELETION_STARTED])
def test_relocated_row_keeps_replicas_of_transition(target: ReplicaState) -> None:
    """The controller reads a stale state again. If the new ISR exceeds the slots of the row, the row is relocated. The
    same replicas still change state."""
    driver = active(PartitionSpec((1, 2), leader=1, isr=(1, 2)), live=(1, 2, 3, 4))
    before = driver.cluster.partitions.slot_start.tolist()
    replicas = driver.replicas("t-0@1", "t-0@2")
    driver.before(WriteStates, lambda: driver.ensemble.write_state("t", 0, isr=(2, 3, 4, 1)))
    for state in dict.fromkeys((ReplicaState.OFFLINE, target)):
        driver.run(replica_state_machine.transition(driver.context, replicas, state))
    assert driver.cluster.partitions.slot_start.tolist() != before
    assert driver.stored("t-0").isr == (3, 4)
    assert [replica_state(driver, name) for name in ("t-0@1", "t-0@2")] == [target] * 2
