"""Choose the replicas that move, and their brokers: first what must move, then what balance requires."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from kframe import kernels
from kframe.model.arrays import Int32
from kframe.plans.generate.bounds import lower_bound
from kframe.plans.generate.caps import fill_within_caps, is_capped
from kframe.plans.generate.cost_moves import balance_by_cost, fill_by_cost
from kframe.plans.generate.cycles import cancel_cycles
from kframe.plans.generate.draft import Draft
from kframe.plans.generate.exchanges import exchange_replicas
from kframe.plans.generate.limits import LoadLimits
from kframe.plans.generate.prices import draft_at_prices
from kframe.plans.generate.problem import PlanProblem
from kframe.plans.generate.racks import demanded_spread
from kframe.plans.generate.relaxation import cheapest_flow
from kframe.plans.generate.transfers import fill, transfer

#: Partitions times brokers up to which several plans are made, of which the cheapest remains.
_CELLS = 1 << 21
#: How far the cost is above the bound where cycles are searched.
_CHEAP_RATIO = 1.0001
_CHEAP_RATIO_WEIGHTS = 1.002


def move_required(problem: PlanProblem, draft: Draft) -> Int32:
    """Move the replicas that must leave their brokers or racks, and add missing ones.

    Return the rows that stay as they are because no broker can take a replica, ascending.
    """
    brokers = problem.brokers
    _replace(problem, draft)
    kernels.vacate_replicas(
        problem.order,
        draft.offsets,
        problem.replication_factor,
        draft.in_sync,
        brokers.leaving,
        *problem.spread_columns,
        demanded_spread(problem, np.arange(len(problem.original), dtype=np.int32)),
        brokers.share,
        problem.weight,
        draft.replica,
        draft.load,
        draft.count,
    )
    if problem.costs is not None:
        fill_by_cost(problem, draft, problem.costs)
    elif is_capped(problem):
        fill_within_caps(problem, draft)
    else:
        fill(problem, draft)
    return draft.restore(problem, draft.incomplete(problem))


def move_for_balance(problem: PlanProblem, draft: Draft, limits: LoadLimits) -> None:
    """Move replicas until the loads are within their limits, or no move brings them closer."""
    if problem.costs is not None:
        balance_by_cost(problem, draft, limits, problem.costs)
        if problem.weighted and not limits.reached(draft.load):
            exchange_replicas(problem, draft, limits)
        return
    transfer(problem, draft, limits)
    if limits.reached(draft.load) and problem.cost(draft.lists()) <= lower_bound(problem, limits) * _CHEAP_RATIO:
        return
    if not problem.weighted:
        cancel_cycles(problem, draft, limits)
        return
    other = draft_at_prices(problem, limits)
    drafts = [draft]
    # Partitions that stay as they are may have another number of replicas in the other draft.
    if other is not None and np.array_equal(other.offsets, draft.offsets):
        transfer(problem, other, limits)
        drafts.append(other)
    if len(problem.order) * len(problem.brokers) > _CELLS:
        drafts = [min(drafts, key=lambda draft: _score(problem, draft, limits))]
    bound = _bound(problem, drafts, limits)
    for candidate in drafts:
        is_cheap = problem.cost(candidate.lists()) <= bound * _CHEAP_RATIO_WEIGHTS
        if not (limits.reached(candidate.load) and is_cheap):
            cancel_cycles(problem, candidate, limits)
            exchange_replicas(problem, candidate, limits)
    draft.copy_from(min(drafts, key=lambda draft: _score(problem, draft, limits)))


def _bound(problem: PlanProblem, drafts: Sequence[Draft], limits: LoadLimits) -> int:
    """The cheapest flow, or the bound of loads where no draft is within the limits."""
    reached = next((draft for draft in drafts if limits.reached(draft.load)), None)
    flow = None if reached is None else cheapest_flow(problem, reached.lists(), limits)
    return lower_bound(problem, limits) if flow is None else flow


def _score(problem: PlanProblem, draft: Draft, limits: LoadLimits) -> tuple[int, int]:
    return int((limits.excess(draft.load) + limits.deficit(draft.load)).sum()), problem.cost(draft.lists())


def _replace(problem: PlanProblem, draft: Draft) -> None:
    """Give each replaced broker's replicas to its replacement, unless a partition has it already or loses a rack."""
    brokers = problem.brokers
    for old_id, new_id in problem.request.replace.items():
        old, new = brokers.index_of(old_id), brokers.index_of(new_id)
        if brokers.share[new] <= 0:
            continue
        lists = draft.lists().take(problem.order)
        rows = problem.order[lists.any(lists.values == old) & ~lists.any(lists.values == new)]
        rows = rows[_keeps_racks(problem, draft, rows, old, new)]
        if problem.costs is not None:
            rows = rows[problem.costs.allowed(rows)[:, new]]
        rows = rows[: max(int(brokers.cap[new] - draft.count[new]), 0)]
        slots = np.flatnonzero(draft.replica == old)
        owner = np.searchsorted(draft.offsets, slots, side="right") - 1
        chosen = np.zeros(len(draft.before), np.bool_)
        chosen[rows] = True
        draft.replica[slots[chosen[owner]]] = new
        draft.recount(problem)


def _keeps_racks(
    problem: PlanProblem, draft: Draft, rows: Int32, old: int, new: int
) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    """Whether each of ``rows`` is spread over racks as well with ``new`` as with ``old``."""
    rack = problem.brokers.rack
    if rack[old] == rack[new]:
        return np.ones(len(rows), np.bool_)
    lists = draft.lists().take(rows)
    others = lists.keep(lists.values != old)
    gain, loss = (
        problem.rack_rules.need(rows, rack[broker], others.count(rack[others.values] == rack[broker]))
        for broker in (new, old)
    )
    return np.asarray(gain >= loss, np.bool_)
