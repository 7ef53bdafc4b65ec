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
from kframe.model.ids import PartitionState
from kframe.ports.store_requests import ReadStates, WriteStates
from kframe.testing.clusters import PartitionSpec, cluster_of
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


def test_illegal_transition_does_not_affect_other_partitions(caplog: pytest.LogCaptureFixture) -> None:
    """state-machines 2.1: invalid ones are logged. They are left out."""
    driver = make_driver(BEREFT, BEREFT)
    driver.cluster.partitions.set_states(np.array([0]), PartitionState.NON_EXISTENT)
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


# -- 2.3 elections


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
