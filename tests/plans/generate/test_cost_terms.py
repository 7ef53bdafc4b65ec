"""Cost terms and goals of plugins: no forbidden placement, a valid bound, and the limits of the goal."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from kframe.errors import InputError, PluginError
from kframe.model.arrays import Int64
from kframe.model.lists import members, same_lists
from kframe.model.placements import FORBIDDEN, GoalTotals, PlacementBatch
from kframe.plans.check.resolve import resolve_plan
from kframe.plans.generate import PlanProposal, plan
from kframe.plans.generate.page import render_page
from kframe.plans.generate.report import report_document
from kframe.plans.generate.review import PlanReview
from kframe.registry.placements import CostTerm, PlanGoal
from kframe.snapshot import Snapshot
from tests.plans.generate.clusters import FEWER_EXAMPLES, goals, planned, requests, sampled_term, snapshot_of, snapshots


def added_cells(proposal: PlanProposal) -> tuple[Any, Any]:
    added = proposal.after.keep(~members(proposal.after, proposal.problem.original))
    return added.owners, added.values


@given(requests(has_terms=True))
def test_plan_avoids_forbidden_placements_and_sums_costs(case: tuple[Snapshot, dict[str, Any]]) -> None:
    proposal = planned(*case)
    costs = proposal.problem.costs
    assert costs is not None
    rows, brokers = added_cells(proposal)
    cells = [int(costs.table[costs.position[row], broker]) for row, broker in zip(rows, brokers, strict=True)]
    assert FORBIDDEN not in cells
    assert proposal.term_cost == sum(cells)
    assert proposal.cost == sum(cells) + int(proposal.problem.weight[rows].sum())
    if proposal.reached and not proposal.unassignable:
        assert proposal.bound <= proposal.cost


@given(snapshots(), goals())
def test_zero_cost_term_changes_no_bound(snapshot: Snapshot, request: dict[str, Any]) -> None:
    """The moves are chosen otherwise, but the bound is equal, and required moves are as few."""
    free = CostTerm("free", lambda batch: np.zeros((len(batch), len(batch.broker_ids)), np.int64))
    without, with_term = planned(snapshot, request), planned(snapshot, request | {"cost_terms": (free,)})
    assert with_term.term_cost == 0
    if not (without.problem.request.balances or without.unassignable or without.problem.request.broker_caps):
        assert (with_term.bound, with_term.cost) == (without.bound, without.cost)


def test_forbidden_direct_move_takes_path_through_third_broker() -> None:
    snapshot = snapshot_of({"t": [[1], [1], [1], [2], [2], [3]]}, {1: None, 2: None, 3: None})

    def forbids_three(batch: PlacementBatch) -> Int64:
        first = np.repeat((batch.partition < 3)[:, None], len(batch.broker_ids), axis=1)
        return np.where(first & (batch.broker_ids == 3), FORBIDDEN, 0)

    proposal = plan(snapshot, rebalance=True, cost_terms=(CostTerm("not three", forbids_three),))
    assert proposal.loads()["replicas_after"].tolist() == [2, 2, 2]
    assert (proposal.reached, proposal.cost, proposal.bound) == (True, 2, 2)


def test_cheaper_broker_is_chosen() -> None:
    snapshot = snapshot_of({"a": [[1, 2]] * 8}, {1: None, 2: None, 3: None, 4: None})

    def prefers_four(batch: PlacementBatch) -> Int64:
        return np.where(batch.broker_ids == 4, 0, 5)[None, :].repeat(len(batch), axis=0)

    proposal = plan(snapshot, remove_brokers=(1,), cost_terms=(CostTerm("four", prefers_four),))
    assert proposal.loads()["received"].tolist() == [0, 0, 0, 8]
    assert (proposal.cost, proposal.bound, proposal.term_cost) == (8, 8, 0)


def test_partition_without_allowed_broker_stays() -> None:
    snapshot = snapshot_of({"a": [[1, 2], [2, 3]]}, {1: None, 2: None, 3: None})
    never = CostTerm("never", lambda batch: np.full((len(batch), len(batch.broker_ids)), FORBIDDEN))
    proposal = plan(snapshot, remove_brokers=(1,), cost_terms=(never,))
    assert (proposal.unassignable, proposal.moves) == (1, 0)


def weights_of(values: Int64) -> PlanGoal:
    """A goal whose weights are the values by row; every partition is in scope."""
    return PlanGoal("values", "points", lambda batch: values.copy())


@FEWER_EXAMPLES
@given(snapshots(), st.data())
def test_goal_without_limits_equals_rebalance_by_sizes(snapshot: Snapshot, data: st.DataObject) -> None:
    values = np.array(data.draw(st.lists(st.integers(0, 99), min_size=len(snapshot), max_size=len(snapshot))), np.int64)
    assume(values.any())
    by_size = planned(snapshot, {"rebalance": True, "weights": values, "tolerance": 20.0})
    by_goal = plan(snapshot, goal=weights_of(values), tolerance=20.0)
    assert same_lists(by_size.after, by_goal.after).all()
    assert (by_size.bound, by_size.cost, by_size.reached) == (by_goal.bound, by_goal.cost, by_goal.reached)


@given(snapshots(), st.integers(5, 60))
def test_plan_uses_limits_of_goal(snapshot: Snapshot, load_max: int) -> None:
    def limits(totals: GoalTotals) -> tuple[Int64, Int64]:
        return np.zeros(len(totals.broker_ids), np.int64), np.full(len(totals.broker_ids), load_max, np.int64)

    def weights(batch: PlacementBatch) -> Int64:
        return batch.partition.astype(np.int64) + 1

    proposal = planned(snapshot, {"goal": PlanGoal("ordinals", "points", weights, limits)})
    part = proposal.problem.brokers.share > 0
    assert proposal.reached == bool((proposal.loads()["goal_after"][part] <= load_max).all())
    if proposal.reached:
        assert proposal.bound <= proposal.cost


def test_report_names_goal_and_cost_terms() -> None:
    snapshot = snapshot_of({"a": [[1, 2]] * 12}, {1: None, 2: None, 3: None, 4: None})
    goal = PlanGoal("traffic", "messages", lambda batch: batch.partition.astype(np.int64) + 1)
    proposal = plan(snapshot, goal=goal, cost_terms=(sampled_term(3, 0.0),), tolerance=20.0)
    document = report_document(proposal)
    assert (document.goal, document.cost_terms) == ("traffic", ["drawn"])
    assert document.moves.unit == "messages"
    assert f"{proposal.cost:,} with drawn" in document.summary
    assert document.proof.endswith("on the brokers that may receive it.")
    page = render_page(PlanReview.of_proposal(proposal, resolve_plan(proposal.plan, snapshot)), b"{}")
    assert "<th>goal</th><td>traffic</td>" in page
    assert "<th>cost terms</th><td>drawn</td>" in page


@pytest.mark.parametrize("options", [{"rebalance": True}, {"add_brokers": (9,)}, {"weights": np.ones(2, np.int64)}])
def test_goal_excludes_other_balance_options(options: dict[str, Any]) -> None:
    with pytest.raises(InputError, match="goal: found rebalance, added brokers or weights"):
        plan(snapshot_of({"a": [[1], [2]]}, {1: None, 2: None}), goal=weights_of(np.ones(2, np.int64)), **options)


@pytest.mark.parametrize(
    ("limits", "message"),
    [
        (lambda totals: None, "found NoneType, expected a lower and an upper array"),
        (lambda totals: (np.ones(2, np.int64), np.zeros(2, np.int64)), "a lower limit above the upper one of broker 1"),
        (lambda totals: (np.zeros(2), np.zeros(2)), r"found an array float64 \(2,\), expected int64 \(2,\)"),
        (lambda totals: (np.full(2, -1), np.zeros(2, np.int64)), "found -1, expected 0 to 2"),
        (lambda totals: 1 // 0, "raised ZeroDivisionError"),
    ],
    ids=["no array", "crossed", "floats", "negative", "raises"],
)
def test_limits_of_goal_are_validated(limits: Any, message: str) -> None:
    goal = PlanGoal("traffic", "messages", lambda batch: np.ones(len(batch), np.int64), limits)
    with pytest.raises(PluginError, match=f"goal 'traffic': limits.*{message}"):
        plan(snapshot_of({"a": [[1], [2]]}, {1: None, 2: None}), goal=goal)
