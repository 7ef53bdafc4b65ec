"""The loads that brokers should have: shares of the total, as far as racks and distinct brokers allow."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from kframe.model.arrays import Float64, Int32, Int64, Ragged
from kframe.model.lists import distinct_combinations
from kframe.model.placements import GoalTotals
from kframe.plans.generate.draft import Draft
from kframe.plans.generate.problem import PlanProblem, rack_numbers

_STEPS = 100
#: Rounding of sums, relative to a replica.
_ROUNDING = 1e-6


@dataclass(frozen=True, slots=True, eq=False)
class LoadLimits:
    """(b,) least and greatest load of each broker. A broker that takes no part has its own load as both."""

    lower: Int64
    upper: Int64

    def excess(self, load: Int64) -> Int64:
        """(b,) load above the limit."""
        excess: Int64 = np.maximum(load - self.upper, 0)
        return excess

    def deficit(self, load: Int64) -> Int64:
        """(b,) load below the limit."""
        deficit: Int64 = np.maximum(self.lower - load, 0)
        return deficit

    def transferable(self, load: Int64, giver: int, target: int) -> tuple[int, int]:
        """What a broker may give, and another may take, to reach their limits or else to stay within."""
        over, under = int(load[giver] - self.upper[giver]), int(self.lower[target] - load[target])
        give = over if over > 0 else int(load[giver] - self.lower[giver])
        take = under if under > 0 else int(self.upper[target] - load[target])
        return give, take

    def narrowed(self, margin: Int64) -> LoadLimits:
        """Limits that are narrower by a margin (b,) on both sides, as far as that leaves a load."""
        middle = (self.lower + self.upper) // 2
        return LoadLimits(np.minimum(self.lower + margin, middle), np.maximum(self.upper - margin, middle))

    def equals(self, other: LoadLimits) -> bool:
        """Whether every broker has the same limits."""
        return np.array_equal(self.lower, other.lower) and np.array_equal(self.upper, other.upper)

    def reached(self, load: Int64) -> bool:
        """Whether every load is within its limits."""
        return not (self.excess(load).any() or self.deficit(load).any())


def replica_limits(problem: PlanProblem, draft: Draft) -> LoadLimits:
    """Limits of the loads that a request for balance asks for.

    Without weights they are the neighbouring integers of each broker's share. With weights they deviate by the
    tolerance. With ``add_brokers`` alone only the added brokers have a lower limit, and no broker an upper limit
    below its load. A goal may have limits of its own. Raises PluginError if these are invalid.
    """
    brokers, request, load = problem.brokers, problem.request, draft.load
    if request.goal is not None and (limits := request.goal.limits(_goal_totals(problem, load))) is not None:
        return LoadLimits(*(np.where(brokers.share > 0, limit, load) for limit in limits))
    lists = draft.lists().take(problem.order)
    target = _targets(problem, lists, load)
    spread = request.tolerance / 100 if problem.weighted else 0.0
    lower, upper = _around(target, spread)
    receives = brokers.share > 0
    if request.add_brokers and not request.rebalance:
        added = np.isin(brokers.ids, request.add_brokers)
        lower, upper = np.where(added, lower, np.minimum(load, lower)), np.where(added, upper, np.maximum(load, upper))
    if not problem.weighted:
        room = np.maximum(brokers.cap - (draft.count - load), 0)
        lower, upper = np.minimum(lower, room), np.minimum(upper, room)
    return LoadLimits(np.where(receives, lower, load), np.where(receives, upper, load))


def _goal_totals(problem: PlanProblem, load: Int64) -> GoalTotals:
    names, racks = rack_numbers(problem.racks)
    brokers = problem.brokers
    total = int(load[brokers.share > 0].sum())
    return GoalTotals(brokers.ids.copy(), racks, names, brokers.share.copy(), total)


def leader_limits(problem: PlanProblem, led: Int64, most: Int64) -> LoadLimits:
    """Limits of preferred leaders: the integers around each broker's share, at most the ``most`` that it can lead."""
    share = problem.brokers.leader_share
    receives = share > 0
    total = float(led[receives].sum())
    target = water_fill(total, share, np.where(receives, most, 0).astype(np.float64))
    return LoadLimits(*(np.where(receives, limit, led) for limit in _around(target, 0.0)))


