"""The partition state machine, rule by rule (``state-machines.md`` sections 2 to 2.4)."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np
import pytest

from kframe.core.context import ATTEMPTS_MAX
from kframe.core.state_machines import leader_election, partition_state_machine
from kframe.core.state_machines.partition_state_machine import PartitionTransitions
from kframe.embedded import Api
from kframe.errors import StoreError
from kframe.model.effects import Send
from kframe.model.events import Reelect
from kframe.model.ids import NO_LEADER, NO_STATE, PartitionState
from kframe.ports.store_requests import ReadStates, WriteStates
from kframe.testing.clusters import PartitionSpec, cluster_of, healthy
from tests.core.driver import Driver, active, erase, kinds, overtake, refusals, state_of

#: Leader 1 is dead; brokers 2 and 3 are registered.
BEREFT = PartitionSpec((1, 2, 3), leader=1, isr=(1, 2, 3), leader_epoch=5)
FRESH = PartitionSpec((1, 2, 3))


make_driver = partial(active, live=(2, 3))


def bring_online(
    driver: Driver, *names: str, strategy: leader_election.Strategy = leader_election.OFFLINE
) -> PartitionTransitions:
    rows = driver.rows(*names)
    return driver.run(partition_state_machine.transition(driver.context, rows, PartitionState.ONLINE, strategy))


# -- 2.1 the bulk call


def test_empty_transition_has_no_effect() -> None:
    """state-machines 2.1: empty input."""
    driver = make_driver(BEREFT)
    result = bring_online(driver)
    assert driver.effects == []
    assert [len(part) for part in (result.initialised, result.elected, result.failed, result.invalid)] == [0, 0, 0, 0]


def test_added_partition_is_non_existent() -> None:
    """state-machines 2.1: unknown is NonExistent."""
    cluster = cluster_of({"t": [FRESH]}, (1,))
    assert cluster["t", 0].state is PartitionState.NON_EXISTENT


def test_illegal_transition_does_not_affect_other_partitions(caplog: pytest.LogCaptureFixture) -> None:
    """state-machines 2.1: invalid ones are logged. They are left out."""
    driver = make_driver(BEREFT, BEREFT)
    driver.cluster.partitions.state[0] = PartitionState.NON_EXISTENT
    result = bring_online(driver, "t-0", "t-1")
    assert (result.elected.tolist(), result.failed.tolist(), result.invalid.tolist()) == ([1], [], [0])
    assert driver.stored("t-0").leader == 1
    assert len(refusals(caplog)) == 1


def test_transition_sends_a_single_batch() -> None:
    """state-machines 2.1: one send at the end.
    state-machines 2.2: initialisation comes before election.
    """
    driver = make_driver(BEREFT, FRESH)
    bring_online(driver, "t-0", "t-1")
    assert kinds(driver.effects) == ["WriteStates", "WriteStates", "Send"]
    assert driver.written() == [["t-1"], ["t-0"]]


def test_initialised_partition_is_not_reported_as_elected() -> None:
    """state-machines 2.1: only elections are reported."""
    result = bring_online(make_driver(BEREFT, FRESH), "t-0", "t-1")
    assert (result.initialised.tolist(), result.elected.tolist()) == ([1], [0])


def test_storage_failure_ends_transition() -> None:
    """state-machines 2.1: failure of the whole call."""
    driver = make_driver(BEREFT)
    driver.fail(WriteStates, StoreError("connection lost"))
    with pytest.raises(StoreError, match="connection lost"):
        bring_online(driver, "t-0")
    assert state_of(driver.known("t-0")) == (1, (1, 2, 3), 5)
    assert driver.known("t-0").state is PartitionState.OFFLINE


# -- 2.2 New to Online


def test_new_partition_is_created_with_current_controller_epoch() -> None:
    """state-machines 2.2: live replicas in assignment order are leader and ISR."""
    driver = make_driver(PartitionSpec((3, 1, 2)))
    bring_online(driver, "t-0")
    view = driver.stored("t-0")
    assert state_of(view) == (3, (3, 2), 0)
    assert (view.controller_epoch, view.partition_epoch, view.recovery) == (4, 0, 0)
    assert driver.writes()[0].expected.tolist() == [NO_STATE]


def test_new_partition_sends_is_new_to_isr_and_metadata_to_all() -> None:
    """state-machines 2.2: recipients."""
    driver = make_driver(PartitionSpec((3, 1)), live=(2, 3))
    bring_online(driver, "t-0")
    (request,) = driver.requests(Api.LEADER_AND_ISR)
    assert (request["broker"], request["partitions"]["t-0"]["is_new"]) == (3, True)
    assert driver.recipients(Api.UPDATE_METADATA, "t-0") == [2, 3]


def test_partition_without_online_replica_stays_new(caplog: pytest.LogCaptureFixture) -> None:
    """state-machines 2.2: no online replica."""
    driver = make_driver(PartitionSpec((1,)), FRESH)
    result = bring_online(driver, "t-0", "t-1")
    assert result.initialised.tolist() == [1]
    assert driver.known("t-0").state is PartitionState.NEW
    assert refusals(caplog)[0].endswith("t-0 from NewPartition to OnlinePartition: no replica is online")


def test_existing_state_is_not_overwritten(caplog: pytest.LogCaptureFixture) -> None:
    """state-machines 2.2: existing state stays New, without retry."""
    driver = make_driver(FRESH, FRESH)
    driver.before(WriteStates, lambda: driver.ensemble.write_state("t", 0, leader=2, isr=(2,), leader_epoch=9))
    bring_online(driver, "t-0", "t-1")
    assert state_of(driver.stored("t-0")) == (2, (2,), 9)
    assert driver.known("t-0").state is PartitionState.NEW
    assert driver.known("t-1").state is PartitionState.ONLINE
    assert kinds(driver.effects) == ["WriteStates", "Send"]
    assert driver.recipients(Api.LEADER_AND_ISR, "t-0") == driver.recipients(Api.UPDATE_METADATA, "t-0") == []
    assert "t-0 from NewPartition to OnlinePartition: storage has a state for it already" in refusals(caplog)[0]


# -- 2.3 elections


def test_election_is_written_conditionally() -> None:
    """state-machines 2.3: conditional set."""
    driver = make_driver(PartitionSpec((1, 2, 3), 1, (1, 2, 3), leader_epoch=5, partition_epoch=8))
    bring_online(driver, "t-0")
    (change,) = driver.writes()
    assert (change.expected.tolist(), change.controller_epoch) == ([8], 4)
    view = driver.stored("t-0")
    assert (*state_of(view), view.partition_epoch, view.controller_epoch) == (2, (2, 3), 6, 9, 4)
    assert driver.known("t-0").partition_epoch == 9


def test_stale_version_is_read_and_elected_again() -> None:
    """state-machines 2.3: stale version."""
    driver = make_driver(BEREFT, BEREFT)
    driver.before(WriteStates, lambda: driver.ensemble.write_state("t", 0, isr=(1, 3)))
    result = bring_online(driver, "t-0", "t-1")
    assert result.elected.tolist() == [0, 1]
    assert kinds(driver.effects) == ["WriteStates", "ReadStates", "WriteStates", "Send"]
    assert driver.written() == [["t-0", "t-1"], ["t-0"]]
    assert state_of(driver.stored("t-0")) == (3, (3,), 6)
    assert driver.stored("t-0").partition_epoch == 2
    assert driver.recipients(Api.LEADER_AND_ISR, "t-0") == [2, 3]


def test_election_attempts_are_bounded() -> None:
    """state-machines 2.3: attempts are bounded (Kafka's are not)."""
    driver = make_driver(BEREFT)
    for _ in range(ATTEMPTS_MAX):
        driver.before(WriteStates, lambda: driver.ensemble.write_state("t", 0, isr=(1, 2, 3)))
    result = bring_online(driver, "t-0")
    assert result.failed.tolist() == [0]
    assert len(driver.writes()) == ATTEMPTS_MAX
    assert driver.known("t-0").state is PartitionState.OFFLINE


def vanish(driver: Driver) -> None:
    erase(driver, "t-0")


@pytest.mark.parametrize("cause_fault", [vanish, overtake])
def test_unreadable_partition_fails_election(cause_fault: Callable[[Driver], None]) -> None:
    """state-machines 2.3: missing state is final.
    state-machines 2.3: a later controller's state is final and not overwritten.
    """
    driver = make_driver(BEREFT, BEREFT)
    driver.before(WriteStates, lambda: cause_fault(driver))
    result = bring_online(driver, "t-0", "t-1")
    assert (result.elected.tolist(), result.failed.tolist()) == ([1], [0])
    assert driver.known("t-0").state is PartitionState.OFFLINE
    assert driver.stored("t-0").leader_epoch in (5, 20)
    assert driver.recipients(Api.LEADER_AND_ISR, "t-0") == []


@pytest.mark.parametrize("state", [PartitionState.ONLINE, PartitionState.OFFLINE], ids=lambda state: state.name)
def test_failed_election_keeps_partition_state(state: PartitionState) -> None:
    """state-machines 2.3: no leader is final and changes no state."""
    driver = make_driver(PartitionSpec((1, 2), leader=1, isr=(1,), leader_epoch=5), BEREFT)
    driver.cluster.partitions.state[0] = state
    before = driver.known("t-0")
    result = bring_online(driver, "t-0", "t-1")
    assert (result.elected.tolist(), result.failed.tolist()) == ([1], [0])
    assert driver.known("t-0") == before
    assert driver.written() == [["t-1"]]
    assert driver.recipients(Api.UPDATE_METADATA, "t-0") == []


def test_partition_without_candidate_is_reread() -> None:
    """state-machines 2.3: the rule is applied to what storage has, not to the state in memory."""
    driver = make_driver(PartitionSpec((1, 2), 1, (1,), leader_epoch=5), PartitionSpec((1, 3), 1, (1,), leader_epoch=5))
    driver.ensemble.write_state("t", 0, isr=(1, 2))
    result = bring_online(driver, "t-0", "t-1")
    assert (result.elected.tolist(), result.failed.tolist()) == ([0], [1])
    assert state_of(driver.stored("t-0")) == (2, (2,), 6)
    reads = [effect.rows.tolist() for effect in driver.effects if isinstance(effect, ReadStates)]
    assert reads == [[0, 1]]


def test_partitions_elected_on_retry_are_announced_in_topic_order() -> None:
    """state-machines 2.3: stale version, read again together with partitions without candidate: reported topic by
    topic."""
    hopeless = PartitionSpec((1, 2), 1, (1,), leader_epoch=5)
    driver = Driver(cluster_of({"a": [hopeless, BEREFT], "b": [hopeless, BEREFT]}, (2, 3)))
    driver.adopt()
    for topic in "ab":
        driver.ensemble.write_state(topic, 0, isr=(1, 2))
    driver.before(WriteStates, lambda: [driver.ensemble.write_state(topic, 1, isr=(1, 2)) for topic in "ab"])
    bring_online(driver, "a-0", "a-1", "b-0", "b-1")
    (requests,) = [effect.requests for effect in driver.effects if isinstance(effect, Send)]
    for _, part in requests.leader_and_isr.slices():
        rows = requests.leader_and_isr.rows[part].tolist()
        assert rows == sorted(rows)


@pytest.mark.parametrize(
    "default, setting, elected",
    [("false", -1, False), ("true", -1, True), ("true", 0, False), ("false", 1, True)],
)
def test_topic_unclean_setting_overrides_broker_default(default: str, setting: int, elected: bool) -> None:
    """state-machines 2.3: lookup of unclean election by topic.
    elections 3: the topic's setting decides, else the broker default.
    """
    spec = PartitionSpec((1, 2), leader=1, isr=(1,), leader_epoch=5)
    driver = make_driver(spec, config={"unclean.leader.election.enable": default})
    driver.cluster.topics.unclean[0] = setting
    result = bring_online(driver, "t-0")
    assert result.elected.tolist() == ([0] if elected else [])


# -- 2.4 startup and triggers


def test_initial_states_depend_on_leader() -> None:
    """state-machines 2.4: startup states."""
    driver = Driver(cluster_of({"t": [PartitionSpec((1,)), healthy(2), healthy(1)]}, (2,)))
    driver.handle(Reelect())
    states = [driver.known(name).state for name in ("t-0", "t-1", "t-2")]
    assert states == [PartitionState.NEW, PartitionState.ONLINE, PartitionState.OFFLINE]


def test_trigger_online_elects_new_and_offline_except_deleting() -> None:
    """state-machines 2.4: trigger online."""
    cluster = cluster_of({"t": [FRESH, BEREFT, healthy(2, 3)], "gone": [FRESH, BEREFT]}, (2, 3))
    cluster.topics.deleting[1] = 1
    driver = Driver(cluster)
    driver.adopt()
    driver.forget()
    result = driver.run(partition_state_machine.trigger_online(driver.context))
    assert (result.initialised.tolist(), result.elected.tolist()) == ([0], [1])
    assert sorted(name for names in driver.written() for name in names) == ["t-0", "t-1"]


def test_trigger_online_elects_cleanly() -> None:
    """state-machines 2.4: trigger online elects cleanly."""
    driver = make_driver(PartitionSpec((1, 2), leader=1, isr=(1,)))
    result = driver.run(partition_state_machine.trigger_online(driver.context))
    assert result.failed.tolist() == [0]


def test_requests_of_failed_transition_are_dropped() -> None:
    """state-machines 2.4: no poisoned batch."""
    driver = make_driver(FRESH, BEREFT)
    driver.fail(Send, StoreError("no transport"))
    with pytest.raises(StoreError):
        bring_online(driver, "t-0")
    driver.forget()
    bring_online(driver, "t-1")
    assert driver.recipients(Api.LEADER_AND_ISR, "t-0") == driver.recipients(Api.UPDATE_METADATA, "t-0") == []
    assert driver.recipients(Api.LEADER_AND_ISR, "t-1") == [2, 3]


def test_offline_transition_keeps_stored_state() -> None:
    """state-machines 2: Offline writes and sends nothing."""
    driver = make_driver(healthy(2, 3))
    driver.run(partition_state_machine.transition(driver.context, driver.rows("t-0"), PartitionState.OFFLINE))
    assert driver.effects == []
    assert state_of(driver.stored("t-0")) == (2, (2, 3), 0)


def test_stored_state_with_leader_minus_1_exists() -> None:
    """state-machines 1: NoLeader is a stored leader, NO_STATE is none."""
    cluster = cluster_of({"t": [PartitionSpec((1,), None, (1,)), PartitionSpec((1,))]}, (1,))
    assert (cluster["t", 0].leader, cluster["t", 1].leader) == (NO_LEADER, None)
    assert np.array_equal(cluster.partitions.partition_epoch, [0, NO_STATE])
