"""A lower bound from the flow of load between racks and brokers, in which partitions are divisible.

It is of plans within limits or caps. Beyond the bounds of ``bounds.py`` it respects that racks restrict where load can
go, and what each placement costs; it takes longer. It proves 13 of the 32 plans of ``benchmarks/plans`` up to 100,000
partitions. Without it the bounds of these are up to a third lower.

Partitions with equal rules for racks, and replicas in the same racks, form a class. The load of a class flows to racks,
and from each rack to its brokers. Load that a broker has of this class already costs 0, and copied load costs 1:

=====================  ==========================================  ====
arc                    capacity                                    cost
=====================  ==========================================  ====
class to rack          what ``f`` to ``m`` replicas weigh           0
rack to broker, old    load of the class on the broker             0
rack to broker, new    load of the class that the broker lacks     1+t
broker to sink         limits of the broker                        0
=====================  ==========================================  ====

``t`` is what a unit of this load costs at least by cost terms, rounded down; load that a term forbids is left out.
``f`` and ``m`` follow from the spread ``r`` that a partition must have (a column of it), its replication factor ``w``,
the greatest spread ``p`` and the bound ``b`` of the rack: ``f`` is ``b - (p - r)``, and ``m`` is ``b + w - r``. Of both
columns the stricter limits apply.

Proof that the cheapest flow is a lower bound. A plan that meets the hard rules and the limits is such a flow: add up
the replicas of each class by rack and broker. Of a partition with the spread ``r``, at most ``w - r`` replicas are
beyond the bounds of racks, and racks lack at most ``p - r`` to their bounds. A replica is old only on a broker that had
it, and the plan copies the others. So the cheapest flow costs at most what the plan copies.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from kframe.model.arrays import Int64, Ragged
from kframe.model.lists import distinct_combinations, members
from kframe.plans.generate.bounds import copy_targets
from kframe.plans.generate.cycles import cycles_of
from kframe.plans.generate.limits import LoadLimits
from kframe.plans.generate.problem import PlanProblem
from kframe.plans.generate.racks import required_spread

#: Rounds of cancelled cycles after which the search ends without a bound.
_ROUNDS: Final = 400
#: Racks, and sets of racks, beyond which partitions of all sets are in the same class.
_PATTERN_RACKS: Final = 12
_PATTERNS: Final = 64
_Arcs = NDArray[np.int64]


def cheapest_flow(problem: PlanProblem, after: Ragged, limits: LoadLimits) -> int | None:
    """The cost of the cheapest flow, in the units of a plan's cost.

    ``after`` are the lists of a plan within ``limits``; the search starts from its flow and cancels negative cycles.
    None if the plan breaks a rule of the network, or if the search does not end within its rounds.
    """
    network = _network(problem, after, limits)
    if (network.flow < network.lower).any() or (network.flow > network.upper).any():
        return None
    return network.cheapest()


@dataclass(frozen=True, slots=True, eq=False)
class FlowNetwork:
    """Arcs as columns: ``tail`` and ``head`` nodes, bounds of the flow, its cost by unit, and a flow within bounds."""

    nodes: int
    tail: _Arcs
    head: _Arcs
    lower: Int64
    upper: Int64
    cost: Int64
    flow: Int64

    def cheapest(self) -> int | None:
        """The cost of the cheapest flow with the same supplies. None if the search does not end within its rounds."""
        flow = self.flow.copy()
        arcs = len(flow)
        tail, head = np.concatenate([self.tail, self.head]), np.concatenate([self.head, self.tail])
        cost = np.concatenate([self.cost, -self.cost])
        for _ in range(_ROUNDS):
            room = np.concatenate([self.upper - flow, flow - self.lower])
            usable = np.flatnonzero(room > 0)
            cycles = negative_cycles(self.nodes, tail[usable], head[usable], cost[usable])
            if not cycles:
                return int((flow * self.cost).sum())
            for cycle in cycles:
                chosen = usable[cycle]
                units = int(room[chosen].min())
                np.add.at(flow, chosen % arcs, np.where(chosen < arcs, units, -units))
        return None


def negative_cycles(nodes: int, tail: _Arcs, head: _Arcs, cost: Int64) -> list[_Arcs]:
    """Disjoint cycles of arcs whose cost is negative, by Bellman and Ford; none if there is no such cycle at all."""
    distance, previous = np.zeros(nodes, np.int64), np.full(nodes, -1, np.int64)
    for _ in range(nodes):
        through = distance[tail] + cost
        best = distance.copy()
        np.minimum.at(best, head, through)
        changed = best < distance
        if not changed.any():
            return []
        arcs = np.flatnonzero(changed[head] & (through == best[head]))
        previous[head[arcs]] = arcs
        distance = best
        cycles = _cycles(previous, tail)
        if cycles:
            return cycles
    return _cycles(previous, tail)


def _cycles(previous: _Arcs, tail: _Arcs) -> list[_Arcs]:
    """The cycles of the arcs by which the nodes were reached last; each node is on at most one."""
    parents = np.where(previous >= 0, tail[previous], -1).tolist()
    return [previous[cycle[::-1]] for cycle in cycles_of(parents)]


def _patterns(problem: PlanProblem) -> Int64:
    """(k,) a number for each set of racks in which replicas of a partition stay, with their counts.

    All numbers are 0 where there are too many sets for a network.
    """
    brokers = problem.brokers
    lists = problem.original.take(problem.order)
    staying = np.flatnonzero(brokers.leaving[lists.values] == 0)
    racks = len(brokers.rack_targets)
    if racks > _PATTERN_RACKS:
        return np.zeros(len(lists), np.int64)
    cells = lists.owners[staying] * racks + brokers.rack[lists.values[staying]]
    counts = np.bincount(cells, minlength=len(lists) * racks).reshape(-1, racks)
    patterns, number = np.unique(counts, axis=0, return_inverse=True)
    return number.reshape(-1) if len(patterns) <= _PATTERNS else np.zeros(len(lists), np.int64)


def _network(problem: PlanProblem, after: Ragged, limits: LoadLimits) -> FlowNetwork:
    brokers, scope = problem.brokers, problem.order
    racks, width = len(brokers.rack_targets), len(brokers)
    required, weight = required_spread(problem, scope), problem.weight[scope]
    rules, surplus = problem.rack_rules, problem.replication_factor[scope, None] - required
    missing = np.minimum(rules.possible[scope] - required, rules.bounds.max(initial=0))
    kinds, number = distinct_combinations((rules.rule[scope], *surplus.T, *missing.T, _patterns(problem)))
    classes = len(kinds)
    total = np.bincount(number, weight, minlength=classes).astype(np.int64)

    def by_broker(lists: Ragged, marked: NDArray[np.bool_]) -> Int64:
        cells = (number[lists.owners] * width + lists.values)[marked]
        weights = weight[lists.owners][marked]
        return np.bincount(cells, weights, minlength=classes * width).astype(np.int64)

    before, result = problem.original.take(scope), after.take(scope)
    old = members(result, before)
    present = by_broker(before, brokers.leaving[before.values] == 0)
    retained, copied = by_broker(result, old), by_broker(result, ~old)
    lacking, term = _new_arcs(problem, number, classes, present, total)
    cells = np.arange(classes * width)
    rack_node = classes + (cells // width) * racks + brokers.rack[cells % width]
    broker_node = classes + classes * racks + cells % width
    receives = brokers.share[cells % width] > 0
    sink = classes + classes * racks + width
    pairs = np.arange(classes * racks)
    bounds = rules.bounds[kinds[:, 0]].astype(np.int64)
    most = (bounds + kinds[:, None, 1:3]).min(axis=2).ravel()
    fewest = (np.minimum(bounds, brokers.rack_targets[None, :, None]) - kinds[:, None, 3:5]).max(axis=2).ravel()
    if problem.costs is not None:  # Terms may forbid so many brokers of a rack that it has no room for as many.
        fewest *= bounds[:, :, 1].ravel() == 1
    in_rack = np.bincount(rack_node - classes, retained + copied, minlength=classes * racks).astype(np.int64)
    load = np.bincount(cells % width, retained + copied, minlength=width).astype(np.int64)
    part = brokers.share > 0
    return FlowNetwork(
        sink + 1,
        np.concatenate([pairs // racks, rack_node, rack_node, classes + classes * racks + np.arange(width)]),
        np.concatenate([classes + pairs, broker_node, broker_node, np.full(width, sink)]),
        np.concatenate(
            [
                total[pairs // racks] * np.maximum(fewest, 0),
                np.zeros(2 * len(cells), np.int64),
                np.where(part, limits.lower, 0),
            ]
        ),
        np.concatenate(
            [
                total[pairs // racks] * most,
                present,
                np.where(receives, lacking, 0),
                np.where(part, limits.upper, load),
            ]
        ),
        np.concatenate([np.zeros(len(pairs) + len(cells), np.int64), 1 + term, np.zeros(width, np.int64)]),
        np.concatenate([in_rack, retained, copied, load]),
    )


def _new_arcs(
    problem: PlanProblem, number: NDArray[np.intp], classes: int, present: Int64, total: Int64
) -> tuple[Int64, Int64]:
    """By class and broker: the load that the broker lacks and may get, and the least term of a unit, rounded down."""
    width = len(problem.brokers)
    if problem.costs is None:
        return np.repeat(total, width) - present, np.zeros(classes * width, np.int64)
    scope = problem.order
    weight = problem.weight[scope]
    targets = copy_targets(problem, problem.original.take(scope)) & problem.costs.allowed(scope)
    lacking, term = np.zeros((classes, width), np.int64), np.zeros((classes, width), np.int64)
    np.add.at(lacking, number, targets * weight[:, None])
    for index in range(classes):
        inside = np.flatnonzero(number == index)
        ratios = problem.costs.ratios(scope[inside], weight[inside], targets[inside])
        term[index] = np.where(np.isfinite(ratios), ratios, 0)
    return lacking.ravel(), term.ravel()
