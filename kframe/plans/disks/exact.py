"""The fewest bytes between the directories of a broker as an integer program, solved by HiGHS.

A variable for each replica and directory says whether the replica moves there. Two variables for each directory are
the bytes that it remains above its upper limit, or below its lower one.
"""

from __future__ import annotations

import importlib.util
from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from kframe.errors import ParameterError, SolverError
from kframe.model.arrays import Int32, Int64
from kframe.plans.disks.problem import DirectoryProblem
from kframe.plans.generate.highs import IntegerProgram, IntegerSolution, minimize

#: The most replicas times directories: on request, and without one.
VARIABLES_MAX: Final = 100_000
_VARIABLES_UNREQUESTED: Final = 2_000
#: Nodes of the search tree, which bound its time whatever the machine: on request, and without one.
_NODES: Final = 100_000
_NODES_UNREQUESTED: Final = 2_000
#: Shares of the bytes: what a plan may copy above its bound, and where the solver stops, without a request.
_SOLVED_GAP: Final = 0.01
_GAP_UNREQUESTED: Final = 1e-4
#: Largest size in the units of a program in which every size is an integer, and in any other.
_INTEGER_MAX: Final = 1_000_000
_SIZE_MAX: Final = 1_000
#: By how many units limits are narrowed: at last by more than what the solver tolerates.
_MARGINS: Final = (0.0, 1e-6)


@dataclass(frozen=True, slots=True, eq=False)
class DirectoryTargets:
    """The directory of each replica, the bytes that remain outside of limits, and the least bytes that move.

    ``outside_proven``: no assignment leaves fewer bytes outside. ``bound`` is of those that leave as few. ``error`` is
    what failed in a solver that was not requested.
    """

    target: Int32
    outside: int
    bound: int
    outside_proven: bool
    error: str | None = None


def improved(problem: DirectoryProblem, target: Int32, *, exact: bool) -> DirectoryTargets:
    """The optimum instead of ``target``, if that is not proven to be one and the problem is small, or ``exact``.

    Raises InputError if ``exact`` problems are too large or highspy is not installed, SolverError if it fails there.
    """
    outside, cost = problem.rating(target)
    assignment = DirectoryTargets(target, outside, problem.bound(outside), outside == 0)
    movable = np.flatnonzero(problem.gives[problem.home] & (problem.size > 0)).astype(np.int32)
    variables = len(movable) * len(problem.used)
    if (not outside and cost == assignment.bound) or not variables:
        return replace(assignment, outside_proven=True)
    if exact:
        if variables > VARIABLES_MAX:
            raise ParameterError("exact", f"{variables:,} variables", f"at most {VARIABLES_MAX:,}: fewer replicas")
        return _Solver.of(problem, movable, _NODES, 0.0).improve(assignment)
    is_cheap = not outside and cost <= assignment.bound * (1 + _SOLVED_GAP)
    if is_cheap or variables > _VARIABLES_UNREQUESTED or importlib.util.find_spec("highspy") is None:
        return assignment
    try:
        return _Solver.of(problem, movable, _NODES_UNREQUESTED, _GAP_UNREQUESTED).improve(assignment)
    except SolverError as error:
        return replace(assignment, error=str(error))


@dataclass(frozen=True, slots=True, eq=False)
class _Solver:
    """``movable`` (k,) are replicas. ``unit`` is what a size of 1 in the program is; ``is_divisor``: of every size."""

    problem: DirectoryProblem
    movable: Int32
    nodes: int
    gap: float
    unit: float
    is_divisor: bool

    @staticmethod
    def of(problem: DirectoryProblem, movable: Int32, nodes: int, gap: float) -> _Solver:
        sizes = problem.size[movable]
        divisor, greatest = int(np.gcd.reduce(sizes)), int(sizes.max())
        if greatest // divisor <= _INTEGER_MAX:
            return _Solver(problem, movable, nodes, gap, float(divisor), True)
        return _Solver(problem, movable, nodes, gap, greatest / _SIZE_MAX, False)

    def improve(self, assignment: DirectoryTargets) -> DirectoryTargets:
        """The best of the assignment and the solutions of the program."""
        best, proven = assignment.target, assignment.outside_proven
        if assignment.outside:
            best, solution = self._solve(best, None)
            proven = solution.optimal
        outside = self.problem.rating(best)[0]
        best, solution = self._solve(best, outside)
        bound = int(np.ceil(solution.bound)) * int(self.unit) if self.is_divisor else int(solution.bound * self.unit)
        return DirectoryTargets(best, outside, max(bound, self.problem.bound(outside)), proven)

    def _solve(self, target: Int32, outside: int | None) -> tuple[Int32, IntegerSolution]:
        """The better of ``target`` and a solution: the least bytes outside of limits, or with at most ``outside`` bytes
        there the fewest bytes that move. With it the solution within the original limits."""
        first: IntegerSolution | None = None
        for margin in _MARGINS:
            solution = minimize(self._program(outside, margin), self.nodes, self.gap, 0)
            first = solution if first is None else first
            if solution.values is None:
                break
            solved = self._target(solution)
            rating, before = self.problem.rating(solved), self.problem.rating(target)
            if rating <= before and self._has_room(solved):
                target = solved if rating < before else target
                break
        assert first is not None
        return target, first

    def _program(self, outside: int | None, margin: float) -> IntegerProgram:
        problem, directories = self.problem, len(self.problem.used)
        count = len(self.movable) * directories
        sizes, homes = problem.size[self.movable] / self.unit, problem.home[self.movable]
        upper = np.tile(problem.receives.astype(np.float64), (len(self.movable), 1))
        upper[np.arange(len(homes)), homes] = 0
        slack = np.arange(count, count + 2 * directories)
        limits = np.full(2 * directories, float(problem.outside(problem.used).sum()) / self.unit)
        cost = np.zeros(count + 2 * directories)
        if outside is None:
            cost[slack] = 1.0
        else:
            cost[:count] = np.repeat(sizes, directories)
        integer = np.append(np.ones(count, np.bool_), np.zeros(2 * directories, np.bool_))
        program = IntegerProgram(cost, np.append(upper.ravel(), limits), integer)
        columns = np.arange(count).reshape(len(self.movable), directories)
        for replica in columns:
            program.add_row(replica, 1.0, 0, 1)
        for index in range(directories):
            stays, now = homes == index, float(problem.used[index])
            entering, leaving = columns[~stays, index], np.delete(columns[stays], index, axis=1).ravel()
            above, below = slack[2 * index], slack[2 * index + 1]
            values = np.concatenate([sizes[~stays], -np.repeat(sizes[stays], directories - 1), [-1.0, 1.0]])
            lower, upper_limit = ((float(limit[index]) - now) / self.unit for limit in (problem.lower, problem.upper))
            narrowed = margin if upper_limit - lower > 2 * margin else 0.0
            program.add_row([*entering, *leaving, above, below], values, lower + narrowed, upper_limit - narrowed)
            program.add_row(entering, sizes[~stays], 0, float(problem.room[index]) / self.unit)
        if outside is not None:
            program.add_row(slack, 1.0, 0, outside / self.unit)
        return program

    def _target(self, solution: IntegerSolution) -> Int32:
        assert solution.values is not None
        directories = len(self.problem.used)
        chosen = solution.values[: len(self.movable) * directories].reshape(-1, directories) > 0.5
        target = self.problem.home.copy()
        target[self.movable] = np.where(chosen.any(axis=1), chosen.argmax(axis=1), target[self.movable])
        return target

    def _has_room(self, target: Int32) -> bool:
        received: Int64 = self.problem.received(target)
        return bool((received <= self.problem.room).all())
