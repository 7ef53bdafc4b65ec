"""The cheapest plan of a problem as an integer program, solved by HiGHS and checked in integers.

Only the solver proves an optimum where sizes do not add up to a bound, and that no plan meets the targets. It is for
small problems, or on request.
"""

from __future__ import annotations

import importlib.util
from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from kframe.errors import ParameterError
from kframe.model.arrays import Float64, Int32, Int64, Ragged
from kframe.plans.generate.draft import weighted_loads
from kframe.plans.generate.highs import IntegerProgram, IntegerSolution, minimize
from kframe.plans.generate.limits import LoadLimits
from kframe.plans.generate.problem import PlanProblem
from kframe.plans.generate.program import PlanProgram

#: Largest number of variables that a problem may have: partitions times brokers.
VARIABLES_MAX: Final = 100_000
#: Nodes of the search tree, which bound its time whatever the machine: on request, where the product with the variables
#: limits them further if replicas have weights; and for problems that are solved without a request.
_NODES: Final = 200_000
_NODES_TIMES_VARIABLES: Final = 4_000_000
_NODES_UNREQUESTED: Final = 2_000
#: Where the solver stops with weights: the share of the cost that is not proven to be necessary, without a request, and
#: on request where weights are too different for integers, so that nothing is proven exactly.
_GAP_UNREQUESTED: Final = 1e-4
_GAP_OF_FLOATS: Final = 1e-6
#: Largest number of variables of a problem that is solved without request. Without limits of loads a plan is a flow,
#: which is solved without a search.
_VARIABLES_UNREQUESTED: Final = 2_000
_VARIABLES_WITHOUT_LIMITS: Final = 20_000
#: How often the limits are narrowed, because a solution exceeds them by what the solver tolerates.
_NARROWINGS: Final = 3


@dataclass(frozen=True, slots=True, eq=False)
class ExactResult:
    """The result of the solver. ``lists`` (n lists of broker indexes) is None if no plan keeps all limits, or if none
    was encountered. ``bound`` is the least that any plan copies; ``optimal`` tells whether ``lists`` copy just that.
    ``staying`` are the rows that stay as they are, ascending."""

    lists: Ragged | None
    bound: int
    feasible: bool
    optimal: bool
    staying: Int32


def is_small(problem: PlanProblem, limits: LoadLimits | None) -> bool:
    """Whether a problem is so small that it is solved without a request for it, if highspy is installed."""
    size_max = _VARIABLES_UNREQUESTED if limits is not None else _VARIABLES_WITHOUT_LIMITS
    return _size(problem) <= size_max and importlib.util.find_spec("highspy") is not None


def is_searched(problem: PlanProblem) -> bool:
    """Whether ``solve_relaxed`` searches a whole tree: on request, and for few variables. It is no flow then, and takes
    the longer the more variables it has."""
    return problem.request.exact or _size(problem) <= _VARIABLES_UNREQUESTED


def solve(problem: PlanProblem, limits: LoadLimits | None) -> ExactResult:
    """The cheapest plan within ``limits`` in which every partition has the spread over racks that it must.

    Raises InputError if the problem is too large or highspy is not installed, SolverError if the solver fails.
    """
    return _PlanSolver.of(problem, None).result(limits)


def solve_relaxed(problem: PlanProblem, limits: LoadLimits | None) -> ExactResult:
    """The plan in which the fewest partitions stay as they are, then the fewest racks are missing, then the cheapest.

    For requests whose caps of brokers leave too little room. Only the cheapest is within ``limits``. ``bound`` and
    ``optimal`` are of plans in which as few partitions stay, and as few racks are missing. Raises errors as ``solve``.
    """
    solver, proven = _PlanSolver.of(problem, ()), True
    for columns in (solver.plans.staying, solver.plans.missing):
        fewest, optimal = solver.fewest(columns)
        if fewest is None:
            return ExactResult(None, 0, True, False, np.empty(0, np.int32))
        proven &= optimal
        solver = replace(solver, most=(*(solver.most or ()), fewest))
    result = solver.result(limits)
    return replace(result, optimal=result.optimal and proven, bound=result.bound if proven else 0)


def fewest_staying(problem: PlanProblem) -> int | None:
    """The number of partitions that stay as they are in the plan of ``solve_relaxed``. None if the solver has none."""
    solver = _PlanSolver.of(problem, ())
    return solver.fewest(solver.plans.staying)[0]


def _size(problem: PlanProblem) -> int:
    """Partitions times brokers."""
    return len(problem.order) * len(problem.brokers)


