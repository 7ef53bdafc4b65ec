"""The integer program of a plan.

A variable for each partition and broker says whether the broker holds a replica. The sum of a partition's variables
is its replication factor. The weighted sum of a broker's variables is within its limits, and its number of replicas
within its cap. A variable for each partition and rack is at most the sum of the variables of the rack's brokers;
their sum is the number of racks that the partition must span. The objective is the weight of replicas on brokers that
have none now, and what cost terms add.

Where the caps leave too little room, two more variables relax a partition's rules: by how many racks it spans fewer,
and whether it stays as it is.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np

from kframe.model.arrays import Bool, Float64, Int32, Int64, Ragged
from kframe.plans.generate.highs import IntegerProgram
from kframe.plans.generate.limits import LoadLimits
from kframe.plans.generate.problem import PlanProblem
from kframe.plans.generate.racks import required_racks

#: Largest weight in the units of a program in which every weight is an integer, and in any other.
_INTEGER_MAX: Final = 1_000_000
_WEIGHT_MAX: Final = 1000


@dataclass(frozen=True, slots=True)
class WeightUnit:
    """What a weight of 1 in the program is, because the tolerances of the solver are absolute.

    ``is_divisor``: every weight and cost is a multiple of it.
    """

    size: float
    is_divisor: bool

    @staticmethod
    def of(problem: PlanProblem, scope: Int32) -> WeightUnit:
        """The greatest common divisor, unless it is too small beside the greatest weight."""
        weight = problem.weight[scope]
        values = weight
        if problem.costs is not None:
            terms = problem.costs.of(scope)
            values = np.concatenate([weight, terms[problem.costs.allowed(scope)]])
        divisor = int(np.gcd.reduce(values, initial=0)) or 1
        greatest = int(values.max(initial=1))
        if greatest // divisor <= _INTEGER_MAX:
            return WeightUnit(float(divisor), True)
        return WeightUnit(max(float(weight.max(initial=1)) / _WEIGHT_MAX, 1.0), False)


@dataclass(frozen=True, slots=True, eq=False)
class PlanVariables:
    """The columns of a program: replicas, racks, and with ``is_relaxed`` missing racks and partitions that stay."""

    scope: Int32
    brokers: int
    racks: int
    is_relaxed: bool

    @property
    def replicas(self) -> int:
        """How many variables there are of replicas: ``p * brokers + broker``."""
        return len(self.scope) * self.brokers

    @property
    def first_missing(self) -> int:
        """The column of the first partition's missing racks."""
        return self.replicas + len(self.scope) * self.racks

    @property
    def first_staying(self) -> int:
        """The column that says whether the first partition stays as it is."""
        return self.first_missing + len(self.scope)

    def __len__(self) -> int:
        return self.first_missing + (2 * len(self.scope) if self.is_relaxed else 0)

    @property
    def missing(self) -> Int64:
        """(k,) columns of missing racks."""
        return np.arange(self.first_missing, self.first_staying)

    @property
    def staying(self) -> Int64:
        """(k,) columns of partitions that stay as they are."""
        return np.arange(self.first_staying, self.first_staying + len(self.scope))

    def racks_of(self, index: int) -> Int64:
        """(racks,) columns of the racks of a partition."""
        return self.replicas + index * self.racks + np.arange(self.racks)


def plan_program(
    problem: PlanProblem, variables: PlanVariables, limits: LoadLimits | None, unit: WeightUnit
) -> IntegerProgram:
    """The program of the plans within ``limits``, in units of weight."""
    scope, width = variables.scope, variables.brokers
    lists = problem.original.take(scope)
    present = np.zeros((len(scope), width), np.bool_)
    present[lists.owners, lists.values] = True
    cost, upper = np.zeros(len(variables)), np.ones(len(variables))
    allowed, cost[: variables.replicas] = _placements(problem, scope, present, unit)
    upper[: variables.replicas] = (allowed | (present & variables.is_relaxed)).ravel()
    if variables.is_relaxed:
        upper[variables.missing] = variables.racks
    integer = np.zeros(len(variables), np.bool_)
    integer[: variables.replicas] = True
    integer[variables.first_staying :] = True
    program = IntegerProgram(cost, upper, integer)
    _add_partitions(program, problem, variables, lists, allowed)
    _add_brokers(program, problem, variables, present, limits, unit)
    _add_racks(program, problem, variables)
    return program


