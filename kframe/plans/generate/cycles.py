"""Transfer replicas around cycles of brokers until loads are within their limits, and no cycle reduces what is copied.

The brokers are the nodes of a network. An arc from a to b means that a can give replicas to b. It costs 1 for each unit
of weight if the replicas are copied, -1 if the plan has copied them from b, else 0. A further node stands for the room
within the limits: it gives to brokers that may lose load, and takes from brokers that may gain load. The arcs of
brokers beyond their limits have a cost so low that every cycle through them is negative.

A transfer around a cycle changes no load but those next to the further node. Without weights a plan is cheapest if
there is no negative cycle: M. Klein, *A primal method for minimal cost flows*, 1967. With weights the replicas that are
transferred between two brokers weigh only nearly as much as those between the next two. They save 0.3 % of the copies
of a skewed cluster in ``benchmarks/plans`` (100/100k) that is too large for ``exchanges.py``.
"""

from __future__ import annotations

from functools import cached_property
from itertools import pairwise
from typing import Final

import numpy as np

from kframe import kernels
from kframe.model.arrays import Float64, Int16, Int32, Int64, UInt8
from kframe.plans.generate.draft import Draft
from kframe.plans.generate.limits import LoadLimits
from kframe.plans.generate.problem import PlanProblem
from kframe.plans.generate.slots import SlotIndex

#: How often the arcs are determined anew at most.
_ROUNDS: Final = 30
_ROUNDS_OF_WEIGHTS: Final = 3
#: A rate is a cost plus 1; this one stands for no arc.
_CLOSED: Final = 3
#: Cost of arcs that do not exist.
_INFINITE: Final = 1 << 40
_UNLIMITED: Final = 1 << 62
#: A transfer of weights must save this share of the load of a broker, or more.
_GAIN_MIN: Final = 1e-6
#: The deviation in load that a transfer of weights may cause, as a share of the load.
_DEVIATION: Final = 1e-4

_Arc = tuple[int, int]


def cancel_cycles(problem: PlanProblem, draft: Draft, limits: LoadLimits) -> None:
    """Transfer until the loads are within the limits and no negative cycle is left; the draft is updated."""
    rounds = _ROUNDS_OF_WEIGHTS if problem.weighted else _ROUNDS
    for _ in range(rounds):
        network = CycleNetwork(problem, draft, limits)
        if not network.cancel():
            break