@dataclass(frozen=True, slots=True, eq=False)
class _PlanSolver:
    """Solves the programs of a problem.

    ``most`` is how many partitions may stay, and then how many racks may be missing, as far as that is known; None for
    the program in which neither is possible.
    """

    plans: PlanProgram
    most: tuple[int, ...] | None

    @staticmethod
    def of(problem: PlanProblem, most: tuple[int, ...] | None) -> _PlanSolver:
        """Raises InputError if the problem is too large."""
        size = _size(problem)
        if size > VARIABLES_MAX:
            expected = f"at most {VARIABLES_MAX:,}: fewer partitions or brokers"
            raise ParameterError("exact", f"{size:,} variables", expected)
        return _PlanSolver(PlanProgram.of(problem, is_relaxed=most is not None), most)

    def program(self, limits: LoadLimits | None) -> IntegerProgram:
        program = self.plans.within(limits)
        for columns, count in zip((self.plans.staying, self.plans.missing), self.most or (), strict=False):
            program.add_row(columns, 1.0, 0, count)
        return program

    def minimize(self, program: IntegerProgram) -> IntegerSolution:
        problem, request = self.plans.problem, self.plans.problem.request
        nodes, gap = _NODES, 0.0 if self.plans.unit.is_divisor else _GAP_OF_FLOATS
        if problem.weighted:
            nodes = min(max(_NODES_TIMES_VARIABLES // max(self.plans.replicas, 1), _NODES_UNREQUESTED), _NODES)
        if not request.exact:
            nodes, gap = _NODES_UNREQUESTED, _GAP_UNREQUESTED if problem.weighted else gap
        return minimize(program, nodes, gap, request.seed)

    def fewest(self, columns: Int64) -> tuple[int | None, bool]:
        """The least sum of these variables, None if no solution was found, and whether it is proven to be the least."""
        program = self.program(None)
        objective = np.zeros(len(program.cost))
        objective[columns] = 1.0
        solution = self.minimize(replace(program, cost=objective))
        if solution.values is None:
            return None, False
        return round(float(solution.values[columns].sum())), solution.optimal

    def result(self, limits: LoadLimits | None) -> ExactResult:
        """The cheapest solution, by a program whose limits are narrowed until the solution is within ``limits``."""
        solution = self.minimize(self.program(limits))
        bound, narrowed = self._bound(solution.bound), limits
        unsolved = ExactResult(None, bound, solution.feasible, False, np.empty(0, np.int32))
        for _ in range(_NARROWINGS):
            if solution.values is None:
                return unsolved
            lists, staying = self._lists(solution.values)
            if limits is None or narrowed is None or limits.reached(loads := self._loads(lists, limits)):
                return ExactResult(lists, bound, True, self.plans.problem.cost(lists) <= bound, staying)
            narrowed = narrowed.narrowed(limits.excess(loads) + limits.deficit(loads))
            solution = self.minimize(self.program(narrowed))
        return unsolved

    def _bound(self, bound: float) -> int:
        """The least integer cost that is not below a bound in units."""
        unit = self.plans.unit
        return int(np.ceil(bound)) * int(unit.size) if unit.is_divisor else int(bound * unit.size)

    def _loads(self, lists: Ragged, limits: LoadLimits) -> Int64:
        """(b,) loads of the partitions in scope; brokers that all replicas leave have the load of their limits."""
        problem = self.plans.problem
        loads = weighted_loads(lists.take(problem.order), problem.weight[problem.order], len(problem.brokers))
        return np.where(problem.brokers.leaving == 0, loads, limits.lower)

    def _lists(self, values: Float64) -> tuple[Ragged, Int32]:
        """The lists of a solution, and the rows that stay as they are. What stays keeps its position; new brokers take
        vacated positions and then the end."""
        plans, original = self.plans, self.plans.problem.original
        assigned = values[: plans.replicas].reshape(len(plans.scope), -1) > 0.5
        lists = [original[row].tolist() for row in range(len(original))]
        for index, row in enumerate(plans.scope.tolist()):
            chosen = np.flatnonzero(assigned[index]).tolist()
            new = [broker for broker in chosen if broker not in lists[row]]
            slots = [broker if broker in chosen else (new.pop(0) if new else -1) for broker in lists[row]]
            lists[row] = [broker for broker in slots if broker >= 0] + new
        staying = plans.scope[values[plans.staying] > 0.5] if plans.is_relaxed else np.empty(0, np.int32)
        return Ragged.of(lists), staying
