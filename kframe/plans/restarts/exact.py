"""The fewest batches by integer programming, for rolling restarts whose bound leaves a gap."""

from __future__ import annotations

from itertools import combinations
from typing import Final

import numpy as np

from kframe.errors import ParameterError
from kframe.model.arrays import Int32, Int64
from kframe.plans.generate.highs import IntegerProgram, minimize
from kframe.plans.restarts.batches import UNLIMITED, RestartProblem

#: The most variables of a program, and nodes of its search tree.
VARIABLES_MAX: Final = 100_000
_NODES: Final = 20_000


def fewer_batches(problem: RestartProblem, clique: Int32, batches: int) -> tuple[Int32 | None, bool]:
    """An assignment of at most ``batches`` batches, or None; and whether the solver has proven that there is none.

    ``clique`` are units of which no two share a batch: unit ``i`` of them is in batch ``i``. Raises InputError if
    highspy is not installed, and for too large a problem. Partitions at min ISR are not limited, which is not linear.
    """
    units, limits = problem.order, problem.limits
    size = len(units) * batches
    if size > VARIABLES_MAX:
        raise ParameterError("exact", f"{size:,} variables", f"at most {VARIABLES_MAX:,}: fewer nodes")
    program = IntegerProgram(np.zeros(size), np.ones(size), np.ones(size, np.bool_))
    position = np.full(len(problem.size), -1, np.int64)
    position[units] = np.arange(len(units)) * batches
    every = np.arange(batches)
    for unit in units.tolist():
        program.add_row(position[unit] + every, 1, 1, 1)
    for number, unit in enumerate(clique.tolist()[:batches]):
        program.add_row([position[unit] + number], 1, 1, 1)
    offsets = limits.units.offsets.tolist()
    for number, capacity in enumerate(limits.capacity.tolist()):
        members = slice(offsets[number], offsets[number + 1])
        for batch in every:
            program.add_row(position[limits.units.values[members]] + batch, limits.members[members], 0, capacity)
    groups = np.unique(problem.group[units])
    for batch in every if len(groups) > 1 else ():
        _add_groups(program, problem, position, int(batch))
    if problem.size_max != UNLIMITED:
        for batch in every:
            program.add_row(position[units] + batch, problem.size[units], 0, problem.size_max)
    solution = minimize(program, _NODES, 0.0, 0)
    if solution.values is None:
        return None, not solution.feasible
    batch_of = np.full(len(problem.size), -1, np.int32)
    batch_of[units] = solution.values.reshape(len(units), batches).argmax(axis=1)
    return batch_of, False


def _add_groups(program: IntegerProgram, problem: RestartProblem, position: Int64, batch: int) -> None:
    """Units of different groups share no batch: pairs of them."""
    units = problem.order.tolist()
    for low, high in combinations(units, 2):
        if problem.group[low] != problem.group[high]:
            program.add_row([position[low] + batch, position[high] + batch], 1, 0, 1)
