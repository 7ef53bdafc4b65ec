"""Plans are as good as an independent formulation of the request, with and without caps; ``exact`` means proven."""

from __future__ import annotations

from dataclasses import astuple
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from kframe.errors import SolverError
from kframe.plans.generate import PlanRequest, plan
from kframe.plans.generate.bounds import Shortage
from kframe.plans.generate.highs import IntegerProgram, minimize
from kframe.plans.generate.problem import problem_of
from kframe.plans.generate.propose import heuristic_plan
from kframe.plans.generate.report import notes
from kframe.plans.generate.sizes import read_weights
from kframe.snapshot import Snapshot, read_snapshot
from tests.plans.generate.clusters import (
    FEWER_EXAMPLES,
    applied,
    assert_within_caps,
    lists_of,
    planned,
    snapshot_of,
    snapshots,
)
from tests.plans.generate.optimum import optimum

highspy = pytest.importorskip("highspy")

DATA = Path(__file__).parent / "data"
GOALS: list[dict[str, Any]] = [
    {"remove_brokers": (1,)},
    {"remove_brokers": (1, 2)},
    {"remove_brokers": (2,), "fix_racks": True},
    {"fix_racks": True},
    {"replication_factors": {"b": 3}},
    {"replication_factors": {"b": 2}, "remove_brokers": (3,)},
]


