"""A lower bound from prices of brokers, for plans that bring loads within limits.

Let each broker have a price for a unit of load. A partition then has a cheapest valid choice of replicas, where each
costs the price of its broker, and 1 more if it is copied, for each unit of weight.

Proof that the bound holds, whatever the prices. A plan within the limits costs what it copies. Add the price of each
broker, times its load, and subtract the same. The added sum and the copies are at least the sum of the cheapest choices
of the partitions. What is subtracted is at most the price times the upper limit, or the lower limit if the price is
negative. So the cheapest choices, minus the limits at their prices, are at most what the plan copies.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from kframe import kernels
from kframe.model.columns import Bool, Int16, Int32, Int64
from kframe.planning.limits import LoadLimits
from kframe.planning.problem import PlanProblem
from kframe.planning.racks import required_racks

#: How many partitions are assigned at most in the search for better prices.
_ASSIGNMENTS: Final = 5_000_000


def priced_bound(problem: PlanProblem, limits: LoadLimits, price: Int64, cost: int) -> int:
    """The greatest bound of prices near ``price`` (b,), or near 0. 0 if some partition has no valid choice.

    ``cost`` is that of a plan, which no bound exceeds.
    """
    search = _PriceSearch(problem, limits, cost)
    return max(search.climb(price), search.climb(np.zeros_like(price)), 0)


class _PriceSearch:
    """The bound is concave in the prices. Each step changes the price of one broker by 1, so that the load of the
    cheapest choices comes nearer to the limits."""

    def __init__(self, problem: PlanProblem, limits: LoadLimits, cost: int) -> None:
        self._problem, self._limits, self._cost = problem, limits, cost
        self._order = np.sort(problem.order)
        brokers, scope = problem.brokers, problem.order
        self._limited: Bool = brokers.share > 0
        self._original: Int16 = problem.original.values.astype(np.int16)
        self._required: Int32 = np.zeros(len(problem.original), np.int32)
        self._required[scope] = required_racks(problem, scope)
        self._evaluations = max(_ASSIGNMENTS // max(len(scope), 1), 1)

    def climb(self, price: Int64) -> int:
        """The greatest bound that steps from these prices reach."""
        if self._evaluations <= 0:
            return 0
        price = np.where(self._limited, price, 0).astype(np.int64)
        bound, step = self._evaluate(price)
        rejected = np.zeros(len(price), np.bool_)
        while bound < self._cost and self._evaluations > 0 and (step[~rejected] != 0).any():
            broker = int(np.where(rejected, 0, abs(step)).argmax())
            price[broker] += np.sign(step[broker])
            better, next_step = self._evaluate(price)
            if better > bound:
                bound, step = better, next_step
                rejected[:] = False
            else:
                price[broker] -= np.sign(step[broker])
                rejected[broker] = True
        self._evaluations = 0 if bound >= self._cost else self._evaluations
        return bound

    def _evaluate(self, price: Int64) -> tuple[int, Int64]:
        """The bound at prices, and by how much the load of each broker (b,) exceeds the limit that it has a price for.
        Brokers within their limits at the price 0 have 0, and those without limits."""
        self._evaluations -= 1
        problem, lists, limits = self._problem, self._problem.original, self._limits
        receiving = np.flatnonzero(self._limited)
        load = np.zeros(len(price), np.int64)
        copied = kernels.assign_at_prices(
            self._order, lists.offsets, self._original, problem.wanted, self._required, problem.brokers.leaving,
            problem.brokers.rack, problem.weight, price,
            receiving[np.argsort(price[receiving], kind="stable")].astype(np.int32),
            np.zeros(max(int(problem.wanted.max(initial=0)), 1), np.int16), load,
        )  # fmt: skip
        if copied < 0:
            return 0, np.zeros_like(load)
        within = np.clip(load, limits.lower, limits.upper)
        limit = np.where(price > 0, limits.upper, np.where(price < 0, limits.lower, within))
        excess = np.where(self._limited, load - limit, 0)
        return copied + int((price * excess).sum()), excess