class CycleNetwork:
    """The arcs between brokers at the start of a round, and the slots from which replicas can take them.

    ``rates`` (b, b) is the least cost of a transfer from the row's broker to the column's, plus 1. It rises when no
    transfer of its cost is left.
    """

    def __init__(self, problem: PlanProblem, draft: Draft, limits: LoadLimits) -> None:
        self.problem, self.draft, self.limits = problem, draft, limits
        brokers, lists = problem.brokers, problem.original
        width, counts = len(brokers), np.diff(draft.offsets)
        self._original: Int16 = lists.values.astype(np.int16)
        self._owner = np.repeat(np.arange(len(counts), dtype=np.int32), counts)
        #: Partitions that the current transfer uses.
        self._used = np.zeros(len(counts), np.uint8)
        #: Brokers that cannot give to the further node, and brokers that cannot take from it.
        self._closed = np.zeros((2, width), np.bool_)
        #: The deviation in load that a transfer may cause.
        self._margin = int(limits.upper.max() * _DEVIATION) if problem.weighted else 0
        self.rates: UInt8 = np.full((width, width), _CLOSED, np.uint8)
        kernels.rate_transfers(
            np.sort(problem.order),
            draft.offsets,
            draft.replica,
            lists.offsets,
            self._original,
            *problem.spread_columns,
            brokers.share,
            open_targets(brokers.rack, brokers.share),
            self.rates,
        )

    @cached_property
    def _candidates(self) -> SlotIndex:
        return SlotIndex.of(self.problem, self.draft)

    def cancel(self) -> int:
        """Transfer around negative cycles until there is none; return how many transfers changed the draft."""
        transfers = 0
        while cycles := negative_cycles(self._costs()):
            transfers += sum(self._transfer(cycle) for cycle in cycles)
        return transfers

    def _costs(self) -> Int64:
        """(b + 1, b + 1) the cost of each arc; the last row and column are those of the further node."""
        load, lower, upper = self.draft.load, self.limits.lower, self.limits.upper
        width = len(load)
        costs = np.full((width + 1, width + 1), _INFINITE, np.int64)
        costs[:-1, :-1] = np.where(self.rates < _CLOSED, self.rates.astype(np.int64) - 1, _INFINITE)
        give, take = ((self.problem.brokers.share > 0) & ~closed for closed in self._closed)
        beyond = -4 * width
        costs[-1, :-1][give & (load - self._margin > lower)] = 0
        costs[-1, :-1][give & (load > upper)] = beyond
        costs[:-1, -1][take & (load + self._margin < upper)] = 0
        costs[:-1, -1][take & (load < lower)] = beyond
        return costs

    def _transfer(self, cycle: list[int]) -> bool:
        """Transfer as much as possible around a cycle; return whether anything. If not, close what prevents it."""
        width = len(self.rates)
        start = cycle.index(width) if width in cycle else 0
        cycle = cycle[start:] + cycle[: start + 1]
        arcs = [(giver, target) for giver, target in pairwise(cycle) if width not in (giver, target)]
        ends = (_UNLIMITED, _UNLIMITED)
        if width in cycle:
            ends = self.limits.transferable(self.draft.load, arcs[0][0], arcs[-1][1])
        if not self.problem.weighted and (transferred := self._transfer_equal(arcs, min(ends))) is not None:
            return transferred
        amount_max, sizes, narrowest = min(ends), [], None
        for arc in arcs:
            sizes.append(self._sizes(self._collect(arc, _UNLIMITED if self._margin else amount_max)))
            if (amount := int(sizes[-1].sum())) < amount_max:
                amount_max, narrowest = amount, arc
        smallest = [int(size.min(initial=_UNLIMITED)) for size in sizes]
        coarsest = smallest.index(max(smallest))
        if smallest[coarsest] <= amount_max:
            rotation = 0 if width in cycle else coarsest
            if self._apply(*self._choose(arcs[rotation:] + arcs[:rotation], coarsest - rotation, amount_max, ends)):
                if narrowest is not None:
                    self.rates[narrowest] += 1
                return True
        capacity = [int(size.sum()) for size in sizes]
        if min(ends) < min(capacity):
            self._closed[(0, arcs[0][0]) if ends[0] < ends[1] else (1, arcs[-1][1])] = True
        else:
            self.rates[arcs[coarsest if smallest[coarsest] > amount_max else capacity.index(min(capacity))]] += 1
        return False

    def _transfer_equal(self, arcs: list[_Arc], count_max: int) -> bool | None:
        """Transfer replicas of equal weight, at most as many as the arc with the fewest has beside those before it.

        Return whether any were transferred; None if the arcs need the same partition. An arc without any is closed.
        """
        chosen: list[Int32] = []
        narrowest = None
        for arc in arcs:
            chosen.append(self._collect(arc, count_max))
            if len(chosen[-1]) < count_max:
                count_max, narrowest = len(chosen[-1]), arc
            self._used[self._owner[chosen[-1]]] = 1
            if not count_max:
                break
        for slots in chosen:
            self._used[self._owner[slots]] = 0
        if count_max and self._apply(arcs, [slots[:count_max] for slots in chosen]):
            if narrowest is not None:
                self.rates[narrowest] += 1
            return True
        if narrowest is None or count_max or len(self._collect(narrowest, 1)):
            return None
        self.rates[narrowest] += 1
        return False

    def _collect(self, arc: _Arc, amount_max: int) -> Int32:
        """Slots whose replicas can take the arc, with a weight of ``most`` together."""
        problem, draft, rate = self.problem, self.draft, int(self.rates[arc])
        slots = self._candidates.of_arc(arc, rate)
        chosen = np.empty(min(len(slots), amount_max), np.int32)
        count = kernels.collect_transfers(
            slots,
            self._owner,
            draft.offsets,
            draft.replica,
            problem.original.offsets,
            self._original,
            *problem.spread_columns,
            problem.weight,
            self._used,
            *arc,
            rate,
            amount_max,
            chosen,
        )
        return slots[chosen[:count]]

    def _sizes(self, slots: Int32) -> Int64:
        return self.problem.weight[self._owner[slots]]

    def _choose(
        self, arcs: list[_Arc], first: int, amount_max: int, ends: tuple[int, int]
    ) -> tuple[list[_Arc], list[Int32]]:
        """The arcs, and slots for each, of different partitions and nearly equal weights. The arc ``first`` chooses
        first, ``most`` together, then those after it and those before it."""
        chosen: dict[int, Int32] = {}
        amounts = [amount_max] * len(arcs)
        for index in [*range(first, len(arcs)), *range(first - 1, -1, -1)]:
            giver, target = arcs[index]
            if index > first:
                amounts[index] = amounts[index - 1] + self._deviation(giver, 1)
            elif index < first:
                amounts[index] = amounts[index + 1] + self._deviation(target, -1)
            limit = min(ends[0] if index == 0 else _UNLIMITED, ends[1] if index == len(arcs) - 1 else _UNLIMITED)
            chosen[index] = self._collect(arcs[index], min(amounts[index], limit))
            amounts[index] = int(self._sizes(chosen[index]).sum())
            self._used[self._owner[chosen[index]]] = 1
        fewest = _UNLIMITED if self._margin else min(map(len, chosen.values()))
        for slots in chosen.values():
            self._used[self._owner[slots]] = 0
        return arcs, [chosen[index][:fewest] for index in range(len(arcs))]

    def _deviation(self, broker: int, side: int) -> int:
        """What a broker near its upper limit may lose, or for the side -1 a broker near its lower limit may gain."""
        gain = int(self.limits.upper[broker] - self.draft.load[broker])
        loss = int(self.draft.load[broker] - self.limits.lower[broker])
        return max(min(self._margin, loss if side > 0 else gain), 0) if (gain < loss) == (side > 0) else 0

    def _apply(self, arcs: list[_Arc], chosen: list[Int32]) -> bool:
        """Move the chosen replicas if that brings loads nearer to their limits, or saves copies; return whether."""
        draft, cap = self.draft, self.problem.brokers.cap
        load, count = draft.load.copy(), draft.count.copy()
        saved = 0
        for (giver, target), slots in zip(arcs, chosen, strict=True):
            amount = int(self._sizes(slots).sum())
            for broker, sign in ((giver, -1), (target, 1)):
                load[broker] += sign * amount
                count[broker] += sign * len(slots)
            saved += (1 - int(self.rates[giver, target])) * amount
        before, after = (self.limits.excess(loads) + self.limits.deficit(loads) for loads in (draft.load, load))
        reduction = int((before - after).sum())
        gain_min = int(self.limits.upper.max() * _GAIN_MIN) if self._margin else 0
        full = (count > draft.count) & (count > cap)
        if (after > before).any() or full.any() or not (reduction > gain_min or (reduction == 0 and saved > gain_min)):
            return False
        for (_, target), slots in zip(arcs, chosen, strict=True):
            draft.replica[slots] = target
        draft.load[:], draft.count[:] = load, count
        return True


