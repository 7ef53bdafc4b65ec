"""The best plan of a small request by a formulation of its own: a program over whole replica lists, for HiGHS.

A variable for each partition and each list that it may have chooses one list. What a list costs, whether it leaves the
partition as it is and how many of its replicas are in wrong racks are known beforehand, so that the program has
no rules of racks.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace
from itertools import combinations

import numpy as np

from kframe.plans.generate import PlanProposal
from kframe.plans.generate.highs import IntegerProgram, minimize


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
    """The fewest partitions that stay, the fewest replicas of the others in wrong racks, and the least cost then."""

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
        lists = list(combinations(sorted(receivers | retained), factor))
        level = min(fullest_rack(racks, brokers) for brokers in lists)
        spreads = [spread_of([racks[broker] for broker in brokers], level) for brokers in lists]
        is_requested = problem.one_rack is not None and bool(problem.one_rack.requested[row])
        retained_min = 0 if request.fix_racks and not is_requested else min(len(retained), factor)
        reachable = [
            spread for spread, brokers in zip(spreads, lists, strict=True) if len(retained & {*brokers}) >= retained_min
        ]
        is_possible = max(fullest_rack(racks, brokers) for brokers in lists) == factor
        required = [max(column) for column in zip(*reachable, strict=True)]
        for brokers, spread in zip(lists, spreads, strict=True):
            missing = max(0, *(least - value for least, value in zip(required, spread, strict=True)))
            if is_requested and is_possible:
                missing = factor - fullest_rack(racks, brokers)
            choices.append(ListChoice(row, brokers, False, missing, weight * len(set(brokers) - before)))
        choices.append(ListChoice(row, tuple(sorted(before)), True, 0, 0))
    return choices


def fullest_rack(racks: Mapping[int, object], brokers: tuple[int, ...]) -> int:
    """The replicas of the rack that has the most."""
    return max(Counter(racks[broker] for broker in brokers).values())


def spread_of(racks: list[object], level: int) -> tuple[int, int]:
    """The replicas of each rack, of at most one less than the level, and of at most the level."""
    counts = Counter(racks).values()
    return sum(min(count, level - 1) for count in counts), sum(min(count, level) for count in counts)


def optimum(proposal: PlanProposal) -> Optimum | None:
    """The best plan of the request of a proposal, within its limits of loads; None if no plan is."""
    problem, choices = proposal.problem, choices_of(proposal)
    if not choices:
        return Optimum(0, 0, 0)
    columns = np.arange(len(choices))
    program = IntegerProgram(np.zeros(len(choices)), np.ones(len(choices)), np.ones(len(choices), np.bool_))
    rows, stays, missing_racks, cost = (
        np.array([getattr(choice, name) for choice in choices], np.float64)
        for name in ("row", "stays", "missing_racks", "cost")
    )
    for row in problem.order.tolist():
        program.add_row(columns, rows == row, 1, 1)
    before = np.bincount(problem.original.values, minlength=len(problem.brokers))
    scope = np.bincount(problem.original.take(problem.order).values, minlength=len(problem.brokers))
    weight = problem.weight[rows.astype(np.int64)]
    for index, broker in enumerate(problem.brokers.ids.tolist()):
        if problem.brokers.leaving[index]:
            continue
        has_replica = np.array([broker in choice.brokers for choice in choices])
        cap = min(max(int(problem.brokers.cap[index]), int(before[index])) - int(before[index] - scope[index]), 10**6)
        if problem.brokers.share[index] > 0:
            program.add_row(columns, has_replica, 0, cap)
        if proposal.limits is not None:
            lower, upper = proposal.limits.lower[index], proposal.limits.upper[index]
            program.add_row(columns, weight * has_replica, float(lower), float(upper))
    least: list[int] = []
    for objective in (stays, missing_racks, cost):
        solution = minimize(replace(program, cost=objective), 10**6, 0.0, 0)
        if not solution.feasible:
            return None
        assert solution.values is not None
        assert solution.optimal
        least.append(round(float(objective @ solution.values)))
        program.add_row(columns, objective, -np.inf, least[-1])
    return Optimum(*least)
