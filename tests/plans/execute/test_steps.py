"""The next step of an execution, by the entries of its journal and what a cluster shows."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Final

import pytest

from kframe.plans.execute.entries import (
    ActionDone,
    ActionIntended,
    AssignmentRequest,
    ChangeAssignments,
    ChangeConfigs,
    ConfigEntry,
    ConfigKey,
    ElectPreferred,
    Entry,
    ExecutedPartition,
    ExecutionLimits,
    ExecutionStarted,
    Goal,
    GoalChanged,
    OriginalsSaved,
    Refusal,
    ResourceKind,
    RunEnded,
    RunResult,
    UnhealthyPartitions,
)
from kframe.plans.execute.health import PROBLEM_ROUNDS
from kframe.plans.execute.located import LAG_ROUNDS
from kframe.plans.execute.observation import Observation
from kframe.plans.execute.state import ExecutionState
from kframe.plans.execute.step_types import SaveOriginals, Step, Wait
from kframe.plans.execute.steps import CRASH_ROUNDS, Planner
from kframe.plans.execute.throttles import CONFIG_ROUNDS
from kframe.snapshot.metadata import DescribedPartition, PartitionReassignment

#: The plan moves t-0 from brokers 1 and 2 to 3 and 2.
ORIGIN, TARGET = (1, 2), (3, 2)
#: The reassignments that a cluster may show: to the target, and back.
TO_TARGET: Final = PartitionReassignment((3, 2, 1), (3,), (1,))
TO_ORIGIN: Final = PartitionReassignment((1, 2, 3), (), (3,))
RATE: Final = ConfigKey(ResourceKind.BROKER, "3", "follower.replication.throttled.rate")


def assign(replicas: tuple[int, ...] | None) -> ChangeAssignments:
    return ChangeAssignments((AssignmentRequest("t", 0, replicas),))


REQUEST: Final = assign(TARGET)
STARTED: Final = (ActionIntended(REQUEST), ActionDone(REQUEST, ()))
PAUSE, ABORT = GoalChanged(Goal.PAUSE, "requested"), GoalChanged(Goal.ABORT, "requested")
ROLLBACK: Final = (*STARTED, GoalChanged(Goal.ROLLBACK, "requested"))
REFUSED: Final = (ActionIntended(REQUEST), ActionDone(REQUEST, (Refusal("t", 0, "INVALID_REPLICA_ASSIGNMENT"),)))
RETRIED: Final = (ActionIntended(REQUEST), ActionDone(REQUEST, (Refusal("t", 0, "NOT_CONTROLLER"),)))
ORIGINAL: Final = (OriginalsSaved((ConfigEntry(RATE, "77"),)),)
NOT_MOVED: Final = RunEnded(RunResult.INCOMPLETE, "not moved: 1 partition")


@dataclass(frozen=True)
class Observed:
    """The partition and the live brokers in all observations; without ``replicas`` the partition does not exist."""

    replicas: Sequence[int] | None = ORIGIN
    moving: PartitionReassignment | None = None
    live: Collection[int] = (1, 2, 3)
    leader: int = 1

    def observation(self) -> Observation:
        if self.replicas is None:
            return Observation(frozenset(self.live), {}, {})
        isr = [replica for replica in self.replicas if replica in self.live]
        described = DescribedPartition("t", 0, self.leader, 1, tuple(self.replicas), tuple(isr))
        moving = {} if self.moving is None else {("t", 0): self.moving}
        return Observation(frozenset(self.live), {("t", 0): described}, moving)


AT_START, AT_END, DELETED = Observed(), Observed(TARGET, leader=3), Observed(None)
TO_END, TO_START = Observed((3, 2, 1), TO_TARGET), Observed((1, 2, 3), TO_ORIGIN)
REORDERED, ELSEWHERE = Observed((2, 1)), Observed((2, 9))


def next_step(
    entries: Sequence[Entry], observed: Observed, observations: int = 1, throttle: int | None = None
) -> tuple[Planner, Step]:
    """The step after some equal observations."""
    partition = ExecutedPartition("t", 0, ORIGIN, TARGET, 1, None)
    start = ExecutionStarted(
        1,
        "plan",
        "digest",
        "id",
        "kafka://a:1",
        ExecutionLimits(throttle, 10, 0),
        ((partition,),),
        UnhealthyPartitions((), ()),
    )
    planner = Planner(ExecutionState([start, *entries]))
    for _ in range(observations):
        planner.observe(observed.observation())
    return planner, planner.next_step()


@pytest.mark.parametrize(
    ("entries", "observed", "observations", "step"),
    [
        pytest.param((), AT_START, 1, assign(TARGET), id="start"),
        pytest.param((), TO_END, 1, Wait(), id="in flight"),
        pytest.param((), TO_START, 1, assign(None), id="redirect a reassignment to the start"),
        pytest.param((), REORDERED, 1, assign(TARGET), id="the replicas of the start in another order"),
        pytest.param((), AT_END, 1, RunEnded(RunResult.COMPLETED, ""), id="arrived"),
        pytest.param((), DELETED, 1, RunEnded(RunResult.COMPLETED, ""), id="deleted"),
        pytest.param((), ELSEWHERE, LAG_ROUNDS, Wait(), id="metadata may lag behind"),
        pytest.param((), ELSEWHERE, LAG_ROUNDS + 1, NOT_MOVED, id="reassigned by another client"),
        pytest.param(REFUSED, AT_START, 1, NOT_MOVED, id="refused"),
        pytest.param(RETRIED, AT_START, 1, assign(TARGET), id="retriable error"),
        pytest.param((), Observed(live=(1, 2)), 1, Wait(), id="the target broker is down"),
        pytest.param(
            (),
            Observed(live=(1, 2)),
            PROBLEM_ROUNDS,
            GoalChanged(Goal.PAUSE, "brokers that the plan needs are down: 3"),
            id="the target broker stays down",
        ),
        pytest.param((), Observed(leader=-1), 1, Wait(), id="a new offline partition postpones"),
        pytest.param(
            (),
            Observed(leader=-1),
            PROBLEM_ROUNDS,
            GoalChanged(
                Goal.PAUSE,
                "health has worsened: 1 partition newly offline and 0 newly under-replicated since the start, "
                "such as t-0",
            ),
            id="a new offline partition pauses",
        ),
        pytest.param((ActionIntended(REQUEST),), AT_START, CRASH_ROUNDS - 1, Wait(), id="a request may be on its way"),
        pytest.param((ActionIntended(REQUEST),), AT_START, CRASH_ROUNDS, assign(TARGET), id="no request was sent"),
        pytest.param((PAUSE,), AT_START, 1, RunEnded(RunResult.PAUSED, "requested"), id="pause: nothing in flight"),
        pytest.param((PAUSE,), TO_END, 1, Wait(), id="pause: wait for the reassignment"),
        pytest.param((PAUSE,), Observed((3, 2, 1), TO_TARGET, (1, 2)), 1, assign(None), id="pause: cancel blocked"),
        pytest.param((*STARTED, PAUSE), REORDERED, 1, assign(ORIGIN), id="pause: restore the order"),
        pytest.param((PAUSE,), REORDERED, 1, RunEnded(RunResult.PAUSED, "requested"), id="pause: another order"),
        pytest.param((ABORT,), TO_END, 1, assign(None), id="abort: cancel"),
        pytest.param((ABORT,), TO_START, 1, Wait(), id="abort: wait for the cancellation"),
        pytest.param((ABORT,), AT_END, 1, RunEnded(RunResult.ABORTED, "requested"), id="abort: nothing in flight"),
        pytest.param(
            (GoalChanged(Goal.ROLLBACK, ""),),
            AT_END,
            1,
            RunEnded(RunResult.ROLLED_BACK, ""),
            id="rollback: nothing started",
        ),
        pytest.param(ROLLBACK, AT_END, 1, assign(ORIGIN), id="rollback: move back"),
        pytest.param(ROLLBACK, TO_END, 1, assign(None), id="rollback: cancel"),
        pytest.param(ROLLBACK, TO_START, 1, Wait(), id="rollback: in flight"),
        pytest.param(ROLLBACK, Observed(leader=2), 1, ElectPreferred((("t", 0),)), id="rollback: elect"),
        pytest.param(ROLLBACK, AT_START, 1, RunEnded(RunResult.ROLLED_BACK, ""), id="rollback: done"),
        pytest.param(
            ROLLBACK,
            Observed(TARGET, leader=3, live=(2, 3)),
            PROBLEM_ROUNDS,
            RunEnded(RunResult.INCOMPLETE, "1 partition waiting for failed brokers: 1"),
            id="rollback: broker down",
        ),
        pytest.param(ORIGINAL, AT_END, 1, ChangeConfigs((ConfigEntry(RATE, "77"),), restores=True), id="restore"),
        pytest.param(ORIGINAL, Observed(TARGET, leader=2, live=(1, 2)), 1, Wait(), id="restore after restart"),
    ],
)
def test_next_step_by_journal_and_observation(
    entries: Sequence[Entry], observed: Observed, observations: int, step: Step
) -> None:
    assert next_step(entries, observed, observations)[1] == step


def test_no_step_before_first_observation() -> None:
    assert next_step((), AT_START, 0)[1] == Wait()


def test_undescribed_request_is_resent_after_lag_rounds() -> None:
    planner, step = next_step((), AT_START)
    assert step == assign(TARGET)
    planner.tracker.requested(REQUEST.assignments)
    steps = []
    for _ in range(LAG_ROUNDS):
        planner.observe(AT_START.observation())
        steps.append(planner.next_step())
    assert steps == [Wait()] * (LAG_ROUNDS - 1) + [assign(TARGET)]


def test_rollback_waiting_for_dead_broker_sets_no_throttle() -> None:
    observed = Observed(TARGET, leader=3, live=(2, 3))
    assert isinstance(next_step(ROLLBACK, observed, PROBLEM_ROUNDS - 1, throttle=1000)[1], SaveOriginals)
    assert isinstance(next_step(ROLLBACK, observed, PROBLEM_ROUNDS, throttle=1000)[1], RunEnded)


def test_throttle_saves_originals_and_pauses_after_refusals() -> None:
    planner, step = next_step((), AT_START, throttle=1000)
    assert isinstance(step, SaveOriginals)
    assert RATE in step.keys
    planner.state.apply(OriginalsSaved(tuple(ConfigEntry(key, None) for key in step.keys)))
    step = planner.next_step()
    assert isinstance(step, ChangeConfigs)
    assert ConfigEntry(RATE, "1000") in step.changes
    planner.throttles.configured(step.changes, restores=False, failed=False)
    assert planner.next_step() == assign(TARGET)
    for _ in range(CONFIG_ROUNDS):
        planner.throttles.configured((), restores=False, failed=True)
    assert planner.next_step() == GoalChanged(Goal.PAUSE, "the throttle cannot be set")


def test_run_ends_with_throttle_of_dead_broker_unrestored() -> None:
    observed = Observed(TARGET, leader=2, live=(1, 2))
    planner, step = next_step((*ORIGINAL, ABORT), observed)
    for _ in range(CONFIG_ROUNDS):
        assert step == Wait()
        planner.observe(observed.observation())
        step = planner.next_step()
    assert step == RunEnded(RunResult.ABORTED, "requested; throttles of broker 3 are not restored yet")
