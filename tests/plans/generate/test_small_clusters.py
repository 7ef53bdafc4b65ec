"""Small clusters whose best plan is known."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from kframe.errors import InputError
from kframe.plans.generate import plan
from kframe.plans.generate.bounds import lower_bounds
from kframe.plans.generate.limits import LoadLimits
from kframe.plans.generate.problem import problem_of
from kframe.plans.generate.request import PlanRequest
from tests.plans.generate.clusters import lists_of, snapshot_of

RACKS = {1: "a", 2: "b", 3: "c", 4: "a", 5: "b", 6: "c"}
NO_RACKS: dict[int, str | None] = dict.fromkeys(range(1, 7))


@pytest.mark.parametrize(
    ("lists", "racks", "goals", "moves", "after"),
    [
        # The replica stays in its rack, because the partition spans all of them.
        ([[1, 2, 3]], RACKS, {"remove_brokers": (1,)}, 1, [[4, 2, 3]]),
        # Two replicas in rack a: one of them moves to rack c, and the preferred leader stays.
        ([[1, 2, 4]], RACKS, {"fix_racks": True}, 1, [[1, 2, {3, 6}]]),
        # Five racks cannot be spanned by three replicas, and nothing needs to move.
        ([[1, 2, 3]], {1: "a", 2: "b", 3: "c", 4: "d", 5: "e"}, {"fix_racks": True}, 0, [[1, 2, 3]]),
        # A further replica goes to the rack without one.
        ([[1, 2]], RACKS, {"replication_factors": {"t": 3}}, 1, [[1, 2, {3, 6}]]),
        # The replica that shares a rack is the replica that a smaller factor drops.
        ([[1, 4, 2]], RACKS, {"replication_factors": {"t": 2}}, 0, [[1, 2]]),
        # The removed broker was the preferred leader, and a smaller factor leaves only the other replica.
        ([[1, 2], [2, 3]], NO_RACKS, {"remove_brokers": (1,), "replication_factors": {"t": 1}}, 0, [[2], [{2, 3}]]),
        # The replacement takes the position, and remains preferred leader.
        ([[1, 2], [2, 1]], NO_RACKS, {"replace": {1: 6}}, 2, [[6, 2], [2, 6]]),
        # The replacement has a replica already, so that another broker gets the second.
        ([[1, 6]], {1: None, 6: None, 7: None}, {"replace": {1: 6}}, 1, [[7, 6]]),
        # Nothing is known to be unbalanced by less than a replica.
        ([[1], [2], [3]], {1: None, 2: None, 3: None}, {"rebalance": True}, 0, [[1], [2], [3]]),
        # The leaders are exchanged without moving data.
        ([[1, 2], [1, 2]], {1: None, 2: None}, {"leaders_only": True}, 0, None),
        # Rack c is evacuated; the partition can then span two racks only.
        ([[1, 2, 3]], RACKS, {"evacuate_racks": ("c",)}, 1, [[1, 2, {4, 5}]]),
    ],
)
def test_plan_equals_known_optimum(
    lists: list[list[int]], racks: dict[int, str | None], goals: dict[str, Any], moves: int, after: list[Any] | None
) -> None:
    proposal = plan(snapshot_of({"t": lists}, racks), **goals)
    assert (proposal.moves, proposal.bound, proposal.reached) == (moves, moves, True)
    for planned, expected in zip(lists_of(proposal), after or [], strict=after is not None):
        assert len(planned) == len(expected)
        assert all(
            broker in allowed if isinstance(allowed, set) else broker == allowed
            for broker, allowed in zip(planned, expected, strict=True)
        )


def test_leaders_only_gives_each_broker_its_share() -> None:
    proposal = plan(
        snapshot_of({"t": [[1, 2], [1, 2], [1, 3], [1, 3]]}, {1: None, 2: None, 3: None}), leaders_only=True
    )
    assert sorted(replicas[0] for replicas in lists_of(proposal)) in ([1, 1, 2, 3], [1, 2, 2, 3], [1, 2, 3, 3])
    assert (proposal.moves, proposal.leader_changes) == (0, 2)


def test_rebalance_moves_through_third_broker_without_direct_move() -> None:
    # Broker 1 has too much and 2 too little, but every partition on 1 is on 2 as well.
    lists = [[1, 2], [1, 2], [1, 2], [1, 3], [1, 3], [3, 2]]
    proposal = plan(snapshot_of({"t": lists}, {1: None, 2: None, 3: None}), rebalance=True)
    counts = [sum(broker in replicas for replicas in lists_of(proposal)) for broker in (1, 2, 3)]
    assert (counts, proposal.reached, proposal.cost) == ([4, 4, 4], True, proposal.bound)


def test_dead_and_excluded_brokers_receive_no_replicas() -> None:
    snapshot = snapshot_of({"t": [[1, 2]] * 6}, NO_RACKS, dead=(3,))
    proposal = plan(snapshot, rebalance=True, exclude_brokers=(4,))
    assert {broker for replicas in lists_of(proposal) for broker in replicas} == {1, 2, 5, 6}
    assert proposal.reached


def test_bound_requires_no_move_off_dead_broker() -> None:
    snapshot = snapshot_of({"t": [[1, 2], [1, 3], [1, 3]]}, dict.fromkeys(range(1, 4)), dead=(2,))
    problem = problem_of(snapshot, PlanRequest(rebalance=True))
    limits = LoadLimits(np.array([0, 0, 0]), np.array([2, 0, 3]))
    assert lower_bounds(problem, limits) == {"required": 0, "deficit": 0, "excess": 1}


def test_capacities_set_broker_shares_of_replicas() -> None:
    snapshot = snapshot_of({"t": [[1]] * 12}, {1: None, 2: None, 3: None})
    proposal = plan(snapshot, rebalance=True, capacities={1: 1, 2: 2, 3: 3})
    counts = [sum(replicas == [broker] for replicas in lists_of(proposal)) for broker in (1, 2, 3)]
    assert (counts, proposal.moves, proposal.bound) == ([2, 4, 6], 10, 10)


def test_brokers_in_smaller_racks_get_larger_shares() -> None:
    # Every partition has a replica in each rack, so that the only broker of rack c has all partitions.
    snapshot = snapshot_of({"t": [[1, 2, 3]] * 4}, {1: "a", 2: "b", 3: "c", 4: "a", 5: "b"})
    proposal = plan(snapshot, rebalance=True)
    assert (proposal.moves, proposal.bound, proposal.reached) == (4, 4, True)
    assert all(replicas[0] == 3 or 3 in replicas for replicas in lists_of(proposal))


def test_rebalance_by_sizes_drops_replicas_too() -> None:
    """The plan at prices has as many slots as the other one, although a partition loses a replica."""
    snapshot = snapshot_of({"b": [[1, 4], [1], [1], [1]]}, NO_RACKS)
    sizes = np.array([17, 8, 32, 49], np.int64)
    proposal = plan(snapshot, rebalance=True, replication_factors={"*": 1}, weights=sizes, tolerance=30.0)
    assert proposal.after.counts.tolist() == [1, 1, 1, 1]


def test_expected_duration_is_that_of_the_busiest_broker() -> None:
    snapshot = snapshot_of({"t": [[1, 2], [1, 2]]}, {1: None, 2: None, 3: None})
    weights = np.array([100, 50], np.int64)
    proposal = plan(snapshot, remove_brokers=(2,), weights=weights, rate=10)
    assert (proposal.moves, proposal.seconds) == (2, 15.0)
    assert plan(snapshot, remove_brokers=(2,), weights=weights).seconds is None
    with pytest.raises(InputError, match="rate: found no sizes of partitions"):
        plan(snapshot, remove_brokers=(2,), rate=10)


def test_progress_counts_steps_and_ends_the_plan_by_what_it_raises() -> None:
    snapshot = snapshot_of({"a": [[1, 2], [1, 2], [2, 1]]}, dict.fromkeys((1, 2, 3)))
    steps: list[tuple[int, int]] = []
    plan(snapshot, rebalance=True, progress=lambda *step: steps.append(step))
    assert steps == [(number, 0) for number in range(1, len(steps) + 1)] != []

    def stop(done: int, total: int) -> None:
        raise InterruptedError(done)

    with pytest.raises(InterruptedError, match="1"):
        plan(snapshot, rebalance=True, progress=stop)
