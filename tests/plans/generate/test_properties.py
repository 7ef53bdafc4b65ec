"""Every plan is valid, breaks no rule that held before, and is deterministic; a second plan is empty."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st

from kframe.model.arrays import Ragged
from kframe.model.lists import members, repeated, same_lists
from kframe.plans.check.report import PlanReport
from kframe.plans.check.resolve import resolve_plan
from kframe.plans.generate import plan
from kframe.plans.generate.bounds import lower_bound
from kframe.plans.generate.exact import solve
from kframe.plans.generate.limits import distinct_racks
from kframe.plans.generate.racks import required_racks
from kframe.plans.generate.report import report_document
from kframe.plans.generate.unmet import Unmet
from kframe.snapshot import Snapshot
from tests.plans.generate.clusters import (
    FEWER_EXAMPLES,
    assert_within_caps,
    lists_of,
    plan_again,
    planned,
    snapshot_of,
    snapshots,
)


@st.composite
def goals(draw: st.DrawFn) -> dict[str, Any]:
    """A goal, or two of them, and constraints."""
    chosen: dict[str, Any] = draw(
        st.sampled_from(
            [
                {"rebalance": True},
                {"remove_brokers": (1,)},
                {"remove_brokers": (2,), "rebalance": True},
                {"add_brokers": (8, 9)},
                {"add_brokers": (8,), "rebalance": True},
                {"fix_racks": True},
                {"replace": {1: 8}},
                {"fix_racks": True, "rebalance": True},
                {"replication_factors": {"b": 3}},
                {"replication_factors": {"*": 1}},
                {"leaders_only": True},
                {"remove_brokers": (1,), "fix_racks": True},
                {"replace": {1: 2}},
                {"remove_brokers": (1,), "replication_factors": {"*": 1}},
                {"rebalance": True, "replication_factors": {"*": 1}},
            ]
        )
    )
    if draw(st.integers(0, 3)) == 0:
        chosen = {**chosen, "topics": ("b",)}
    if draw(st.integers(0, 3)) == 0:
        chosen = {**chosen, "exclude_brokers": (3,)}
    if draw(st.integers(0, 3)) == 0:
        chosen = {**chosen, "broker_caps": {None: draw(st.integers(3, 20))}}
    return {**chosen, "racks": {8: "r0", 9: "r1"}, "seed": draw(st.integers(0, 3))}


@st.composite
def requests(draw: st.DrawFn) -> tuple[Snapshot, dict[str, Any]]:
    """A cluster, goals, and sometimes sizes of partitions."""
    snapshot, request = draw(snapshots()), draw(goals())
    if draw(st.booleans()) and not request.get("leaders_only"):
        sizes = draw(st.lists(st.integers(1, 50), min_size=len(snapshot), max_size=len(snapshot)))
        request |= {"weights": np.array(sizes, np.int64), "tolerance": 30.0}
    return snapshot, request


@given(requests())
def test_plan_is_valid_and_worsens_no_hard_rule(case: tuple[Snapshot, dict[str, Any]]) -> None:
    snapshot, request = case
    proposal = planned(snapshot, request)
    problem, after, before = proposal.problem, proposal.after, proposal.problem.original
    brokers = problem.brokers
    assert not repeated(after).any()
    assert (after.counts > 0).all()
    received = after.keep(~members(after, before))
    assert (brokers.share[received.values] > 0).all(), "offline, excluded and leaving brokers receive nothing"
    assert_within_caps(proposal)
    assert same_lists(before, after)[~problem.scope].all()
    if not proposal.unassignable:
        assert (after.counts == problem.replication_factor).all()
        assert problem.request.leaders_only or not brokers.leaving[after.take(problem.order).values].any()
        scope = np.sort(problem.order)
        if not problem.request.leaders_only:
            spanned, required = distinct_racks(after.take(scope), brokers.rack), required_racks(problem, scope)
            if problem.request.replace and not problem.request.fix_racks:
                # A replacement receives the replicas of a broker even if the partition could span a further rack.
                required = np.minimum(required, distinct_racks(before.take(scope), brokers.rack))
            assert problem.request.broker_caps or (spanned >= required).all()
    if len(proposal.rows) and not problem.request.add_brokers and set(problem.request.replace.values()) <= {2}:
        assert PlanReport.of(proposal.plan, resolve_plan(proposal.plan, snapshot)).valid


@given(snapshots(), goals())
def test_second_plan_is_empty(snapshot: Snapshot, request: dict[str, Any]) -> None:
    proposal = planned(snapshot, request)
    second = plan_again(proposal, request)
    assert second is None or len(second.rows) == 0


@st.composite
def reassigned(draw: st.DrawFn) -> Snapshot:
    """A cluster in which some partitions are being reassigned."""
    snapshot = draw(snapshots())
    removing = [
        draw(st.lists(st.sampled_from(replicas), max_size=len(replicas) - 1, unique=True))
        for replicas in (snapshot.partitions.replicas[row].tolist() for row in range(len(snapshot)))
    ]
    lists = Ragged.of(removing)
    return replace(snapshot, partitions=replace(snapshot.partitions, removing_replicas=lists, adding_replicas=None))


@given(reassigned(), goals(), st.integers(1, 8))
def test_exactly_the_partitions_that_are_not_as_requested_are_reported(
    snapshot: Snapshot, request: dict[str, Any], factor: int
) -> None:
    if "replication_factors" in request:
        request = {**request, "replication_factors": dict.fromkeys(request["replication_factors"], factor)}
    proposal = planned(snapshot, request)
    report, removing = report_document(proposal), snapshot.partitions.removing_replicas
    left = {*request.get("remove_brokers", ()), *request.get("replace", {})}
    expected = set()
    for row, (name, replicas) in enumerate(
        zip(map(snapshot.topics.name_of_row, range(len(snapshot))), lists_of(proposal), strict=True)
    ):
        topic = name.rpartition("-")[0]
        settled = set(replicas) - set(removing[row].tolist()) if removing is not None else set(replicas)
        factors = {n for pattern, n in request.get("replication_factors", {}).items() if pattern in ("*", topic)}
        if topic in request.get("topics", ("a", "b")) and (settled & left or factors - {len(settled)}):
            expected.add(name)
    reported = {f"{row.topic}-{row.partition}" for row in report.unmet if row.lacks != [Unmet.RACKS]}
    assert reported == expected
    assert all(row.reason for row in report.unmet)
    if report.unmet:
        assert "the request is not met" in report.summary
        assert report.moves.bound <= report.moves.cost


@given(snapshots(), goals())
def test_plan_is_deterministic(snapshot: Snapshot, request: dict[str, Any]) -> None:
    assert same_lists(planned(snapshot, request).after, plan(snapshot, **request).after).all()


@given(snapshots(), goals())
def test_leaders_change_only_where_requested(snapshot: Snapshot, request: dict[str, Any]) -> None:
    proposal = planned(snapshot, request)
    if not (proposal.problem.request.balances or proposal.problem.request.leaders_only):
        moved = proposal.copied > 0
        shrunk = proposal.after.counts < proposal.problem.original.counts
        assert set(proposal.rows.tolist()) <= set(np.flatnonzero(moved | shrunk).tolist())


@pytest.mark.parametrize("extra_goal", [{"remove_brokers": (1, 2)}, {"fix_racks": True}, {"rebalance": True}])
@given(snapshot=snapshots())
def test_additional_goal_never_lowers_bound(snapshot: Snapshot, extra_goal: dict[str, Any]) -> None:
    request: dict[str, Any] = {"remove_brokers": (1,)}
    further = planned(snapshot, request | extra_goal)
    assert planned(snapshot, request).bound <= further.bound or further.unassignable


@FEWER_EXAMPLES
@given(snapshots(), st.integers(0, 40))
def test_wider_tolerance_never_raises_bound(snapshot: Snapshot, tolerance: int) -> None:
    weights = 100 + 37 * np.arange(len(snapshot), dtype=np.int64) % 1000
    narrow, wide = (
        lower_bound(proposal.problem, proposal.limits)
        for percent in (tolerance, tolerance + 20)
        for proposal in [planned(snapshot, {"rebalance": True, "weights": weights, "tolerance": percent})]
    )
    assert wide <= narrow


@pytest.mark.parametrize("removed", [(1,), (1, 2)])
@given(snapshot=snapshots())
def test_broker_removal_moves_exactly_its_replicas(snapshot: Snapshot, removed: tuple[int, ...]) -> None:
    proposal = planned(snapshot, {"remove_brokers": removed})
    if not proposal.unassignable:
        expected = int(np.isin(snapshot.partitions.replicas.values, removed).sum())
        assert (proposal.moves, proposal.bound) == (expected, expected)


@given(snapshots(partitions_max=8), goals())
def test_optimum_is_between_bound_and_plan_cost(snapshot: Snapshot, request: dict[str, Any]) -> None:
    pytest.importorskip("highspy")
    proposal = planned(snapshot, request)
    if proposal.unassignable or proposal.problem.request.leaders_only:
        return
    exact = solve(proposal.problem, proposal.limits)
    if proposal.reached:
        assert exact.feasible
        assert exact.optimal
        assert proposal.bound <= exact.bound <= proposal.cost
    elif exact.feasible:
        assert proposal.bound <= exact.bound


@st.composite
def weighted(draw: st.DrawFn, partitions_max: int = 25) -> tuple[Snapshot, dict[str, Any]]:
    """A cluster whose partitions have sizes between 1 and 1000, and a goal that balances bytes."""
    snapshot = draw(snapshots(partitions_max))
    sizes = draw(st.lists(st.integers(1, 1000), min_size=len(snapshot), max_size=len(snapshot)))
    request: dict[str, Any] = draw(
        st.sampled_from([{}, {"remove_brokers": (1,)}, {"add_brokers": (8,)}, {"fix_racks": True}])
    )
    tolerance = draw(st.sampled_from([1.0, 10.0, 50.0]))
    return snapshot, {
        "rebalance": True,
        "weights": np.array(sizes, np.int64),
        "racks": {8: "r0"},
        "tolerance": tolerance,
        **request,
    }


@FEWER_EXAMPLES
@given(weighted())
def test_plan_by_sizes_is_valid_with_correct_loads(case: tuple[Snapshot, dict[str, Any]]) -> None:
    snapshot, request = case
    proposal = planned(snapshot, request)
    problem, after = proposal.problem, proposal.after
    assert not repeated(after).any()
    received = after.keep(~members(after, problem.original))
    assert (problem.brokers.share[received.values] > 0).all()
    if not proposal.unassignable:
        scope = np.sort(problem.order)
        spanned = distinct_racks(after.take(scope), problem.brokers.rack)
        assert (spanned >= required_racks(problem, scope)).all()
    if proposal.limits is not None and not proposal.unassignable:
        assert proposal.reached == proposal.limits.reached(proposal.loads()["bytes_after"])


@FEWER_EXAMPLES
@given(weighted())
def test_second_plan_by_sizes_is_empty(case: tuple[Snapshot, dict[str, Any]]) -> None:
    snapshot, request = case
    second = plan_again(planned(snapshot, request), request)
    assert second is None or len(second.rows) == 0


@given(weighted(partitions_max=8))
def test_optimum_by_sizes_is_between_bound_and_plan_cost(case: tuple[Snapshot, dict[str, Any]]) -> None:
    pytest.importorskip("highspy")
    proposal = planned(*case)
    if proposal.unassignable or not proposal.reached:
        return
    exact = solve(proposal.problem, proposal.limits)
    assert exact.feasible
    assert proposal.bound <= exact.bound <= proposal.cost


@example(
    snapshot_of({"b": [[1, 2], [1, 2], [4], [4]]}, {1: "r0", 2: "r0", 3: "r0", 4: "r1"}),
    {"remove_brokers": (1,), "topics": ("b",), "broker_caps": {None: 3}, "racks": {8: "r0", 9: "r1"}, "seed": 0},
)
@given(snapshots(), goals())
def test_plan_without_weights_costs_its_bound(snapshot: Snapshot, request: dict[str, Any]) -> None:
    proposal = planned(snapshot, {"rebalance": True} | request)
    if proposal.reached and not proposal.unassignable:
        assert proposal.gap >= 0
        assert proposal.gap == 0 or not proposal.is_valid


@pytest.mark.parametrize("goal", [{"remove_brokers": (1,)}, {"replication_factors": {"*": 3}}, {"replace": {1: 2}}])
@given(snapshot=snapshots(), excluded=st.sets(st.integers(2, 7), max_size=2), extra=st.sets(st.integers(2, 7)))
def test_more_excluded_brokers_never_lower_bound(
    snapshot: Snapshot, excluded: set[int], extra: set[int], goal: dict[str, Any]
) -> None:
    known = {broker.broker_id for broker in snapshot.brokers}
    fewer_excluded, more_excluded = (tuple(sorted(ids & known)) for ids in (excluded, excluded | extra))
    bounds = [planned(snapshot, goal | {"exclude_brokers": ids}) for ids in (fewer_excluded, more_excluded)]
    assert bounds[0].bound <= bounds[1].bound or bounds[1].unassignable
    assert bounds[0].unassignable <= bounds[1].unassignable


@pytest.mark.parametrize(
    "extra_constraints", [{"broker_caps": {None: 12}}, {"exclude_topics": ("a",)}, {"remove_brokers": (1,)}]
)
@given(snapshot=snapshots(partitions_max=8))
def test_more_constraints_never_lower_optimum(snapshot: Snapshot, extra_constraints: dict[str, Any]) -> None:
    pytest.importorskip("highspy")
    proposals = [planned(snapshot, {"fix_racks": True} | constraints) for constraints in ({}, extra_constraints)]
    # Where the brokers of a rack are removed, partitions must span fewer racks: that is no further constraint.
    scope = np.sort(proposals[1].problem.order)
    before, after = (required_racks(proposal.problem, scope) for proposal in proposals)
    assume(np.array_equal(before, after))
    weaker, stronger = (solve(proposal.problem, None) for proposal in proposals)
    assume(stronger.feasible and stronger.optimal and weaker.optimal)
    dropped = np.setdiff1d(proposals[0].problem.order, proposals[1].problem.order)
    assert weaker.feasible
    assert weaker.bound <= stronger.bound + 3 * len(dropped)
