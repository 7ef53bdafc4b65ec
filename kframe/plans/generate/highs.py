"""Solve integer programs with HiGHS, and check everything that HiGHS returns."""

from __future__ import annotations

import ctypes
import os
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np

from kframe.errors import ParameterError, SolverError, pip_command
from kframe.model.arrays import Bool, Float64, Int32

#: HiGHS leaves out coefficients up to this size, and says so in a warning.
_COEFFICIENT_MIN: Final = 1e-9
#: The absolute tolerance of rows, of integers, and of the objective by which HiGHS prunes. It must be greater than the
#: rounding error of the objective: with 1e-9 HiGHS 1.16 proves optima of five digits that are too high.
_TOLERANCE: Final = 1e-6
#: The greatest cost of a variable in the program that HiGHS gets, so that an objective has about five digits.
_COST_MAX: Final = 64.0
#: By how much the bound of HiGHS, a float, may be too high: a share of the objective, and at least this.
_BOUND_ERROR: Final = 1e-9
_BOUND_ERROR_ABSOLUTE: Final = 0.01


@dataclass(slots=True)
class IntegerProgram:
    """Minimize ``cost @ v``, where ``0 <= v <= upper`` and each row ``lower <= coefficients @ v[columns] <= upper``.

    ``integer`` marks the variables that are integers.
    """

    cost: Float64
    upper: Float64
    integer: Bool
    columns: list[Int32] = field(default_factory=list)
    coefficients: list[Float64] = field(default_factory=list)
    row_lower: list[float] = field(default_factory=list)
    row_upper: list[float] = field(default_factory=list)

    def add_row(self, columns: Any, coefficients: Any, lower: float, upper: float) -> None:
        """Add a constraint; ``coefficients`` is a number for all columns, or one for each."""
        columns = np.asarray(columns, np.int32)
        values = np.broadcast_to(np.asarray(coefficients, np.float64), len(columns))
        relevant = np.abs(values) > _COEFFICIENT_MIN
        self.columns.append(columns[relevant])
        self.coefficients.append(values[relevant])
        self.row_lower.append(lower)
        self.row_upper.append(upper)


@dataclass(frozen=True, slots=True, eq=False)
class IntegerSolution:
    """What HiGHS found. ``values`` of the variables are None if no solution was found before the limit of nodes.

    ``feasible`` is False only if HiGHS has proven that there is no solution. No solution costs less than ``bound``.
    ``optimal`` tells whether HiGHS has proven that no solution costs less than ``values``, up to the requested gap.
    """

    values: Float64 | None
    bound: float
    feasible: bool
    optimal: bool


def minimize(program: IntegerProgram, nodes: int, gap: float, seed: int) -> IntegerSolution:
    """Solve a program with at most ``nodes`` nodes of the search tree, up to a difference ``gap`` of cost and bound.

    Raises InputError if highspy is not installed, SolverError if HiGHS fails.
    """
    try:
        import highspy
    except ImportError as missing:
        raise ParameterError("exact", "no highspy", f"the package: {pip_command('exact')}") from missing
    solver = _quiet_solver(highspy)
    # The number of threads is that of the process: HiGHS refuses to run with another number than it began with.
    options = {
        "output_flag": False,
        "parallel": "off",
        "random_seed": seed & 0x7FFFFFFF,
        "mip_max_nodes": nodes,
        "mip_rel_gap": gap,
        "mip_abs_gap": 0.0,
        "mip_feasibility_tolerance": _TOLERANCE,
    }
    for option, value in options.items():
        _check(highspy, f"option {option}", solver.setOptionValue(option, value))
    unit = _cost_unit(program.cost)
    _check(highspy, "passModel", solver.passModel(_model(highspy, program, unit)))
    returned = solver.run()
    status, info = solver.getModelStatus(), solver.getInfo()
    statuses = highspy.HighsModelStatus
    # Every variable has bounds, so that no program is unbounded.
    if returned == highspy.HighsStatus.kOk and status in (statuses.kInfeasible, statuses.kUnboundedOrInfeasible):
        return IntegerSolution(None, 0.0, False, False)
    optimal = returned == highspy.HighsStatus.kOk and status == statuses.kOptimal
    stopped = returned != highspy.HighsStatus.kError and status == statuses.kSolutionLimit
    if not (optimal or stopped):
        raise SolverError(f"HiGHS: run returned {returned.name} with model status {status.name}, expected a solution")
    dual = float(info.mip_dual_bound) * unit
    error = max(_BOUND_ERROR_ABSOLUTE, 2 * _TOLERANCE * unit) + abs(dual) * _BOUND_ERROR
    bound = dual - error if np.isfinite(dual) else 0.0
    if info.primal_solution_status != highspy.SolutionStatus.kSolutionStatusFeasible:
        return IntegerSolution(None, max(bound, 0.0), True, False)
    return IntegerSolution(np.array(solver.getSolution().col_value), max(bound, 0.0), True, optimal)


def _check(highspy: Any, call: str, status: Any) -> None:
    if status != highspy.HighsStatus.kOk:
        raise SolverError(f"HiGHS: {call} returned {status.name}, expected kOk")


def _cost_unit(cost: Float64) -> float:
    """A power of two, by which division is exact, that brings all costs down to _COST_MAX."""
    greatest = float(np.abs(cost).max(initial=0.0))
    return float(2.0 ** max(0, np.ceil(np.log2(max(greatest, 1.0) / _COST_MAX))))


def _model(highspy: Any, program: IntegerProgram, unit: float) -> Any:
    model = highspy.HighsLp()
    model.num_col_, model.num_row_ = len(program.cost), len(program.row_lower)
    model.col_cost_, model.col_lower_, model.col_upper_ = (
        program.cost / unit,
        np.zeros(len(program.cost)),
        program.upper,
    )
    model.row_lower_ = np.array(program.row_lower, np.float64)
    model.row_upper_ = np.array(program.row_upper, np.float64)
    model.a_matrix_.format_ = highspy.MatrixFormat.kRowwise
    starts = np.zeros(len(program.row_lower) + 1, np.int32)
    np.cumsum([len(columns) for columns in program.columns], out=starts[1:])
    model.a_matrix_.start_ = starts
    model.a_matrix_.index_ = np.concatenate(program.columns)
    model.a_matrix_.value_ = np.concatenate(program.coefficients)
    kinds = highspy.HighsVarType
    model.integrality_ = [kinds.kInteger if integer else kinds.kContinuous for integer in program.integer.tolist()]
    return model


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
