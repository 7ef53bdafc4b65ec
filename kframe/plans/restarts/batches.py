"""Batches of units: first fit, improved by reordering, down to a lower bound."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Final

import numpy as np

from kframe import kernels
from kframe.model.arrays import Int32, Int64, Ragged, offsets_of
from kframe.plans.restarts.limits import RestartLimits

UNLIMITED: Final = 2**62
#: Members of limits that are examined while batches are improved, which bounds the time whatever the machine.
_EXAMINED: Final = 30_000_000
_ROUNDS: Final = 400


@dataclass(frozen=True, eq=False)
class RestartProblem:
    """What to assign to batches.

    ``group`` (u,): units of different groups share no batch. ``size`` (u,): nodes of a unit. ``exhausted_max`` and
    ``size_max``: the most partitions at min ISR and the most nodes in a batch. ``order``: the units to assign.
    """

    limits: RestartLimits
    group: Int32
    size: Int32
    exhausted_max: int
    size_max: int
    order: Int32

    @cached_property
    def limits_by_unit(self) -> Ragged:
        """The limits of each unit."""
        lists = self.limits.units
        offsets = offsets_of(np.bincount(lists.values, minlength=len(self.size)))
        return Ragged(offsets, lists.owners[np.argsort(lists.values, kind="stable")])

    def assign(self, order: Int32) -> tuple[Int32, int]:
        """(u,) the batch of each unit by first fit in this order, -1 for others, and how many batches there are."""
        units, lists = len(self.size), self.limits.units
        batch = np.full(units, -1, np.int32)
        count = kernels.assign_batches(
            order,
            self.limits_by_unit.offsets,
            self.limits_by_unit.values,
            lists.offsets,
            lists.values,
            self.limits.members,
            self.limits.capacity,
            self.limits.exhausted,
            self.group,
            self.size,
            self.exhausted_max,
            self.size_max,
            np.zeros(units, np.int32),
            np.zeros(units, np.uint8),
            np.zeros((3, units), np.int64),
            np.zeros(units, np.int32),
            batch,
        )
        return batch, count


def assign_batches(problem: RestartProblem, bound: int) -> Int32:
    """(u,) the batch of each unit in ``problem.order``, from 0; -1 for others. Equal problems give equal batches.

    First fit, the units with the most partitions first. Then units are assigned again, batch by batch: that never
    takes more batches (Culberson, "Iterated greedy graph coloring", 1992). It ends at ``bound`` batches.
    """
    limits = problem.limits
    weight = np.bincount(limits.units.values, limits.partitions[limits.units.owners], len(problem.size))
    order = problem.order[np.argsort(-weight[problem.order], kind="stable")]
    batch, count = problem.assign(order)
    generator = np.random.default_rng(0)
    rounds = min(_ROUNDS, _EXAMINED // max(len(limits.members), 1))
    for number in range(rounds):
        if count <= bound:
            break
        order = order[np.argsort(_ranks(batch, count, number, generator)[batch[order]], kind="stable")]
        batch, count = problem.assign(order)
    return batch


def _ranks(batch: Int32, count: int, number: int, generator: np.random.Generator) -> Int64:
    """(count,) the rank of each batch in the next round: the last first, the largest first, or any order."""
    if number % 3 == 0:
        return np.arange(count, 0, -1)
    if number % 3 == 1:
        return -np.bincount(batch[batch >= 0], minlength=count)
    return generator.permutation(count)
