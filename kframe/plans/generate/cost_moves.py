"""Choose brokers by cost terms: first the cheapest placement of replicas that must move, then moves for balance.

No step uses a forbidden placement. A placement costs what copying the replica costs and what the terms add; a broker
that had the replica at the beginning of the round takes it back for nothing.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from kframe.model.arrays import Bool, Int64, UInt8
from kframe.model.placements import FORBIDDEN
from kframe.plans.generate.costs import PlacementCosts
from kframe.plans.generate.draft import Draft
from kframe.plans.generate.exchanges import Exchanges
from kframe.plans.generate.limits import LoadLimits
from kframe.plans.generate.paths import shift_until_reached
from kframe.plans.generate.problem import PlanProblem

_Slots = NDArray[np.int64]


def fill_by_cost(problem: PlanProblem, draft: Draft, costs: PlacementCosts) -> None:
    """Give partitions with too few replicas the cheapest brokers.

    A broker of the rack where it adds most to the spread comes first, then the cheapest, then the emptiest.
    """
    lacking = problem.replication_factor[problem.order] - draft.lists().counts[problem.order]
    for row, count in zip(problem.order[lacking > 0].tolist(), lacking[lacking > 0].tolist(), strict=True):
        start, end = int(draft.offsets[row]), int(draft.offsets[row + 1])
        cost = _round_costs(problem, draft, costs, row)
        for slot in (start + np.flatnonzero(draft.replica[start:end] < 0)[:count]).tolist():
            broker = _cheapest_target(problem, draft, cost, draft.replica[start:end], row)
            if broker >= 0:
                draft.replica[slot] = broker
                draft.load[broker] += problem.weight[row]
                draft.count[broker] += 1


def _round_costs(problem: PlanProblem, draft: Draft, costs: PlacementCosts, row: int) -> Int64:
    """(b,) cost of a replica of the row on each broker in this round."""
    term = costs.table[costs.position[row]]
    cost = np.where(term < FORBIDDEN, term + problem.weight[row], FORBIDDEN)
    cost[draft.before[row]] = 0
    return cost


def _cheapest_target(problem: PlanProblem, draft: Draft, cost: Int64, replicas: NDArray[np.int16], row: int) -> int:
    brokers = problem.brokers
    present = replicas[replicas >= 0]
    valid = (brokers.share > 0) & (draft.count < brokers.cap) & (cost < FORBIDDEN)
    valid[present] = False
    if not valid.any():
        return -1
    others = np.bincount(brokers.rack[present], minlength=len(brokers.rack_targets))
    need = problem.rack_rules.need(row, brokers.rack, others[brokers.rack])
    candidates = np.flatnonzero(valid & (need == need[valid].max()))
    fullness = (draft.load[candidates] + problem.weight[row]) / brokers.share[candidates]
    return int(candidates[np.lexsort((fullness, cost[candidates]))[0]])


def balance_by_cost(problem: PlanProblem, draft: Draft, limits: LoadLimits, costs: PlacementCosts) -> None:
    """Move replicas, the cheapest moves first, until the loads are within their limits or no move brings them closer.

    Then replicas that were copied go to cheaper brokers, as far as the limits allow.
    """
    moves = CostMoves(problem, draft, limits, costs, Exchanges.of(problem, draft, limits))
    for over_only, under_only in ((True, True), (True, False), (False, True)):
        for giver in np.flatnonzero(problem.brokers.share > 0).tolist():
            moves.relieve(giver, over_only=over_only, under_only=under_only)
    if not problem.weighted:
        brokers = problem.brokers
        room = np.where(draft.count < brokers.cap, brokers.cap - draft.count, 0)
        shift_until_reached(moves, limits, draft.load, draft.count, room)
    for giver in np.flatnonzero(problem.brokers.share > 0).tolist():
        moves.cheapen(giver)


@dataclass(frozen=True, slots=True, eq=False)
class CostMoves:
    """Moves of a draft and their costs in this round. ``tables`` are kept up to date; its slots are in scope."""

    problem: PlanProblem
    draft: Draft
    limits: LoadLimits
    costs: PlacementCosts
    tables: Exchanges

    def relieve(self, giver: int, *, over_only: bool, under_only: bool) -> None:
        """Move replicas of a broker to others: only while it is above its limit, or only to brokers below theirs."""
        load, limits = self.draft.load, self.limits
        targets = (load < limits.lower) if under_only else (load < limits.upper)
        if (over_only and load[giver] <= limits.upper[giver]) or not targets.any():
            return
        slots, price = self._prices(giver)
        moved: set[int] = set()
        for cell in np.argsort(price[:, targets], axis=None, kind="stable").tolist():
            index, column = divmod(cell, int(targets.sum()))
            target = int(np.flatnonzero(targets)[column])
            if price[index, target] == FORBIDDEN or (over_only and load[giver] <= limits.upper[giver]):
                return
            slot = int(slots[index])
            full = under_only and load[target] >= limits.lower[target]
            if slot not in moved and not full and self._fits(slot, giver, target):
                self.tables.move(slot, target)
                moved.add(slot)

    def cheapen(self, giver: int) -> None:
        """Move replicas of a broker to brokers on which they cost less."""
        slots, price = self._prices(giver)
        if not len(slots):
            return
        for index in np.flatnonzero(price.min(axis=1) < 0).tolist():
            for target in np.argsort(price[index], kind="stable").tolist():
                if price[index, target] >= 0:
                    break
                if self._fits(int(slots[index]), giver, target):
                    self.tables.move(int(slots[index]), target)
                    break

    def arcs(self) -> NDArray[np.uint8]:
        """As ``TransferNetwork.arcs``: (b, b) 0 where there is no arc, 1 for arcs that cost a move, 2 for free arcs."""
        brokers = self.problem.brokers
        arcs = np.zeros((len(brokers), len(brokers)), np.uint8)
        for giver in np.flatnonzero(brokers.share > 0).tolist():
            slots, price = self._prices(giver)
            movable = price < FORBIDDEN
            free = ~self.tables.original[self.tables.owner[slots], giver]
            arcs[giver] = np.where(movable[free].any(axis=0), 2, movable.any(axis=0))
        return arcs

    def shift(self, path: list[int], free: UInt8, units: int) -> int:
        """As ``TransferNetwork.shift``: shift at most ``units`` along a path, the cheapest first; return how many."""
        for shifted in range(units):
            chosen: list[int] = []
            for giver, target, moved_only in zip(path[:-1], path[1:], free.tolist(), strict=True):
                slots, price = self._prices(giver)
                rows = self.tables.owner[slots]
                valid = (price[:, target] < FORBIDDEN) & ~np.isin(rows, self.tables.owner[chosen])
                if moved_only:
                    valid &= ~self.tables.original[rows, giver]
                if not valid.any():
                    return shifted
                chosen.append(int(slots[np.where(valid, price[:, target], FORBIDDEN).argmin()]))
            for slot, target in zip(chosen, path[1:], strict=True):
                self.tables.move(slot, target, count=False)
        return units

    def _prices(self, giver: int) -> tuple[_Slots, Int64]:
        """The slots of a broker, and (m, b) what each move costs more than leaving the replica; FORBIDDEN if not valid.

        A move is valid if the target receives replicas and has none of the partition, no term forbids it, and the
        spread of the partition over racks is kept.
        """
        problem, tables, rack = self.problem, self.tables, self.problem.brokers.rack
        slots = np.flatnonzero(self.draft.replica == giver)
        slots = slots[problem.scope[tables.owner[slots]]]
        rows = tables.owner[slots]
        weight, term = problem.weight[rows], self.costs.of(rows)
        spread = tables.spread[rows]
        gain = problem.rack_rules.need(rows[:, None], rack, spread[:, rack])
        loss = problem.rack_rules.need(rows, rack[giver], spread[:, rack[giver]] - 1)
        keeps = (rack == rack[giver]) | (gain >= loss[:, None])
        had = tables.original[rows]
        valid: Bool = (problem.brokers.share > 0) & ~tables.present[rows] & keeps & (had | (term < FORBIDDEN))
        paid = np.where(had[:, giver], 0, weight + np.where(term[:, giver] < FORBIDDEN, term[:, giver], 0))
        price = np.where(had, 0, weight[:, None] + term) - paid[:, None]
        return slots, np.where(valid, price, FORBIDDEN)

    def _fits(self, slot: int, giver: int, target: int) -> bool:
        """Whether a move is valid now, and takes no broker from within its limits to beyond them."""
        draft, limits, tables, brokers = self.draft, self.limits, self.tables, self.problem.brokers
        row = int(tables.owner[slot])
        weight = int(self.problem.weight[row])
        racks = brokers.rack[[target, giver]]
        gain, loss = self.problem.rack_rules.need(row, racks, tables.spread[row, racks] - [0, 1])
        return bool(
            draft.replica[slot] == giver
            and (racks[0] == racks[1] or gain >= loss)
            and not tables.present[row, target]
            and draft.count[target] < brokers.cap[target]
            and draft.load[giver] - weight >= limits.lower[giver]
            and draft.load[target] + weight <= limits.upper[target]
        )
