"""Exchange replicas of unequal sizes between two brokers, where single moves leave loads beyond their limits or cost.

For two brokers, one replica of each, or of one of them, changes sides. The difference of their weights is the load
that is transferred. An exchange is made if it brings the loads closer to their limits, or if it leaves them within and
reduces what the plan copies. Moving a replica back has a negative cost. Without exchanges the plan by sizes of a skewed
cluster in ``benchmarks/plans`` (12/10k) costs 0.3 % more than its bound, with them as much.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations
from typing import Final

import numpy as np
from numpy.typing import NDArray

from kframe.model.arrays import Bool, Int64, Ragged
from kframe.plans.generate.draft import Draft
from kframe.plans.generate.limits import LoadLimits
from kframe.plans.generate.problem import PlanProblem

#: Cells of the largest table of partitions by brokers. The cost of a sweep grows with cells and pairs of brokers.
_CELLS: Final = 1 << 21
_SWEEPS: Final = 40
#: Shares of the load to be transferred that an exchange tries to transfer at least.
_SHARES: Final = (1.0, 0.5, 0.1)
_Slots = NDArray[np.int64]


def exchange_replicas(problem: PlanProblem, draft: Draft, limits: LoadLimits) -> None:
    """Exchange replicas until no exchange improves the draft, which is updated."""
    receivers = np.flatnonzero(problem.brokers.share > 0).tolist()
    if len(draft.before) * len(problem.brokers) > _CELLS:
        return
    exchanges = Exchanges.of(problem, draft, limits)
    for _ in range(_SWEEPS):
        if not sum(exchanges.improve(giver, target) for giver, target in combinations(receivers, 2)):
            return


@dataclass(frozen=True, slots=True, eq=False)
class MovableReplicas:
    """Replicas that can move from a broker to another, ascending by weight: ``slot``, ``weight``, and ``sign``, which
    is 1 where the move copies, -1 where it moves a replica back, else 0."""

    slot: _Slots
    weight: Int64
    sign: Int64

    def cheapest(self, weight_min: Int64, weight_max: Int64) -> tuple[_Slots, Int64]:
        """For each range of weights the index of the candidate that costs least, -1 if there is none, and its cost."""
        index, cost = np.full(len(weight_min), -1, np.int64), np.zeros(len(weight_min), np.int64)
        for sign in (1, 0, -1):
            rows = np.flatnonzero(self.sign == sign)
            weights = self.weight[rows]
            first, last = np.searchsorted(weights, weight_min), np.searchsorted(weights, weight_max, side="right") - 1
            chosen = last if sign < 0 else first
            fits = first <= last
            candidate = rows[chosen[fits]]
            price = sign * self.weight[candidate]
            better = (index[fits] < 0) | (price < cost[fits])
            ranges = np.flatnonzero(fits)[better]
            index[ranges], cost[ranges] = candidate[better], price[better]
        return index, cost


@dataclass(frozen=True, slots=True, eq=False)
class Exchanges:
    """The slots of partitions in scope, and tables of brokers and racks by partition."""

    problem: PlanProblem
    draft: Draft
    limits: LoadLimits
    owner: _Slots
    """(s,) the partition of each slot."""
    original: Bool
    """(n, b) whether the broker had a replica before the plan."""
    present: Bool
    """(n, b) whether the broker has a replica."""
    spread: Int64
    """(n, racks) replicas in each rack."""

    @staticmethod
    def of(problem: PlanProblem, draft: Draft, limits: LoadLimits) -> Exchanges:
        """The tables of a draft."""
        brokers, count = problem.brokers, len(draft.before)
        owner = np.repeat(np.arange(count), np.diff(draft.offsets))
        filled = np.flatnonzero(draft.replica >= 0)
        spread = np.zeros((count, len(brokers.rack_targets)), np.int64)
        np.add.at(spread, (owner[filled], brokers.rack[draft.replica[filled]]), 1)
        present = np.zeros((count, len(brokers)), np.bool_)
        present[owner[filled], draft.replica[filled]] = True
        return Exchanges(problem, draft, limits, owner, _table(problem.original, len(brokers)), present, spread)

    def improve(self, giver: int, target: int) -> bool:
        """Make the best exchange of two brokers, if any improves the draft; return whether."""
        load, lower, upper = self.draft.load, self.limits.lower, self.limits.upper
        load_min = int(max(load[giver] - upper[giver], lower[target] - load[target]))
        load_max = int(min(load[giver] - lower[giver], upper[target] - load[target]))
        outbound, inbound = self._candidates(giver, target), self._candidates(target, giver)
        if load_min <= 0 <= load_max and not self.problem.weighted and self._return(giver, target, outbound, inbound):
            return True
        if load_min <= 0 <= load_max and self.problem.costs is not None:
            return False  # It would reduce what is copied, and not what that costs.
        if load_min <= 0 <= load_max:
            return self._exchange(giver, target, outbound, inbound, (load_min, load_max), improves=False)
        load_min, load_max = min(load_min, load_max), max(load_min, load_max)
        ranges = (
            (
                (int(load_min * share) + 1, load_max) if load_min > 0 else (load_min, int(load_max * share) - 1)
                for share in _SHARES
            )
            if load_min > 0 or load_max < 0
            else ()
        )
        return any(self._exchange(giver, target, outbound, inbound, bounds, improves=True) for bounds in ranges)

    def _return(self, giver: int, target: int, outbound: MovableReplicas, inbound: MovableReplicas) -> bool:
        """Exchange replicas of equal weight, of which one or both move back to where they were; return whether any."""
        cheap = [
            np.concatenate([side.slot[side.sign < 0], side.slot[side.sign == 0]]).tolist()
            for side in (outbound, inbound)
        ]
        returned = max(np.count_nonzero(side.sign < 0) for side in (outbound, inbound))
        pairs = list(zip(*(slots[:returned] for slots in cheap), strict=False))
        for slot, other in pairs:
            self.move(slot, target)
            self.move(other, giver)
        return bool(pairs)

    def _exchange(
        self,
        giver: int,
        target: int,
        outbound: MovableReplicas,
        inbound: MovableReplicas,
        bounds: tuple[int, int],
        *,
        improves: bool,
    ) -> bool:
        """Transfer a load within ``bounds`` by the cheapest exchange; without ``improves`` only if it reduces cost."""
        load_min, load_max = bounds
        weight, cost = np.append(outbound.weight, 0), np.append(outbound.sign * outbound.weight, 0)
        index, price = inbound.cheapest(weight - load_max, weight - load_min)
        alone = (load_min <= weight) & (weight <= load_max) & (self._has_room(target) | (weight == 0))
        returned = (index >= 0) & ((weight > 0) | self._has_room(giver))
        total = cost + np.where(returned, np.where(alone, np.minimum(price, 0), price), 0)
        total = np.where(alone | returned, total, np.iinfo(np.int64).max)
        best = int(total.argmin())
        if not (alone[best] or returned[best]) or (not improves and total[best] >= 0):
            return False
        if best < len(outbound.slot):
            self.move(int(outbound.slot[best]), target)
        if returned[best] and (not alone[best] or price[best] < 0):
            self.move(int(inbound.slot[index[best]]), giver)
        return True

    def _has_room(self, broker: int) -> bool:
        return bool(self.draft.count[broker] < self.problem.brokers.cap[broker])

    def _candidates(self, giver: int, target: int) -> MovableReplicas:
        rack = self.problem.brokers.rack
        slots = np.flatnonzero(self.draft.replica == giver)
        rows = self.owner[slots]
        valid = self.problem.scope[rows] & ~self.present[rows, target]
        if rack[giver] != rack[target]:
            need, replicas = self.problem.rack_rules.need, self.spread[rows]
            gain = need(rows, rack[target], replicas[:, rack[target]])
            valid &= gain >= need(rows, rack[giver], replicas[:, rack[giver]] - 1)
        slots, rows = slots[valid], rows[valid]
        if self.problem.costs is not None:
            allowed = self.problem.costs.allowed(rows)[:, target] | self.original[rows, target]
            slots, rows = slots[allowed], rows[allowed]
        weight = self.problem.weight[rows]
        order = np.argsort(weight, kind="stable")
        sign = self.original[rows, giver].astype(np.int64) - self.original[rows, target]
        return MovableReplicas(slots[order], weight[order], sign[order])

    def move(self, slot: int, target: int, *, count: bool = True) -> None:
        """Put ``target`` into a slot. Without ``count`` the loads stay as they are."""
        draft, row, giver = self.draft, int(self.owner[slot]), int(self.draft.replica[slot])
        rack, weight = self.problem.brokers.rack, int(self.problem.weight[row])
        draft.replica[slot] = target
        self.present[row, giver], self.present[row, target] = False, True
        self.spread[row, rack[giver]] -= 1
        self.spread[row, rack[target]] += 1
        for broker, sign in ((giver, -1), (target, 1)) if count else ():
            draft.load[broker] += sign * weight
            draft.count[broker] += sign


def _table(lists: Ragged, brokers: int) -> Bool:
    table = np.zeros((len(lists), brokers), np.bool_)
    table[lists.owners, lists.values] = True
    return table
