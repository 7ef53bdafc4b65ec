"""The cheapest plan of a small problem as a mixed-integer program, solved by HiGHS.

A variable for each partition and broker says whether the broker holds a replica. The sum of a partition's variables
is its replication factor. The weighted sum of a broker's variables is within its limits, and its number of replicas
within its cap. A variable for each partition and rack is at most the sum of the variables of the rack's brokers;
their sum is the number of racks that the partition must span. The objective is the weight of replicas on brokers that
have none now.
"""

from __future__ import annotations

import ctypes
import importlib.util
import os
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from kframe.errors import InputError
from kframe.model.columns import Float64, Int32, Int64, Ragged
from kframe.model.lists import members
from kframe.planning.draft import weighted_loads
from kframe.planning.limits import LoadLimits
from kframe.planning.problem import PlanProblem
from kframe.planning.racks import required_racks

#: Largest number of variables that a problem may have: partitions times brokers.
VARIABLES_MAX: Final = 100_000
#: Where the solver stops with weights: the share of the cost that is not proven to be necessary.
_GAP: Final = 1e-4
#: Largest weight in the program.
_WEIGHT_MAX: Final = 1000
#: Nodes of the search tree, which bound its time whatever the machine: on request, and for problems that are solved
#: without one.
_NODES: Final = 200_000
_NODES_UNREQUESTED: Final = 2_000
#: Largest number of variables of a problem that is solved without request.
_VARIABLES_UNREQUESTED: Final = 2_000


@dataclass(frozen=True, slots=True, eq=False)
class ExactResult:
    """The result of the solver. ``lists`` (n lists of broker indexes) is None if no plan keeps all limits, or if none
    was encountered. ``bound`` is the least that any plan copies; ``optimal`` tells whether ``lists`` copy just that."""

    lists: Ragged | None
    bound: int
    feasible: bool
    optimal: bool


@dataclass(slots=True)
class _Rows:
    """Constraints ``lower <= sum(coefficient * variable) <= upper``, collected row by row."""

    columns: list[Any]
    coefficients: list[Any]
    lower: list[float]
    upper: list[float]

    def add(self, columns: Any, coefficients: Any, lower: float, upper: float) -> None:
        self.columns.append(np.asarray(columns, np.int32))
        self.coefficients.append(np.broadcast_to(np.asarray(coefficients, np.float64), len(columns)))
        self.lower.append(lower)
        self.upper.append(upper)


def is_small(problem: PlanProblem) -> bool:
    """Whether a problem is so small that it is solved without a request for it, if highspy is installed."""
    size = len(problem.order) * len(problem.brokers)
    return size <= _VARIABLES_UNREQUESTED and importlib.util.find_spec("highspy") is not None


def solve(problem: PlanProblem, limits: LoadLimits | None) -> ExactResult:
    """The cheapest plan within ``limits``.

    Raises InputError if the problem is too large or highspy is not installed.
    """
    size = len(problem.order) * len(problem.brokers)
    if size > VARIABLES_MAX:
        raise InputError("exact", f"{size:,} variables", f"at most {VARIABLES_MAX:,}: fewer partitions or brokers")
    try:
        import highspy
    except ImportError as missing:
        raise InputError("exact", "no highspy", "kframe-controller[exact] installed") from missing
    scope = np.sort(problem.order)
    scale = max(float(problem.weight[scope].max(initial=1)) / _WEIGHT_MAX, 1.0)
    rows, upper, cost = _program(problem, scope, limits, scale)
    solver = _quiet_solver(highspy)
    for option, value in (("output_flag", False), ("threads", 1), ("random_seed", problem.request.seed & 0x7FFFFFFF),
                          ("mip_max_nodes", _NODES if problem.request.exact else _NODES_UNREQUESTED),
                          ("mip_rel_gap", _GAP if problem.weighted else 0.0)):  # fmt: skip
        solver.setOptionValue(option, value)
    solver.passModel(_model(highspy, rows, upper, cost, size))
    solver.run()
    status, info = solver.getModelStatus(), solver.getInfo()
    if status == highspy.HighsModelStatus.kInfeasible:
        return ExactResult(None, 0, False, False)
    bound = int(np.ceil(max(info.mip_dual_bound, 0) * scale * (1 - 1e-9) - 1e-6))
    if info.primal_solution_status != highspy.SolutionStatus.kSolutionStatusFeasible:
        return ExactResult(None, bound, True, False)
    assigned = np.array(solver.getSolution().col_value[:size]).reshape(len(scope), -1) > 0.5
    lists = _lists(problem, scope, assigned)
    if limits is not None and not limits.reached(_loads(problem, lists, limits)):
        return ExactResult(None, bound, True, False)
    optimal = status == highspy.HighsModelStatus.kOptimal and (scale == 1 or _cost(problem, lists) <= bound)
    return ExactResult(lists, bound, True, optimal)


def _cost(problem: PlanProblem, lists: Ragged) -> int:
    added = lists.keep(~members(lists, problem.original))
    terms = 0 if problem.costs is None else problem.costs.total(added)
    return int(problem.weight[added.owners].sum()) + terms