def _placements(problem: PlanProblem, scope: Int32, present: Bool, unit: WeightUnit) -> tuple[Bool, Float64]:
    """(k, b) placements that a plan may have, and (k * b) what they cost."""
    brokers, weight = problem.brokers, problem.weight[scope] / unit.size
    allowed = (brokers.share > 0) | present & (brokers.leaving == 0)
    term = np.zeros(present.shape, np.int64)
    if problem.costs is not None:
        usable = problem.costs.allowed(scope)
        allowed &= usable | present
        term = np.where(usable, problem.costs.of(scope), 0)
    return allowed, np.where(present, 0, weight[:, None] + term / unit.size).ravel()


def _add_partitions(
    program: IntegerProgram, problem: PlanProblem, variables: PlanVariables, lists: Ragged, allowed: Bool
) -> None:
    """Each partition has as many replicas as its replication factor, or those that it has now."""
    width = variables.brokers
    factors = problem.replication_factor[variables.scope].tolist()
    for index, factor in enumerate(factors):
        columns = index * width + np.arange(width)
        if not variables.is_relaxed:
            program.add_row(columns, 1.0, factor, factor)
            continue
        stays, replicas = variables.first_staying + index, lists[index]
        change = factor - len(replicas)
        program.add_row(np.append(columns, stays), np.append(np.ones(width), float(change)), factor, factor)
        for broker in replicas.tolist():
            # A replica that may not be retained is there only if the partition stays as it is.
            lower, upper = (0, 1) if allowed[index, broker] else (0, 0)
            program.add_row([index * width + broker, stays], [1.0, -1.0], lower, upper)


def _add_brokers(
    program: IntegerProgram,
    problem: PlanProblem,
    variables: PlanVariables,
    present: Bool,
    limits: LoadLimits | None,
    unit: WeightUnit,
) -> None:
    """Each broker that receives replicas is within its limits and its cap, or has at most as many as before.

    A balance leaves the load of other brokers as it is.
    """
    brokers, scope, width = problem.brokers, variables.scope, variables.brokers
    inside = present.sum(axis=0)
    outside = np.bincount(problem.original.values, minlength=width) - inside
    weight = problem.weight[scope] / unit.size
    for broker in np.flatnonzero(brokers.leaving == 0).tolist():
        columns = broker + width * np.arange(len(scope))
        if limits is not None:
            program.add_row(columns, weight, limits.lower[broker] / unit.size, limits.upper[broker] / unit.size)
        if brokers.share[broker] <= 0:
            continue
        cap = max(int(brokers.cap[broker]) - int(outside[broker]), int(inside[broker]))
        if cap < len(scope):
            program.add_row(columns, 1.0, 0, cap)


def _add_racks(program: IntegerProgram, problem: PlanProblem, variables: PlanVariables) -> None:
    required = required_racks(problem, variables.scope).tolist()
    members = [np.flatnonzero(problem.brokers.rack == rack) for rack in range(variables.racks)]
    for index, count in enumerate(required):
        marks = variables.racks_of(index)
        columns, coefficients = marks, np.ones(len(marks))
        if variables.is_relaxed:
            relaxing = [variables.first_missing + index, variables.first_staying + index]
            columns, coefficients = np.append(marks, relaxing), np.append(coefficients, [1.0, float(count)])
        program.add_row(columns, coefficients, count, np.inf)
        for rack, inside in enumerate(members):
            cells = np.append(index * variables.brokers + inside, marks[rack])
            program.add_row(cells, np.append(np.ones(len(inside)), -1.0), 0, np.inf)
