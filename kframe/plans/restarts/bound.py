"""A lower bound on the batches of a rolling restart, with its proof."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

import numpy as np

from kframe.model.arrays import Int32
from kframe.plans.restarts.batches import RestartProblem
from kframe.plans.restarts.conflicts import Conflicts


class Proof(StrEnum):
    """Why no order has fewer batches."""

    ANY_NODE = "any-node"
    """There is something to restart."""
    CONFLICTS = "conflicts"
    """Units of which no two can share a batch."""
    LIMIT = "limit"
    """A limit whose members need so many batches."""
    AT_MIN_ISR = "at-min-isr"
    """The partitions that restarts bring down to min ISR, in batches of at most so many."""
    SIZE = "size"
    """The nodes, in batches of at most so many."""


@dataclass(frozen=True, slots=True, eq=False)
class GroupBound:
    """The fewest batches of the units of a group. ``units`` are those of ``CONFLICTS``, ``limit`` that of ``LIMIT``."""

    batches: int
    proof: Proof
    units: Int32
    limit: int


def fewest_batches(problem: RestartProblem, conflicts: Conflicts) -> list[GroupBound]:
    """A bound for each group of units: no order has fewer batches than their sum.

    Proof. Units that conflict with each other are in as many batches as they are. A limit of capacity ``c`` that counts
    ``k`` members of the units needs ``k / c`` batches. If a limit spares one member only, each of its members
    exhausts it in a batch of its own, so each unit brings a known number of partitions down to min ISR. A batch brings
    at most ``exhausted_max`` there, so it has at most as many units as the smallest of these numbers add up to that.
    A batch has at most ``size_max`` nodes.
    """
    return [
        _bound_of(problem, conflicts, problem.order[problem.group[problem.order] == group])
        for group in np.unique(problem.group[problem.order]).tolist()
    ]


def _bound_of(problem: RestartProblem, conflicts: Conflicts, units: Int32) -> GroupBound:
    limits = problem.limits
    clique = conflicts.clique(units)
    none = np.empty(0, np.int32)
    bounds = [GroupBound(1, Proof.ANY_NODE, none, -1), GroupBound(len(clique), Proof.CONFLICTS, clique, -1)]
    is_member = np.zeros(len(problem.size), np.bool_)
    is_member[units] = True
    counts = np.where(is_member[limits.units.values], limits.members, 0)
    totals = np.bincount(limits.units.owners, counts, len(limits)).astype(np.int64)
    if len(limits):
        needs = -(-totals // np.maximum(limits.capacity, 1))
        limit = int(needs.argmax())
        bounds.append(GroupBound(int(needs[limit]), Proof.LIMIT, none, limit))
        bounds.append(GroupBound(_batches_at_min_isr(problem, units), Proof.AT_MIN_ISR, none, -1))
    bounds.append(GroupBound(int(-(-problem.size[units].sum() // problem.size_max)), Proof.SIZE, none, -1))
    return max(bounds, key=lambda bound: bound.batches)


def _batches_at_min_isr(problem: RestartProblem, units: Int32) -> int:
    """How many batches the limit of partitions at min ISR needs: by their sum, and by the most units in a batch."""
    limits = problem.limits
    alone = limits.capacity[limits.units.owners] == limits.members
    exhausted = np.where(alone, limits.exhausted[limits.units.owners], 0)
    by_unit = np.sort(np.bincount(limits.units.values, exhausted, len(problem.size))[units].astype(np.int64))
    totals = np.cumsum(by_unit)
    most = int(np.searchsorted(totals, problem.exhausted_max, side="right"))
    by_sum = -(-int(totals[-1]) // max(problem.exhausted_max, 1))
    return max(by_sum, -(-len(units) // max(most, 1)))
