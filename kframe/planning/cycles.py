"""Transfer replicas around cycles of brokers until loads are within their limits, and no cycle reduces what is copied.

The brokers are the nodes of a network. An arc from a to b means that a can give replicas to b. It costs 1 for each unit
of weight if the replicas are copied, -1 if the plan has copied them from b, else 0. A further node stands for the room
within the limits: it gives to brokers that may lose load, and takes from brokers that may gain load. The arcs of
brokers beyond their limits have a cost so low that every cycle through them is negative.

A transfer around a cycle changes no load but those next to the further node. Without weights a plan is cheapest if
there is no negative cycle: M. Klein, *A primal method for minimal cost flows*, 1967. With weights the replicas that are
transferred between two brokers weigh only nearly as much as those between the next two.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Final

import numpy as np

from kframe import kernels
from kframe.model.columns import Int16, Int32, Int64, UInt8, ragged_positions
from kframe.model.lists import same_lists
from kframe.planning.draft import Draft
from kframe.planning.limits import LoadLimits
from kframe.planning.problem import PlanProblem

#: How often the arcs are determined anew at most.
_ROUNDS: Final = 30
#: A rate is a cost plus 1; this one stands for no arc.
_CLOSED: Final = 3
#: Cost of arcs that do not exist.
_INFINITE: Final = 1 << 40
_UNLIMITED: Final = 1 << 62
#: A transfer of weights must save this share of the load of a broker, or more.
_LEAST_GAIN: Final = 1e-6
#: The deviation in load that a transfer of weights may cause, as a share of the load.
_DEVIATION: Final = 1e-4

_Arc = tuple[int, int]


def cancel_cycles(problem: PlanProblem, draft: Draft, limits: LoadLimits) -> Int64:
    """Transfer until the loads are within the limits and no negative cycle is left; the draft is updated.

    Return prices of the brokers (b,), for ``priced_bound``.
    """
    for _ in range(_ROUNDS):
        network = BrokerNetwork.of(problem, draft, limits)
        if not network.cancel():
            break
    return network.prices()


@dataclass(frozen=True, slots=True, eq=False)
class BrokerNetwork:
    """The arcs between brokers, and the slots of each broker from which replicas can leave."""

    problem: PlanProblem
    draft: Draft
    limits: LoadLimits
    original: Int16
    rates: UInt8
    """(b, b) giver, target: least cost of a transfer plus 1. It rises when no transfer of its cost is left."""
    closed: UInt8
    """(2, b) 1 for brokers that can give no more to the further node, and for those that can take no more from it."""
    owner: Int32
    """(s,) the partition of each slot."""
    slots: Int32
    """The slots by broker, first those of changed partitions, in the order of the problem."""
    first: Int64
    """(2 * b + 1,) where the slots of each broker begin, and after them those of unchanged partitions. Only changed
    partitions have transfers that copy nothing."""
    cursor: Int64
    """(b, b) index in ``slots`` before which no slot is left for an arc, without weights."""
    used: UInt8
    """(n,) partitions that the current transfer uses."""
    margin: int
    """The deviation in load that a transfer may cause; 0 without weights."""

    @staticmethod
    def of(problem: PlanProblem, draft: Draft, limits: LoadLimits) -> BrokerNetwork:
        """The network of a draft."""
        brokers, lists = problem.brokers, problem.original
        width = len(brokers)
        original = lists.values.astype(np.int16)
        targets = np.count_nonzero(brokers.share > 0) - (brokers.share > 0).astype(np.int32)
        rates = np.full((width, width), _CLOSED, np.uint8)
        kernels.rate_transfers(
            problem.order, draft.offsets, draft.replica, lists.offsets, original, brokers.rack, brokers.share,
            np.ascontiguousarray(np.stack([targets, targets], axis=1), np.int32), rates,
        )  # fmt: skip
        counts = np.diff(draft.offsets)
        owner = np.repeat(np.arange(len(counts), dtype=np.int32), counts)
        changed = ~same_lists(lists, draft.lists())
        slots = ragged_positions(draft.offsets[problem.order], counts[problem.order])
        unchanged_last = 2 * draft.replica[slots].astype(np.int32) + 1 - changed[owner[slots]]
        order = np.argsort(unchanged_last.astype(np.int16), kind="stable")
        slots, unchanged_last = slots[order].astype(np.int32), unchanged_last[order]
        first = np.searchsorted(unchanged_last, np.arange(2 * width + 1)).astype(np.int64)
        margin = 0 if problem.request.weights is None else int(limits.upper.max() * _DEVIATION)
        return BrokerNetwork(
            problem, draft, limits, original, rates, np.zeros((2, width), np.uint8), owner, slots, first,
            np.repeat(first[:-1:2, None], width, axis=1), np.zeros(len(counts), np.uint8), margin,
        )  # fmt: skip

    def cancel(self) -> int:
        """Transfer around negative cycles until there is none; return how many transfers changed the draft."""
        transfers = 0
        while cycles := negative_cycles(self._costs()):
            transfers += sum(self._transfer(cycle) for cycle in cycles)
        return transfers

    def prices(self) -> Int64:
        """(b,) prices at which no arc saves anything, if there is no negative cycle."""
        costs = self._costs()
        distance = np.zeros(len(costs), np.int64)
        for _ in range(len(costs)):
            distance = np.minimum(distance, (distance[:, None] + costs).min(axis=0))
        return distance[-1] - distance[:-1]

    def _costs(self) -> Int64:
        """(b + 1, b + 1) the cost of each arc; the last row and column are those of the further node."""
        load, lower, upper = self.draft.load, self.limits.lower, self.limits.upper
        width = len(load)
        costs = np.full((width + 1, width + 1), _INFINITE, np.int64)
        costs[:-1, :-1] = np.where(self.rates < _CLOSED, self.rates.astype(np.int64) - 1, _INFINITE)
        give, take = ((self.problem.brokers.share > 0) & (closed == 0) for closed in self.closed)
        beyond = -4 * width
        costs[-1, :-1][give & (load - self.margin > lower)] = 0
        costs[-1, :-1][give & (load > upper)] = beyond
        costs[:-1, -1][take & (load + self.margin < upper)] = 0
        costs[:-1, -1][take & (load < lower)] = beyond
        return costs

    def _transfer(self, cycle: list[int]) -> bool:
        """Transfer as much as possible around a cycle; return whether anything. If not, close what prevents it."""
        width = len(self.rates)
        start = cycle.index(width) if width in cycle else 0
        cycle = cycle[start:] + cycle[: start + 1]
        arcs = [(giver, target) for giver, target in pairwise(cycle) if width not in (giver, target)]
        ends = self._room(arcs[0][0], arcs[-1][1]) if width in cycle else (_UNLIMITED, _UNLIMITED)
        most, sizes, narrow = min(ends), [], None
        for arc in arcs:
            sizes.append(self._sizes(self._collect(arc, _UNLIMITED if self.margin else most)))
            if (amount := int(sizes[-1].sum())) < most:
                most, narrow = amount, arc
        smallest = [int(size.min(initial=_UNLIMITED)) for size in sizes]
        coarsest = smallest.index(max(smallest))
        if smallest[coarsest] <= most:
            turn = 0 if width in cycle else coarsest
            if self._apply(*self._choose(arcs[turn:] + arcs[:turn], coarsest - turn, most, ends)):
                if narrow is not None:
                    self._raise_rate(narrow)
                return True
        capacity = [int(size.sum()) for size in sizes]
        if min(ends) < min(capacity):
            self.closed[(0, arcs[0][0]) if ends[0] < ends[1] else (1, arcs[-1][1])] = 1
        else:
            self._raise_rate(arcs[coarsest if smallest[coarsest] > most else capacity.index(min(capacity))])
        return False

    def _room(self, giver: int, target: int) -> tuple[int, int]:
        """What the first broker may give, and the last may take, to reach their limits or else to stay within."""
        load, lower, upper = self.draft.load, self.limits.lower, self.limits.upper
        give = int(load[giver] - upper[giver]) if load[giver] > upper[giver] else int(load[giver] - lower[giver])
        take = int(lower[target] - load[target]) if load[target] < lower[target] else int(upper[target] - load[target])
        return give, take

    def _collect(self, arc: _Arc, most: int) -> Int32:
        """Indexes of slots whose replicas can take the arc, with a weight of ``most`` together."""
        giver, target = arc
        end = self.first[2 * giver + (2 if self.rates[arc] == _CLOSED - 1 else 1)]
        slots = self.slots[self.cursor[arc] : end]
        chosen = np.empty(min(len(slots), most), np.int32)
        problem, draft = self.problem, self.draft
        count = kernels.collect_transfers(
            slots, self.owner, draft.offsets, draft.replica, problem.original.offsets, self.original,
            problem.brokers.rack, problem.weight, self.used, giver, target, int(self.rates[arc]), most, chosen,
        )  # fmt: skip
        return chosen[:count] + self.cursor[arc]

    def _sizes(self, indexes: Int32) -> Int64:
        return self.problem.weight[self._rows(indexes)]

    def _rows(self, indexes: Int32) -> Int32:
        return self.owner[self.slots[indexes]]

    def _raise_rate(self, arc: _Arc) -> None:
        self.rates[arc] += 1
        self.cursor[arc] = self.first[2 * arc[0]]

    def _choose(
        self, arcs: list[_Arc], first: int, most: int, ends: tuple[int, int]
    ) -> tuple[list[_Arc], list[Int32]]:
        """The arcs, and slots for each, of different partitions and nearly equal weights. The arc ``first`` chooses
        first, ``most`` together, then those after it and those before it."""
        chosen: dict[int, Int32] = {}
        amounts = [most] * len(arcs)
        for index in [*range(first, len(arcs)), *range(first - 1, -1, -1)]:
            giver, target = arcs[index]
            if index > first:
                amounts[index] = amounts[index - 1] + self._deviation(giver, 1)
            elif index < first:
                amounts[index] = amounts[index + 1] + self._deviation(target, -1)
            limit = min(ends[0] if index == 0 else _UNLIMITED, ends[1] if index == len(arcs) - 1 else _UNLIMITED)
            chosen[index] = self._collect(arcs[index], min(amounts[index], limit))
            amounts[index] = int(self._sizes(chosen[index]).sum())
            self.used[self._rows(chosen[index])] = 1
        fewest = _UNLIMITED if self.margin else min(map(len, chosen.values()))
        for indexes in chosen.values():
            self.used[self._rows(indexes)] = 0
        return arcs, [chosen[index][:fewest] for index in range(len(arcs))]

    def _deviation(self, broker: int, side: int) -> int:
        """What a broker near its upper limit may lose, or for the side -1 a broker near its lower limit may gain."""
        gain = int(self.limits.upper[broker] - self.draft.load[broker])
        loss = int(self.draft.load[broker] - self.limits.lower[broker])
        return max(min(self.margin, loss if side > 0 else gain), 0) if (gain < loss) == (side > 0) else 0

    def _apply(self, arcs: list[_Arc], chosen: list[Int32]) -> bool:
        """Move the chosen replicas if that brings loads nearer to their limits, or saves copies; return whether."""
        draft, cap = self.draft, self.problem.brokers.cap
        load, count = draft.load.copy(), draft.count.copy()
        saved = 0
        for (giver, target), indexes in zip(arcs, chosen, strict=True):
            amount = int(self._sizes(indexes).sum())
            for broker, sign in ((giver, -1), (target, 1)):
                load[broker] += sign * amount
                count[broker] += sign * len(indexes)
            saved += (1 - int(self.rates[giver, target])) * amount
        before, after = (self.limits.excess(loads) + self.limits.deficit(loads) for loads in (draft.load, load))
        nearer = int((before - after).sum())
        least = int(self.limits.upper.max() * _LEAST_GAIN) if self.margin else 0
        full = (count > draft.count) & (count > cap)
        if (after > before).any() or full.any() or not (nearer > least or (nearer == 0 and saved > least)):
            return False
        for arc, indexes in zip(arcs, chosen, strict=True):
            draft.replica[self.slots[indexes]] = arc[1]
            if not self.margin:
                self.cursor[arc] = indexes[-1] + 1
        draft.load[:], draft.count[:] = load, count
        return True


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
        if cycles := _cycles(previous.tolist()):
            return cycles
    return []


def _cycles(previous: list[int]) -> list[list[int]]:
    """The cycles of the arcs by which the nodes were reached last, along the arcs; each node is on at most one."""
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