@st.composite
def requests(draw: st.DrawFn, *, balances: bool) -> tuple[Snapshot, dict[str, Any]]:
    """A cluster of at most 14 partitions, and a request, mostly with caps that leave little room."""
    snapshot = draw(snapshots(partitions_max=14))
    request = dict(draw(st.sampled_from(GOALS)))
    brokers = [broker.broker_id for broker in snapshot.brokers]
    mean = -(-len(snapshot.partitions.replicas.values) // (len(brokers) - 1))
    caps = st.integers(max(mean - 1, 1), mean + 2)
    request["broker_caps"] = draw(
        st.one_of(
            st.just({}),
            st.builds(lambda cap: {None: cap}, caps),
            st.dictionaries(st.sampled_from(brokers), caps),
        )
    )
    if balances:
        request["rebalance"] = True
    if draw(st.booleans()):
        sizes = draw(st.lists(st.integers(0, 1000), min_size=len(snapshot), max_size=len(snapshot)))
        request |= {"weights": np.array(sizes, np.int64), "tolerance": draw(st.sampled_from([5.0, 30.0]))}
    if draw(st.integers(0, 3)) == 0 and "a" in snapshot.topics.names:
        request["exclude_topics"] = ("a",)
    if draw(st.integers(0, 3)) == 0:
        request["exclude_brokers"] = (draw(st.sampled_from(brokers)),)
    return snapshot, request


@FEWER_EXAMPLES
@given(requests(balances=False))
def test_plan_equals_independent_optimum(case: tuple[Snapshot, dict[str, Any]]) -> None:
    proposal = planned(*case)
    best = optimum(proposal)
    assert best is not None
    assert (*astuple(proposal.shortage), proposal.cost) == astuple(best)
    assert proposal.bound <= proposal.cost
    assert_within_caps(proposal)


@FEWER_EXAMPLES
@given(requests(balances=False))
def test_heuristics_find_full_plan_within_caps_without_solver(case: tuple[Snapshot, dict[str, Any]]) -> None:
    snapshot, request = case
    assume(planned(snapshot, request).shortage == Shortage())
    proposal = heuristic_plan(problem_of(snapshot, PlanRequest(**request)))
    assert proposal.shortage == Shortage()
    assert proposal.bound <= proposal.cost
    assert_within_caps(proposal)


@FEWER_EXAMPLES
@given(requests(balances=True), st.booleans())
def test_balanced_plan_is_proven_by_independent_optimum(case: tuple[Snapshot, dict[str, Any]], exact: bool) -> None:
    snapshot, request = case
    proposal = planned(snapshot, request | {"exact": exact})
    assert_within_caps(proposal)
    best = optimum(proposal)
    lacks = astuple(proposal.shortage)
    if not proposal.reached:
        assert best is None or (best.staying, best.missing_racks) > lacks or not proposal.exact
        return
    assert proposal.bound <= proposal.cost
    assert best is not None
    if (best.staying, best.missing_racks) == lacks:
        assert proposal.bound <= best.cost <= proposal.cost
        assert proposal.cost == best.cost or not proposal.exact


@FEWER_EXAMPLES
@given(requests(balances=False))
def test_second_plan_within_caps_is_empty(case: tuple[Snapshot, dict[str, Any]]) -> None:
    snapshot, request = case
    assert len(plan(applied(planned(snapshot, request)), **request).rows) == 0


@pytest.mark.parametrize("exact", [False, True])
def test_caps_hold_by_moving_partition_that_need_not_move(exact: bool) -> None:
    snapshot = read_snapshot(str(DATA / "cap.txt"))
    proposal = plan(snapshot, remove_brokers=(3,), broker_caps={None: 2}, exact=exact)
    assert (proposal.moves, proposal.bound, proposal.shortage) == (2, 2, Shortage())
    assert all(3 not in replicas for replicas in lists_of(proposal))


def test_caps_hold_without_losing_racks() -> None:
    request = PlanRequest(remove_brokers=(4,), broker_caps={None: 83})
    problem = problem_of(read_snapshot(str(DATA / "cap-21.zookeeper.jsonl")), request)
    proposal = heuristic_plan(problem)
    assert (proposal.moves, proposal.bound, proposal.shortage) == (82, 82, Shortage())


def test_notes_name_caps_as_reason_of_lost_racks() -> None:
    # Broker 2 of rack b is full, so that the replica of broker 3 can only go to rack a.
    racks = {1: "a", 2: "b", 3: "b", 4: "a"}
    snapshot = snapshot_of({"t": [[1, 3], [4, 2]]}, racks)
    proposal = plan(snapshot, remove_brokers=(3,), broker_caps={2: 1, 1: 1})
    assert lists_of(proposal)[0] == [1, 4]
    assert [note for note in notes(proposal) if "racks" in note or "stay" in note] == [
        "1 partition is less evenly spread over racks, because no broker of another rack has room within its cap"
    ]


def test_only_the_partition_without_room_stays() -> None:
    snapshot = snapshot_of({"t": [[1], [1], [2]]}, {1: None, 2: None, 3: None})
    proposal = plan(snapshot, remove_brokers=(1,), broker_caps={None: 1})
    assert (proposal.shortage, proposal.moves, proposal.bound, proposal.gap) == (Shortage(1, 0), 1, 1, 0.0)


def test_small_rebalance_by_sizes_reaches_limits_by_default() -> None:
    snapshot = read_snapshot(str(DATA / "weighted.zookeeper.jsonl"))
    weights = read_weights(str(DATA / "weighted.csv"), snapshot)
    proposal = plan(snapshot, rebalance=True, weights=weights, tolerance=10.0)
    assert (proposal.reached, proposal.cost) == (True, 11_405)


def test_exact_plan_is_optimal_whatever_was_solved_before() -> None:
    solver = highspy.Highs()
    solver.setOptionValue("output_flag", False)
    solver.addVar(0, 1)
    solver.changeColIntegrality(0, highspy.HighsVarType.kInteger)
    solver.addRow(0, 0.5, 1, np.array([0], np.int32), np.array([1.0]))
    assert solver.run() == highspy.HighsStatus.kOk
    snapshot = read_snapshot(str(DATA / "sizes.txt"))
    weights = read_weights(str(DATA / "sizes.json"), snapshot)
    proposal = plan(snapshot, rebalance=True, weights=weights, tolerance=0.3, exact=True)
    assert (proposal.cost, proposal.bound, proposal.exact) == (10_050, 10_050, True)


def test_failure_of_solver_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(highspy.Highs, "run", lambda _solver: highspy.HighsStatus.kError)
    snapshot = read_snapshot(str(DATA / "weighted.zookeeper.jsonl"))
    weights = read_weights(str(DATA / "weighted.csv"), snapshot)
    goals: dict[str, Any] = {"rebalance": True, "weights": weights, "tolerance": 10.0}
    with pytest.raises(SolverError, match="run returned kError"):
        plan(snapshot, **goals, exact=True)
    assert any("the solver failed: HiGHS: run returned kError" in note for note in notes(plan(snapshot, **goals)))


def test_refused_model_is_an_error() -> None:
    program = IntegerProgram(np.ones(1), np.ones(1), np.ones(1, np.bool_))
    program.add_row([1], 1.0, 0, 1)
    with pytest.raises(SolverError, match="passModel"):
        minimize(program, 1, 0.0, 0)
