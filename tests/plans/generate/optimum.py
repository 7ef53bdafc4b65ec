"""The best plan of a small request by a formulation of its own: a program over whole replica lists, for HiGHS.

A variable for each partition and each list that it may have chooses one list. What a list costs, whether it leaves the
partition as it is and how many racks it misses are known beforehand, so that the program has no rules of racks.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import combinations
from typing import Any, cast

import highspy
import numpy as np

from kframe.plans.generate import PlanProposal


@dataclass(frozen=True, slots=True)
class ListChoice:
    """A list that a partition may have: its brokers, and what it costs."""

    row: int
    brokers: tuple[int, ...]
    stays: bool
    missing_racks: int
    cost: int


@dataclass(frozen=True, slots=True)
class Optimum:
    """The fewest partitions that stay, the fewest racks that the others miss, and the least cost of such plans."""

    staying: int
    missing_racks: int
    cost: int


def choices_of(proposal: PlanProposal) -> list[ListChoice]:
    """Every list of every partition in scope, and what it costs."""
    problem, request = proposal.problem, proposal.problem.request
    racks: Mapping[int, object] = {
        broker: (broker,) if rack is None else rack for broker, rack in problem.racks.items()
    }
    ids = problem.brokers.ids.tolist()
    leaving = {ids[index] for index in np.flatnonzero(problem.brokers.leaving)}
    receivers = {ids[index] for index in np.flatnonzero(problem.brokers.share > 0)}
    choices = []
    for row in problem.order.tolist():
        before = {ids[index] for index in problem.original[row].tolist()}
        retained = before - leaving
        factor, weight = int(problem.replication_factor[row]), int(problem.weight[row])
        open_racks = {racks[broker] for broker in receivers | retained}
        possible = min(factor, len(open_racks))
        spanned = len({racks[broker] for broker in retained})
        required = possible if request.fix_racks else min(possible, spanned + max(factor - len(retained), 0))
        for brokers in combinations(sorted(receivers | retained), factor):
            missing = max(required - len({racks[broker] for broker in brokers}), 0)
            choices.append(ListChoice(row, brokers, False, missing, weight * len(set(brokers) - before)))
        choices.append(ListChoice(row, tuple(sorted(before)), True, 0, 0))
    return choices


def optimum(proposal: PlanProposal) -> Optimum | None:
    """The best plan of the request of a proposal, within its limits of loads; None if no plan is."""
    problem, choices = proposal.problem, choices_of(proposal)
    solver: Any = cast(Any, highspy).Highs()
    solver.setOptionValue("output_flag", False)
    solver.setOptionValue("mip_rel_gap", 0.0)
    solver.setOptionValue("mip_abs_gap", 0.0)
    infinity = float("inf")
    for _ in choices:
        solver.addVar(0, 1)
    for column in range(len(choices)):
        solver.changeColIntegrality(column, highspy.HighsVarType.kInteger)

    def add(value: Callable[[ListChoice], float], lower: float, upper: float) -> None:
        values = np.array([value(choice) for choice in choices], np.float64)
        columns = np.flatnonzero(values).astype(np.int32)
        solver.addRow(lower, upper, len(columns), columns, values[columns])

    for row in problem.order.tolist():
        add(lambda choice, row=row: choice.row == row, 1, 1)  # type: ignore[misc]
    before = np.bincount(problem.original.values, minlength=len(problem.brokers))
    scope = np.bincount(problem.original.take(problem.order).values, minlength=len(problem.brokers))
    for index, broker in enumerate(problem.brokers.ids.tolist()):
        if problem.brokers.leaving[index]:
            continue
        cap = min(max(int(problem.brokers.cap[index]), int(before[index])) - int(before[index] - scope[index]), 10**6)
        if problem.brokers.share[index] > 0:
            add(lambda choice, broker=broker: broker in choice.brokers, 0, cap)  # type: ignore[misc]
        if proposal.limits is not None:
            add(
                lambda choice, broker=broker: int(problem.weight[choice.row]) * (broker in choice.brokers),  # type: ignore[misc]
                float(proposal.limits.lower[index]),
                float(proposal.limits.upper[index]),
            )
    least: list[int] = []
    objectives: list[Callable[[ListChoice], int]] = [
        lambda choice: choice.stays,
        lambda choice: choice.missing_racks,
        lambda choice: choice.cost,
    ]
    for objective in objectives:
        for column, choice in enumerate(choices):
            solver.changeColCost(column, float(objective(choice)))
        assert solver.run() == highspy.HighsStatus.kOk
        if solver.getModelStatus() == highspy.HighsModelStatus.kInfeasible:
            return None
        assert solver.getModelStatus() == highspy.HighsModelStatus.kOptimal
        least.append(round(solver.getInfo().objective_function_value))
        add(objective, -infinity, least[-1])
    return Optimum(*least)
