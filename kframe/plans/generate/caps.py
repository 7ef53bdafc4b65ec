"""Keep brokers within their caps, also by moves of partitions that need not move otherwise.

Replicas first fill the emptiest brokers that have room. Where caps leave no broker for a replica, or none in a rack
that the partition must span, these partitions receive brokers regardless of caps. Then replicas are transferred around
cycles of brokers, as in a rebalance whose upper limits are the caps. If no plan within the caps spans the required
racks, replicas go to other racks, and at last partitions stay as they are.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

import numpy as np

from kframe.model.arrays import Int32
from kframe.model.lists import members, same_lists
from kframe.plans.check.rack_rules import RackRules
from kframe.plans.generate.cycles import cancel_cycles
from kframe.plans.generate.draft import Draft
from kframe.plans.generate.limits import LoadLimits
from kframe.plans.generate.problem import UNLIMITED, PlanProblem
from kframe.plans.generate.racks import missing_racks
from kframe.plans.generate.transfers import fill, transfer

#: Slots of the partitions times rows that are tried one after the other.
_SLOTS: Final = 1 << 18


def is_capped(problem: PlanProblem) -> bool:
    """Whether a broker that receives replicas has a cap."""
    brokers = problem.brokers
    return bool((brokers.cap[brokers.share > 0] < UNLIMITED).any())


def cap_limits(problem: PlanProblem) -> LoadLimits:
    """Limits of replicas in scope: what the cap leaves beside other replicas, or as many as the broker has before.

    A broker that receives nothing has no limits.
    """
    brokers, lists = problem.brokers, problem.original
    before = np.bincount(lists.values, minlength=len(brokers))
    inside = np.bincount(lists.take(problem.order).values, minlength=len(brokers))
    slots = int(problem.replication_factor[problem.order].sum())
    upper = np.minimum(np.maximum(brokers.cap, before) - (before - inside), slots)
    return LoadLimits(np.zeros_like(upper), np.where(brokers.share > 0, upper, UNLIMITED))


def fill_within_caps(problem: PlanProblem, draft: Draft) -> None:
    """Give partitions with too few replicas brokers within their caps; the draft is updated.

    Partitions that cannot have all replicas lack some afterwards.
    """
    vacant = draft.copy()
    fill(problem, draft)
    _restore_useless(problem, draft)
    if not len(rows := _lacking(problem, draft)):
        return
    _improve(problem, draft, vacant, rows)
    # Rows that still lack something are tried one after the other, the fewer the larger the problem is.
    for row in _lacking(problem, draft)[: _SLOTS // len(draft.replica)].tolist():
        _improve(problem, draft, vacant, np.array([row], np.int32))


def _improve(problem: PlanProblem, draft: Draft, vacant: Draft, rows: Int32) -> None:
    """Give rows brokers regardless of caps, and transfer replicas within them; the draft is updated if that is better.

    Rows that lack replicas have their lists of before meanwhile.
    """
    candidate = _relieved(problem, _overfilled(problem, draft, vacant, rows), vacant)
    if candidate is not None and _rating(problem, candidate) < _rating(problem, draft):
        draft.copy_from(candidate)
        draft.recount(problem)


def _lacking(problem: PlanProblem, draft: Draft) -> Int32:
    """The rows in scope that lack replicas or the required spread over racks, ascending."""
    spread = problem.order[missing_racks(problem, problem.order, draft.lists()) > 0]
    rows: Int32 = np.union1d(draft.incomplete(problem), spread).astype(np.int32)
    return rows


def _restore_useless(problem: PlanProblem, draft: Draft) -> None:
    """Restore the lists of partitions that were changed for their racks and are not nearer to them."""
    lists, before = draft.lists(), problem.original
    if not problem.request.fix_racks and problem.one_rack is None:
        return
    optional = (before.counts == problem.replication_factor) & ~before.any(problem.brokers.leaving[before.values] != 0)
    rows = np.flatnonzero(problem.scope & optional & ~same_lists(before, lists)).astype(np.int32)
    gain = problem.spread(rows, lists.take(rows)) - problem.spread(rows, before.take(rows))
    useless = rows[(gain <= 0).all(axis=1)]
    candidate = draft.copy()
    candidate.restore(problem, useless)
    most = np.maximum(problem.brokers.cap, np.bincount(before.values, minlength=len(problem.brokers)))
    if (candidate.count <= most).all():
        draft.copy_from(candidate)


def _rating(problem: PlanProblem, draft: Draft) -> tuple[int, int, int]:
    """Incomplete partitions, replicas of the others in wrong racks, and copies: of two drafts the lesser is better."""
    incomplete, lists = draft.incomplete(problem), draft.lists()
    missing = missing_racks(problem, problem.without(incomplete).order, lists)
    return len(incomplete), int(missing.sum()), int(np.count_nonzero(~members(lists, problem.original)))


def _overfilled(problem: PlanProblem, draft: Draft, vacant: Draft, rows: Int32) -> Draft:
    """The draft, where the rows get brokers regardless of caps."""
    result = draft.copy()
    result.vacate(vacant, rows)
    result.recount(problem)
    uncapped = replace(problem.brokers, cap=np.full(len(problem.brokers), UNLIMITED))
    fill(replace(problem, brokers=uncapped, order=problem.order[np.isin(problem.order, rows)]), result)
    result.recount(problem)
    return result


def _relieved(problem: PlanProblem, draft: Draft, vacant: Draft) -> Draft | None:
    """The draft with replicas transferred until no broker is above its cap; None if that fails."""
    impossible = draft.incomplete(problem)
    draft.restore(problem, impossible)
    counting = problem.counting.without(impossible)
    draft.recount(counting)
    limits = cap_limits(counting)
    for rules in (counting, _without_racks(counting)):
        transfer(rules, draft, limits)
        cancel_cycles(rules, draft, limits)
        if limits.reached(draft.load):
            break
    else:
        staying = _restored(counting, draft, limits)
        if staying is None:
            return None
        cancel_cycles(counting.without(staying), draft, limits)
        impossible = np.union1d(impossible, staying)
    draft.vacate(vacant, impossible)
    return draft


def _without_racks(problem: PlanProblem) -> PlanProblem:
    """The problem without rack rules."""
    rules = RackRules.none(len(problem.original), len(problem.brokers.rack_targets))
    return replace(problem, rack_rules=rules)


def _restored(problem: PlanProblem, draft: Draft, limits: LoadLimits) -> Int32 | None:
    """Give partitions their replicas back until no broker is above its limit; return their rows.

    None if that is not enough.
    """
    lists, before = draft.lists(), draft.before
    added = lists.keep(~members(lists, before))
    removed = before.keep(~members(before, lists))
    changed = np.flatnonzero(problem.scope & ~same_lists(before, lists))
    receives = problem.brokers.share > 0
    staying: list[int] = []
    for row in changed[np.argsort(-added.counts[changed], kind="stable")].tolist():
        excess = limits.excess(draft.load)
        if not excess.any():
            break
        load = draft.load.copy()
        load[added[row]] -= 1
        load[removed[row]] += 1
        if not excess[added[row]].any() or (receives & (load > np.maximum(limits.upper, draft.load))).any():
            continue
        staying.append(row)
        draft.restore_slots(row)
        draft.load[:] = load
    rows = np.array(sorted(staying), np.int32)
    draft.recount(problem)
    return rows if limits.reached(draft.load) else None
