"""A draft from prices of brokers, for plans that bring loads within limits.

Let each broker have a price for a unit of load. A partition then has a cheapest valid choice of replicas, where each
costs the price of its broker, and 1 more if it is copied, for each unit of weight. The cheapest choices, minus the
limits at their prices, are at most what a plan within the limits copies. The prices at which this is greatest bring the
cheapest choices near the limits.

They are for clusters of skewed load by sizes: in ``benchmarks/plans`` (skewed 12/10k) the plan copies 1.8 % more than
its bound without this draft, and as much with it.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from kframe import kernels
from kframe.model.arrays import Bool, Int16, Int32, Int64
from kframe.plans.generate.draft import Draft, weighted_loads
from kframe.plans.generate.limits import LoadLimits
from kframe.plans.generate.problem import PlanProblem
from kframe.plans.generate.racks import required_spread

#: How many partitions are assigned at most in the search for better prices.
_ASSIGNMENTS: Final = 5_000_000
#: How many partitions prices are searched with.
_SAMPLE: Final = 20_000


def draft_at_prices(problem: PlanProblem, limits: LoadLimits) -> Draft | None:
    """A draft of the cheapest replicas of each partition at the prices at which the bound is nearly greatest.

    The prices are those of a sample of the partitions of all sizes. None if some partition has no valid choice, or a
    broker more replicas than its cap and before.
    """
    price = _PriceSearch(problem, limits, len(problem.order) // _SAMPLE + 1).climb()
    draft, lists, brokers = Draft.of(problem, problem.original), problem.original, problem.brokers
    before = lists.take(problem.order)
    draft.load[:] -= weighted_loads(before, problem.weight[problem.order], len(brokers))
    draft.count[:] -= np.bincount(before.values, minlength=len(brokers))
    failed = kernels.assign_at_prices(
        problem.order,
        draft.offsets,
        lists.offsets,
        draft.before_replica,
        problem.replication_factor,
        _surplus(problem),
        brokers.leaving,
        *problem.spread_columns,
        brokers.share,
        brokers.cap,
        problem.weight,
        limits.upper,
        price,
        _scratch(problem),
        draft.replica,
        draft.load,
        draft.count,
    )
    most = np.maximum(brokers.cap, np.bincount(lists.values, minlength=len(brokers)))
    return None if failed or (draft.count > most).any() else draft.without_vacancies()


def _surplus(problem: PlanProblem) -> Int32:
    """(n, 2) how many replicas of each row need not add to the columns of its spread."""
    surplus, scope = np.zeros((len(problem.original), 2), np.int32), problem.order
    surplus[scope] = problem.replication_factor[scope, None] - required_spread(problem, scope)
    return surplus


def _scratch(problem: PlanProblem) -> Int16:
    return np.zeros(max(int(problem.replication_factor.max(initial=0)), 1), np.int16)


class _PriceSearch:
    """The bound is concave in the prices. Each step changes the prices of a broker, or of a rack, by 1, so that the
    load of the cheapest choices comes nearer to the limits. Only each partition of a ``stride`` counts.

    A transfer along a path of brokers costs at most 1 for each, so no price is above the number of brokers. Without
    this limit prices rise forever where no plan is within the limits.
    """

    def __init__(self, problem: PlanProblem, limits: LoadLimits, stride: int) -> None:
        self._problem, self._limits, self._stride = problem, limits, stride
        self._order = np.sort(problem.order[stride // 2 :: stride])
        self._limited: Bool = problem.brokers.share > 0
        self._original: Int16 = problem.original.values.astype(np.int16)
        self._surplus = _surplus(problem)
        rack = problem.brokers.rack
        shared = np.flatnonzero(np.bincount(rack[self._limited], minlength=1) > 1)
        #: (g, b) 1 for the brokers whose prices change together: each broker, and the brokers of each rack.
        self._groups: Int64 = np.concatenate([np.eye(len(rack), dtype=np.int64), rack == shared[:, None]])
        self._groups *= self._limited
        self._evaluations = max(_ASSIGNMENTS // max(len(self._order), 1), 1)

    def climb(self) -> Int64:
        """The prices with the greatest bound that steps from 0 reach."""
        price = np.zeros(len(self._limited), np.int64)
        bound, excess = self._evaluate(price)
        steps = self._groups @ excess
        rejected = np.zeros(len(steps), np.bool_)
        while self._evaluations > 0 and (steps[~rejected] != 0).any():
            group = int(np.where(rejected, 0, abs(steps)).argmax())
            change = self._groups[group] * np.sign(steps[group])
            if (abs(price + change) > len(price)).any():
                rejected[group] = True
                continue
            better, excess = self._evaluate(price + change)
            if better > bound:
                price, bound, steps = price + change, better, self._groups @ excess
                rejected[:] = False
            else:
                rejected[group] = True
        return price

    def _evaluate(self, price: Int64) -> tuple[int, Int64]:
        """The bound at prices, and by how much the load of each broker (b,) exceeds the limit that it has a price for.
        Brokers within their limits at the price 0 have 0, and those without limits."""
        self._evaluations -= 1
        problem, lists, limits = self._problem, self._problem.original, self._limits
        receiving = np.flatnonzero(self._limited)
        load = np.zeros(len(price), np.int64)
        copied = kernels.load_at_prices(
            self._order,
            lists.offsets,
            self._original,
            problem.replication_factor,
            self._surplus,
            problem.brokers.leaving,
            *problem.spread_columns,
            problem.weight,
            price,
            receiving[np.argsort(price[receiving], kind="stable")].astype(np.int32),
            _scratch(problem),
            load,
        )
        if copied < 0:
            return 0, np.zeros_like(load)
        load, copied = load * self._stride, copied * self._stride
        within = np.clip(load, limits.lower, limits.upper)
        limit = np.where(price > 0, limits.upper, np.where(price < 0, limits.lower, within))
        excess = np.where(self._limited, load - limit, 0)
        return copied + int((price * excess).sum()), excess
