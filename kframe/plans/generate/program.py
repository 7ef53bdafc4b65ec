"""The integer program of a plan.

A variable for each partition and broker says whether the broker holds a replica. The sum of a partition's variables
is its replication factor. The weighted sum of a broker's variables is within its limits, and its number of replicas
within its cap. A variable for each partition and rack is at most the sum of the variables of the rack's brokers,
and at most a bound of the rack. Their sum is at least the spread that the partition must have (``rack_rules.py``). Both
columns of the spread have such variables, unless the fewest replicas of every rack are 0. The objective is the weight
of replicas on brokers that have none now, and what cost terms add.

Where the caps leave too little room, two more variables relax a partition's rules: how many of its replicas are
in wrong racks, and whether it stays as it is.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np

from kframe.model.arrays import Bool, Float64, Int32, Int64, Ragged
from kframe.plans.generate.highs import IntegerProgram
from kframe.plans.generate.limits import LoadLimits
from kframe.plans.generate.problem import PlanProblem
from kframe.plans.generate.racks import required_spread

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
class PlanProgram:
    """The columns of a program and its rules.

    ``scope`` (k,) are the rows in scope, ascending. The columns are replicas (``p * brokers + broker``), racks of
    each bound, and with ``is_relaxed`` replicas in wrong racks and partitions that stay.
    """

    problem: PlanProblem
    scope: Int32
    unit: WeightUnit
    is_relaxed: bool

    @staticmethod
    def of(problem: PlanProblem, *, is_relaxed: bool) -> PlanProgram:
        """The program of a problem."""
        scope = np.sort(problem.order)
        return PlanProgram(problem, scope, WeightUnit.of(problem, scope), is_relaxed)

    @property
    def replicas(self) -> int:
        """How many variables there are of replicas."""
        return len(self.scope) * len(self.problem.brokers)

    @property
    def bounds(self) -> Int32:
        """(k, racks, bounds) the bounds of racks that are not 0 in every rule, the most first."""
        rules = self.problem.rack_rules
        bounds = rules.bounds[rules.rule[self.scope]][:, :, ::-1]
        return bounds if bounds[:, :, 1].any() else bounds[:, :, :1]

    @property
    def missing(self) -> Int64:
        """(k,) columns of replicas in wrong racks."""
        return self.replicas + self.bounds.size + np.arange(len(self.scope) * self.is_relaxed)

    @property
    def staying(self) -> Int64:
        """(k,) columns of partitions that stay as they are."""
        return self.missing + len(self.scope)

    def within(self, limits: LoadLimits | None) -> IntegerProgram:
        """The program of the plans within ``limits``, in units of weight."""
        problem, scope, replicas = self.problem, self.scope, self.replicas
        bounds = self.bounds
        count = replicas + bounds.size + len(self.missing) + len(self.staying)
        lists = problem.original.take(scope)
        present = np.zeros((len(scope), len(problem.brokers)), np.bool_)
        present[lists.owners, lists.values] = True
        cost, upper, integer = np.zeros(count), np.ones(count), np.zeros(count, np.bool_)
        allowed, cost[:replicas] = self._placements(present)
        upper[:replicas] = (allowed | (present & self.is_relaxed)).ravel()
        upper[replicas : replicas + bounds.size] = bounds.ravel()
        upper[self.missing] = max(bounds.shape[1], int(problem.replication_factor[scope].max(initial=0)))
        integer[:replicas] = integer[self.staying] = True
        program = IntegerProgram(cost, upper, integer)
        self._add_partitions(program, lists, allowed)
        self._add_brokers(program, present, limits)
        self._add_racks(program, bounds)
        return program

    def _placements(self, present: Bool) -> tuple[Bool, Float64]:
        """(k, b) placements that a plan may have, and (k * b) what they cost."""
        brokers, costs = self.problem.brokers, self.problem.costs
        weight = self.problem.weight[self.scope] / self.unit.size
        allowed = (brokers.share > 0) | present & (brokers.leaving == 0)
        term = np.zeros(present.shape, np.int64)
        if costs is not None:
            usable = costs.allowed(self.scope)
            allowed &= usable | present
            term = np.where(usable, costs.of(self.scope), 0)
        return allowed, np.where(present, 0, weight[:, None] + term / self.unit.size).ravel()

    def _add_partitions(self, program: IntegerProgram, lists: Ragged, allowed: Bool) -> None:
        """Each partition has as many replicas as its replication factor, or those that it has now."""
        width = len(self.problem.brokers)
        factors, staying = self.problem.replication_factor[self.scope].tolist(), self.staying.tolist()
        for index, factor in enumerate(factors):
            columns = index * width + np.arange(width)
            if not self.is_relaxed:
                program.add_row(columns, 1.0, factor, factor)
                continue
            stays, replicas = staying[index], lists[index]
            change = factor - len(replicas)
            program.add_row(np.append(columns, stays), np.append(np.ones(width), float(change)), factor, factor)
            for broker in replicas.tolist():
                # A replica that may not be retained is there only if the partition stays as it is.
                lower, upper = (0, 1) if allowed[index, broker] else (0, 0)
                program.add_row([index * width + broker, stays], [1.0, -1.0], lower, upper)

    def _add_brokers(self, program: IntegerProgram, present: Bool, limits: LoadLimits | None) -> None:
        """Each broker that receives replicas is within its limits and its cap, or has at most as many as before.

        A balance leaves the load of other brokers as it is.
        """
        brokers, scope, width, unit = self.problem.brokers, self.scope, len(self.problem.brokers), self.unit.size
        inside = present.sum(axis=0)
        outside = np.bincount(self.problem.original.values, minlength=width) - inside
        weight = self.problem.weight[scope] / unit
        for broker in np.flatnonzero(brokers.leaving == 0).tolist():
            columns = broker + width * np.arange(len(scope))
            if limits is not None:
                program.add_row(columns, weight, limits.lower[broker] / unit, limits.upper[broker] / unit)
            if brokers.share[broker] <= 0:
                continue
            cap = max(int(brokers.cap[broker]) - int(outside[broker]), int(inside[broker]))
            if cap < len(scope):
                program.add_row(columns, 1.0, 0, cap)

    def _add_racks(self, program: IntegerProgram, bounds: Int32) -> None:
        """Each partition has the required spread, or lacks as much of it as replicas are in wrong racks."""
        required, missing, staying = required_spread(self.problem, self.scope), self.missing, self.staying
        brokers = self.problem.brokers
        members = [np.flatnonzero(brokers.rack == rack) for rack in range(len(brokers.rack_targets))]
        marks = self.replicas + np.arange(bounds.size).reshape(bounds.shape)
        for index, column in np.ndindex(len(self.scope), bounds.shape[2]):
            spread = float(required[index, 1 - column])
            columns, coefficients = marks[index, :, column], np.ones(len(members))
            if self.is_relaxed:
                columns = np.append(columns, [missing[index], staying[index]])
                coefficients = np.append(coefficients, [1.0, spread])
            program.add_row(columns, coefficients, spread, np.inf)
            for rack, inside in enumerate(members):
                cells = np.append(index * len(brokers) + inside, marks[index, rack, column])
                program.add_row(cells, np.append(np.ones(len(inside)), -1.0), 0, np.inf)
