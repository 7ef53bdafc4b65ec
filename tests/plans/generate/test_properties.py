"""Every plan is valid, breaks no rule that held before, and is deterministic; a second plan is empty."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from kframe.model.arrays import Ragged
from kframe.model.lists import members, repeated, same_lists
from kframe.plans.check.report import PlanReport
from kframe.plans.check.resolve import resolve_plan
from kframe.plans.generate import plan
from kframe.plans.generate.document import Unmet
from kframe.plans.generate.draft import weighted_loads
from kframe.plans.generate.exact import solve
from kframe.plans.generate.racks import required_spread
from kframe.plans.generate.report import report_document
from kframe.snapshot import Snapshot
from tests.plans.generate.clusters import (
    assert_within_caps,
    goals,
    lists_of,
    plan_again,
    planned,
    requests,
    snapshot_of,
    snapshots,
)


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
    if proposal.limits is not None and request.get("weights") is not None and not proposal.unassignable:
        scope_loads = weighted_loads(after.take(problem.order), problem.weight[problem.order], len(brokers))
        assert proposal.reached == proposal.limits.reached(
            np.where(brokers.share > 0, scope_loads, proposal.limits.lower)
        )
    if not proposal.unassignable:
        assert (after.counts == problem.replication_factor).all()
        assert problem.request.orders_only or not brokers.leaving[after.take(problem.order).values].any()
        scope = np.sort(problem.order)
        if not problem.request.orders_only:
            spread, required = problem.spread(scope, after.take(scope)), required_spread(problem, scope)
            if problem.request.replace and not problem.request.fix_racks:
                # A replacement receives the replicas of a broker even if the partition could be spread more evenly.
                required = np.minimum(required, problem.spread(scope, before.take(scope)))
            assert problem.request.broker_caps or (spread >= required).all()
    if len(proposal.rows) and not problem.request.add_brokers and set(problem.request.replace.values()) <= {2}:
        assert PlanReport.of(proposal.plan, resolve_plan(proposal.plan, snapshot)).valid


@given(requests())
def test_plan_is_deterministic_and_second_plan_is_empty(case: tuple[Snapshot, dict[str, Any]]) -> None:
    snapshot, request = case
    proposal = planned(snapshot, request)
    assert same_lists(proposal.after, plan(snapshot, **request).after).all()
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
    reported = {f"{row.topic}-{row.partition}" for row in report.unmet if {*row.lacks} - {Unmet.RACKS, Unmet.LEADER}}
    assert reported == expected
    assert all(row.reason for row in report.unmet)
    if report.unmet:
        assert "the request is not met" in report.summary
        assert report.moves.bound <= report.moves.cost


@given(snapshots(), goals())
def test_leaders_change_only_where_requested(snapshot: Snapshot, request: dict[str, Any]) -> None:
    proposal = planned(snapshot, request)
    if not (proposal.problem.request.balances or proposal.problem.request.orders_only):
        moved = proposal.copied > 0
        shrunk = proposal.after.counts < proposal.problem.original.counts
        assert set(proposal.rows.tolist()) <= set(np.flatnonzero(moved | shrunk).tolist())


@pytest.mark.parametrize("removed", [(1,), (1, 2)])
@given(snapshot=snapshots())
def test_broker_removal_moves_exactly_its_replicas(snapshot: Snapshot, removed: tuple[int, ...]) -> None:
    proposal = planned(snapshot, {"remove_brokers": removed})
    if not proposal.unassignable:
        expected = int(np.isin(snapshot.partitions.replicas.values, removed).sum())
        assert (proposal.moves, proposal.bound) == (expected, expected)


@given(requests(partitions_max=8))
def test_optimum_is_between_bound_and_plan_cost(case: tuple[Snapshot, dict[str, Any]]) -> None:
    pytest.importorskip("highspy")
    proposal = planned(*case)
    if proposal.unassignable or proposal.problem.request.orders_only:
        return
    exact = solve(proposal.problem, proposal.limits)
    if proposal.reached:
        assert exact.feasible
        assert proposal.bound <= exact.bound <= proposal.cost
    elif exact.feasible:
        assert proposal.bound <= exact.bound


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
