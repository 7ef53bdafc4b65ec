"""What each goal of an execution still moves, by the reassignments that the cluster shows."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing

import pytest

from kframe.model.plan import Plan
from kframe.model.tables import Targets
from kframe.plans.execute.entries import ActionIntended, AssignmentRequest, ChangeAssignments, ExecutionLimits, Goal
from kframe.plans.execute.entries import ExecutionStarted as Started
from kframe.plans.execute.prepare import PreparedPlan, check_execution
from kframe.plans.execute.remaining import remaining_effect, remaining_moves
from kframe.plans.execute.state import ExecutionState
from tests.plans.embedded_admin import EmbeddedAdmin

#: t-0 moves, t-1 moves, u-0 gets another replica.
PLAN = Plan.of([(("t", 0), (3, 4)), (("t", 1), (4, 2)), (("u", 0), (1, 2))])
LIMITS = ExecutionLimits(None, 10, 0)


@pytest.fixture
def admin() -> Iterator[EmbeddedAdmin]:
    with closing(EmbeddedAdmin()) as admin:
        yield admin


def started(admin: EmbeddedAdmin) -> ExecutionState:
    """t-0 has arrived, t-1 is in flight, and u-0 was not started."""
    checked = check_execution(PreparedPlan.single_stage(PLAN), admin, "kafka://here", LIMITS)
    assert isinstance(checked.start, Started)
    assert checked.problems == []
    requests = tuple(AssignmentRequest(*name, tuple(PLAN.targets.replicas[row].tolist())) for row, name in
                     enumerate(PLAN.targets.partitions()[:2]))  # fmt: skip
    admin.reassign(Targets.of([(request.name, request.replicas) for request in requests]))
    admin.catch_up(("t", 0))
    return ExecutionState([checked.start, ActionIntended(ChangeAssignments(requests))])


@pytest.mark.parametrize(
    "goal, moves",
    [
        (Goal.EXECUTE, [(("t", 1), (4, 2)), (("u", 0), (1, 2))]),
        (Goal.PAUSE, [(("t", 1), (4, 2))]),
        (Goal.ABORT, [(("t", 1), (2, 3))]),
        (Goal.ROLLBACK, [(("t", 0), (1, 2)), (("t", 1), (2, 3))]),
    ],
)
def test_moves_of_a_goal(
    admin: EmbeddedAdmin, goal: Goal, moves: list[tuple[tuple[str, int], tuple[int, ...]]]
) -> None:
    state = started(admin)
    # ``describe`` lets replicas catch up.
    assert remaining_moves(state, goal, admin._description()) == moves


def test_effect_is_that_of_the_moves(admin: EmbeddedAdmin) -> None:
    state = started(admin)
    effect = remaining_effect(state, Goal.ROLLBACK, admin)
    assert effect is not None
    assert (effect.reassignment.partitions, effect.reassignment.replicas_copied) == (2, 3)
    assert effect.impact.offline_peak == 0
    assert remaining_effect(state, Goal.PAUSE, admin) is None, "nothing is in flight any more"


def test_plan_that_the_cluster_refuses_has_problems_and_no_start(admin: EmbeddedAdmin) -> None:
    plan = PreparedPlan.single_stage(Plan.of([(("t", 0), (9, 1))]))
    checked = check_execution(plan, admin, "kafka://here", LIMITS)
    assert checked.start is None
    (problem,) = checked.problems
    assert problem.startswith("t-0: ")