def _loads(problem: PlanProblem, lists: Ragged, limits: LoadLimits) -> Int64:
    """(b,) loads of the partitions in scope; brokers without limits have the load of their limits."""
    loads = weighted_loads(lists.take(problem.order), problem.weight[problem.order], len(problem.brokers))
    return np.where(problem.brokers.share > 0, loads, limits.lower)


def _quiet_solver(highspy: Any) -> Any:
    """A solver, without the notice that HiGHS prints on standard output when it is made."""
    standard_output, nothing = os.dup(1), os.open(os.devnull, os.O_WRONLY)
    os.dup2(nothing, 1)
    os.close(nothing)
    try:
        solver = highspy.Highs()
        ctypes.CDLL(None).fflush(None)
    finally:
        os.dup2(standard_output, 1)
        os.close(standard_output)
    return solver


def _program(
    problem: PlanProblem, scope: Int32, limits: LoadLimits | None, scale: float
) -> tuple[_Rows, Float64, Float64]:
    """Constraints, upper bounds and costs of the variables: ``p * b + broker`` of replicas, then those of racks.

    Weights are in units of ``scale``, because the tolerances of the solver are absolute.
    """
    brokers, lists = problem.brokers, problem.original.take(scope)
    count, width = len(scope), len(brokers)
    racks = len(brokers.rack_targets)
    weight = problem.weight[scope] / scale
    present = np.zeros((count, width), np.bool_)
    present[lists.owners, lists.values] = True
    allowed = (brokers.share > 0) | present & (brokers.leaving == 0)
    term = np.zeros((count, width), np.int64)
    if problem.costs is not None:
        usable = problem.costs.allowed(scope)
        allowed &= usable | present
        term = np.where(usable, problem.costs.of(scope), 0)
    rows = _Rows([], [], [], [])
    for index in range(count):
        factor = problem.replication_factor[scope[index]]
        rows.add(index * width + np.arange(width), 1.0, factor, factor)
    outside = np.bincount(problem.original.values, minlength=width) - present.sum(axis=0)
    for broker in np.flatnonzero(brokers.share > 0).tolist():
        column = broker + width * np.arange(count)
        if limits is not None:
            rows.add(column, weight, limits.lower[broker] / scale, limits.upper[broker] / scale)
        cap = max(int(brokers.cap[broker]) - int(outside[broker]), int(present[:, broker].sum()))
        rows.add(column, 1.0, 0, min(cap, count))
    _add_racks(rows, problem, scope, count * width, racks)
    cost = np.concatenate([np.where(present, 0, weight[:, None] + term / scale).ravel(), np.zeros(count * racks)])
    return rows, np.concatenate([allowed.ravel().astype(float), np.ones(count * racks)]), cost


def _add_racks(rows: _Rows, problem: PlanProblem, scope: Int32, first: int, racks: int) -> None:
    brokers, width = problem.brokers, len(problem.brokers)
    required = required_racks(problem, scope)
    members = [np.flatnonzero(brokers.rack == rack) for rack in range(racks)]
    for index in range(len(scope)):
        marks = first + index * racks + np.arange(racks)
        rows.add(marks, 1.0, int(required[index]), racks)
        for rack, inside in enumerate(members):
            columns = np.append(index * width + inside, marks[rack])
            rows.add(columns, np.append(np.ones(len(inside)), -1.0), 0, np.inf)


def _model(highspy: Any, rows: _Rows, upper: Float64, cost: Float64, integers: int) -> Any:
    model = highspy.HighsLp()
    model.num_col_, model.num_row_ = len(cost), len(rows.lower)
    model.col_cost_, model.col_lower_, model.col_upper_ = cost, np.zeros(len(cost)), upper
    model.row_lower_, model.row_upper_ = np.array(rows.lower, np.float64), np.array(rows.upper, np.float64)
    model.a_matrix_.format_ = highspy.MatrixFormat.kRowwise
    starts = np.zeros(len(rows.lower) + 1, np.int32)
    np.cumsum([len(columns) for columns in rows.columns], out=starts[1:])
    model.a_matrix_.start_ = starts
    model.a_matrix_.index_ = np.concatenate(rows.columns)
    model.a_matrix_.value_ = np.concatenate(rows.coefficients)
    kinds = [highspy.HighsVarType.kInteger] * integers + [highspy.HighsVarType.kContinuous] * (len(cost) - integers)
    model.integrality_ = kinds
    return model


def _lists(problem: PlanProblem, scope: Int32, assigned: np.ndarray[Any, Any]) -> Ragged:
    """The lists of a solution: what stays keeps its position, new brokers take vacated positions and then the end."""
    lists = [problem.original[row].tolist() for row in range(len(problem.original))]
    for index, row in enumerate(scope.tolist()):
        chosen = np.flatnonzero(assigned[index]).tolist()
        new = [broker for broker in chosen if broker not in lists[row]]
        slots = [broker if broker in chosen else (new.pop(0) if new else -1) for broker in lists[row]]
        lists[row] = [broker for broker in slots if broker >= 0] + new
    return Ragged.of(lists)