def _around(target: Float64, spread: float) -> tuple[Int64, Int64]:
    """(b,) the integers around a target that may deviate by a part of it."""
    lower, upper = target * (1 - spread), target * (1 + spread)
    return np.floor(lower + _ROUNDING).astype(np.int64), np.ceil(upper - _ROUNDING).astype(np.int64)


def _targets(problem: PlanProblem, lists: Ragged, load: Int64) -> Float64:
    """(b,) share of each broker of the load on all brokers that take part, by their capacities.

    No move makes the spread of a partition over racks worse. So a rack has a least and a greatest load. Within these
    limits racks, and brokers within racks, are filled to the same level.
    """
    brokers = problem.brokers
    receives = brokers.share > 0
    weight = problem.weight[problem.order].astype(np.float64)
    ceiling = np.full(len(brokers), weight.sum())
    if not problem.weighted:
        ceiling = np.minimum(ceiling, brokers.cap)
    load_min, load_max = _rack_loads(problem, lists, weight)
    return rack_fill(
        float(load[receives].sum()), brokers.share, np.where(receives, ceiling, 0.0), brokers.rack, load_min, load_max
    )


def _rack_loads(problem: PlanProblem, lists: Ragged, weight: Float64) -> tuple[Float64, Float64]:
    """(racks,) the least and the greatest load on brokers that take part, without a worse spread of any partition.

    ``lists`` are of the rows in scope. A list whose spread lacks ``d`` of the possible has at most ``d`` fewer in a
    rack than its bound; a list with ``s`` replicas more than its spread has at most ``s`` more than the bound. This
    holds for each bound and its column of the spread.
    """
    rules, brokers = problem.rack_rules, problem.brokers
    rule, targets, spread = rules.rule[problem.order], brokers.rack_targets, problem.spread(problem.order, lists)
    closed = lists.keep(brokers.share[lists.values] <= 0)
    room = np.minimum(rules.bounds, targets[:, None])
    possible = np.maximum(rules.possible[problem.order], room.sum(axis=1)[rule])
    lacking = np.clip(possible - spread, 0, rules.bounds.max(initial=0))
    surplus = lists.counts[:, None] - spread
    columns = (rule, lists.counts, closed.counts, *lacking.T, *surplus.T)
    kinds, number = distinct_combinations(columns)
    weights = np.bincount(number, weight, minlength=len(kinds))
    load_min, load_max = np.zeros(len(targets)), np.zeros(len(targets))
    for (kind_rule, count, staying, *deviations), total in zip(kinds.tolist(), weights.tolist(), strict=True):
        least = (room[kind_rule] - deviations[:2]).max(axis=1)
        most = np.minimum((rules.bounds[kind_rule] + deviations[2:]).min(axis=1), targets + staying)
        load_min += np.maximum(least, 0) * total
        load_max += np.minimum(most, count) * total
    retained = np.bincount(brokers.rack[closed.values], weight[closed.owners], minlength=len(targets))
    return np.maximum(load_min - retained, 0.0), np.maximum(load_max - retained, 0.0)


def rack_fill(
    total: float, share: Float64, ceiling: Float64, rack: Int32, load_min: Float64, load_max: Float64
) -> Float64:
    """(b,) loads that add up to ``total``: level by share within each rack, and between racks within their limits."""

    def by_rack(level: float) -> Float64:
        loads = np.bincount(rack, np.minimum(ceiling, level * share), minlength=len(load_min))
        return np.clip(loads, np.minimum(load_min, load_max), load_max)

    loads = by_rack(_level(lambda level: float(by_rack(level).sum()), total, share))
    result = np.zeros(len(share))
    for number in range(len(load_min)):
        inside = rack == number
        result[inside] = water_fill(float(loads[number]), share[inside], ceiling[inside])
    return result


def water_fill(total: float, share: Float64, ceiling: Float64) -> Float64:
    """(b,) loads ``min(ceiling, level * share)`` that add up to ``total``, or to all ceilings if that is less."""
    level = _level(lambda level: float(np.minimum(ceiling, level * share).sum()), total, share)
    return np.minimum(ceiling, level * share)


def _level(load: Callable[[float], float], total: float, share: Float64) -> float:
    """The smallest level whose load reaches the total, by bisection."""
    positive = share[share > 0]
    if not len(positive) or total <= 0:
        return 0.0
    low, high = 0.0, 1.0
    while load(high) < total * (1 - 1e-12) and high < 2.0**80:
        high *= 2
    for _ in range(_STEPS):
        middle = (low + high) / 2
        if load(middle) < total:
            low = middle
        else:
            high = middle
    return high
