"""Balance preferred leaders by the order of replicas, which moves no data."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from kframe import kernels
from kframe.model.arrays import Bool, Int32, Int64, ragged_positions
from kframe.model.ids import NO_LEADER
from kframe.model.lists import members
from kframe.plans.generate.draft import Draft
from kframe.plans.generate.limits import LoadLimits, leader_limits
from kframe.plans.generate.paths import LeaderNetwork, shift_until_reached
from kframe.plans.generate.problem import PlanProblem

_STAGES = ((True, True), (True, False), (False, True))


def balance_leaders(problem: PlanProblem, draft: Draft) -> None:
    """Reorder replicas until each broker is preferred leader of its share of partitions.

    A plan that balances, or that changes leaders only, may reorder all partitions in scope. Any other plan reorders
    only partitions whose preferred leader leaves, unless a replacement takes its position. The leaders that a selector
    elects become the preferred ones, whatever brokers then lead.
    """
    if problem.elected is not None:
        _lead(draft, np.where(problem.scope, problem.elected, NO_LEADER))
        return
    if not problem.request.orders_only:
        _balance(problem, draft)
        return
    hidden = _demote(problem, draft)
    shown = replace(draft, replica=np.where(hidden, -1, draft.replica).astype(np.int16)).without_vacancies()
    _balance(problem, shown)
    draft.replica[~hidden] = shown.replica


def _lead(draft: Draft, elected: Int32) -> None:
    """Put the elected broker of each partition first, if there is one; the others keep their order."""
    lists = draft.lists()
    is_other = lists.values != np.repeat(elected, lists.counts)
    order = np.lexsort((is_other, lists.owners))  # stable: the others keep their order
    draft.replica[ragged_positions(draft.offsets[:-1], lists.counts)] = lists.values[order]


def _balance(problem: PlanProblem, draft: Draft) -> None:
    """Reorder the replicas of a draft, all of which may become the first if their brokers may lead."""
    all_in_scope = problem.request.balances or problem.request.leaders_only
    order = problem.order if all_in_scope else _with_new_first(problem, draft)
    if not len(order):
        return
    rows = problem.order if all_in_scope else np.flatnonzero(draft.before.counts > 0).astype(np.int32)
    brokers = problem.brokers
    led = preferred_leaders(draft, rows, len(brokers))
    replicas = np.bincount(draft.lists().take(order).values, minlength=len(brokers))
    most = led - preferred_leaders(draft, order, len(brokers)) + replicas
    limits: LoadLimits = leader_limits(problem, led, most)
    for over_only, under_only in _STAGES:
        kernels.reorder_leaders(
            order,
            draft.offsets,
            brokers.leader_share,
            limits.lower,
            limits.upper,
            over_only,
            under_only,
            draft.replica,
            led,
        )
    network = LeaderNetwork(np.sort(order), draft, brokers.leader_share)
    shift_until_reached(network, limits, led, led, np.full(len(led), len(rows), np.int64))


def _demote(problem: PlanProblem, draft: Draft) -> Bool:
    """Order replicas: first those that may lead, then those on other brokers, then the demoted ones.

    A partition without a demoted replica, or without a replica that may lead, stays as it is. Return the
    slots of replicas in demoted log directories (s,), which are the last of their lists: their brokers may lead other
    partitions.
    """
    brokers, lists = problem.brokers, draft.lists()
    rank = np.where(brokers.leader_share > 0, 0, np.where(brokers.demoted, 2, 1))[lists.values]
    rank[members(lists, problem.demoted)] = 3
    chosen = problem.scope & lists.any(rank >= 2) & lists.any(rank == 0)
    order = np.lexsort((np.where(chosen[lists.owners], rank, 0), lists.owners))  # stable: equal ranks keep their order
    draft.replica[ragged_positions(draft.offsets[:-1], lists.counts)] = lists.values[order]
    hidden: Bool = (rank[order] == 3) & chosen[lists.owners]
    return hidden


def preferred_leaders(draft: Draft, rows: Int32, brokers: int) -> Int64:
    """(b,) partitions of ``rows`` whose first replica is on each broker."""
    return np.bincount(draft.replica[draft.offsets[rows]], minlength=brokers).astype(np.int64)


def _with_new_first(problem: PlanProblem, draft: Draft) -> Int32:
    """The rows in scope whose first replica is new and no requested replacement, in the order of the problem."""
    brokers, before = problem.brokers, draft.before
    expected = np.arange(len(brokers), dtype=np.int32)
    for old_id, new_id in problem.request.replace.items():
        expected[brokers.index_of(old_id)] = brokers.index_of(new_id)
    order = problem.order[before.counts[problem.order] > 0]
    first_before = before.values[before.offsets[order]]
    first = draft.replica[draft.offsets[order]]
    rows: Int32 = order[(first != first_before) & (first != expected[first_before])]
    return rows
