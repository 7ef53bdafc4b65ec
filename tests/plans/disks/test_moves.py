"""The moves within a broker keep its rules, and those of the solver are the fewest bytes that any moves copy."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given

from kframe.errors import InputError
from kframe.plans.disks.exact import VARIABLES_MAX, improved
from kframe.plans.disks.moves import choose_moves
from kframe.plans.disks.problem import DirectoryProblem
from tests.plans.disks.brokers import is_allowed, optimum, problems
from verification.support.properties import examples


@given(problems())
def test_moves_keep_the_rules_and_the_bound(problem: DirectoryProblem) -> None:
    target = choose_moves(problem)
    assert is_allowed(problem, target)
    outside, moved = problem.rating(target)
    assert problem.bound(outside) <= moved
    assert outside <= problem.rating(problem.home)[0]
    least = optimum(problem)
    assert problem.bound(least[0]) <= least[1]


@examples(0.5)
@given(problems())
def test_solver_finds_the_optimum(problem: DirectoryProblem) -> None:
    pytest.importorskip("highspy")
    assignment = improved(problem, choose_moves(problem), exact=True)
    assert is_allowed(problem, assignment.target)
    assert (assignment.outside, assignment.bound) == problem.rating(assignment.target) == optimum(problem)
    assert assignment.outside_proven


def test_many_replicas_are_levelled_near_the_bound() -> None:
    generator = np.random.default_rng(0)
    size = generator.pareto(1.2, 5_000).astype(np.int64) * 1_000 + 1_000
    home = (generator.random(5_000) ** 2 * 8).astype(np.int32)
    used = np.bincount(home, size, 8).astype(np.int64)
    share = np.full(8, used.sum() // 8)
    every = np.ones(8, np.bool_)
    room = np.full(8, 2**50)
    problem = DirectoryProblem(size, home, used, share * 9 // 10, share * 11 // 10, every, every, room)
    assignment = improved(problem, choose_moves(problem), exact=False)
    assert assignment.outside == 0
    assert problem.rating(assignment.target)[1] <= assignment.bound * 1.01


def test_too_large_an_exact_problem_is_refused() -> None:
    count = VARIABLES_MAX // 2 + 1
    problem = DirectoryProblem(
        np.full(count, 3),
        np.zeros(count, np.int32),
        np.array([3 * count, 0]),
        np.zeros(2, np.int64),
        np.array([3 * count - 1, 2]),
        np.ones(2, np.bool_),
        np.ones(2, np.bool_),
        np.full(2, 2**50),
    )
    with pytest.raises(InputError, match="exact: found 100,002 variables, expected at most 100,000"):
        improved(problem, problem.home, exact=True)