def open_targets(rack: Int32, share: Float64) -> Int32:
    """(b, 4) ``dearer`` of ``rate_transfers`` before the first rate: for each giver the targets in its rack, twice, and
    those in other racks, twice."""
    targets = np.where(np.eye(len(share), dtype=np.bool_), False, share > 0)
    inside = rack[:, None] == rack
    counts = [np.count_nonzero(targets & where, axis=1) for where in (inside, inside, ~inside, ~inside)]
    return np.ascontiguousarray(np.stack(counts, axis=1), np.int32)


def negative_cycles(costs: Int64) -> list[list[int]]:
    """Disjoint cycles of nodes with a negative cost, the first that Bellman and Ford's method meets, if there is any.

    ``costs`` (m, m) has the cost of each arc from the row's node to the column's.
    """
    nodes = np.arange(len(costs))
    distance, previous = np.zeros(len(costs), np.int64), np.full(len(costs), -1, np.int64)
    for _ in range(len(costs) + 1):
        through = distance[:, None] + costs
        parent = through.argmin(axis=0)
        best = through[parent, nodes]
        nearer = best < distance
        if not nearer.any():
            return []
        previous[nearer], distance[nearer] = parent[nearer], best[nearer]
        if cycles := cycles_of(previous.tolist()):
            return cycles
    return []


def cycles_of(previous: list[int]) -> list[list[int]]:
    """The nodes of each cycle along the arcs; each node is on at most one.

    ``previous`` has the node from which each node was reached last, -1 for none.
    """
    seen = [0] * len(previous)
    cycles = []
    for start in range(len(previous)):
        node = start
        while node >= 0 and not seen[node]:
            seen[node] = start + 1
            node = previous[node]
        if node >= 0 and seen[node] == start + 1:
            cycle = [node]
            while previous[cycle[-1]] != node:
                cycle.append(previous[cycle[-1]])
            cycles.append(cycle[::-1])
    return cycles
