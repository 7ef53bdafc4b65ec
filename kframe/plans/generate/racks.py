"""How evenly the partitions of a plan must be spread over racks; ``rack_rules.py`` defines the spread."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import numpy as np

from kframe.model.arrays import Int32, Int64, Ragged
from kframe.plans.generate.problem import PlanProblem
from kframe.snapshot.content import brokers_text

#: How many times its share of the replicas a broker has that is named.
_OVERLOAD_MIN: Final = 1.5


def demanded_spread(problem: PlanProblem, rows: Int32) -> Int32:
    """(k, 2) the spread for which replicas of each of ``rows`` move that need not move otherwise; 0 for none."""
    one_rack, demanded = problem.one_rack, np.full(len(rows), problem.request.fix_racks)
    if one_rack is not None:
        demanded = np.where(one_rack.requested[rows], one_rack.rack[rows] >= 0, demanded)
    possible = np.minimum(problem.rack_rules.possible[rows], problem.replication_factor[rows, None])
    return np.where(demanded[:, None], possible, 0).astype(np.int32)


def required_spread(problem: PlanProblem, scope: Int32) -> Int32:
    """(k, 2) the spread that each partition of ``scope`` must have: the greatest without a further move, or at all."""
    factor, staying = problem.replication_factor[scope], _staying(problem, scope)
    added = np.maximum(factor - staying.counts, 0)
    reached = np.minimum(problem.spread(scope, staying) + added[:, None], problem.rack_rules.possible[scope])
    return np.asarray(np.maximum(demanded_spread(problem, scope), np.minimum(reached, factor[:, None])), np.int32)


def rack_overloads(problem: PlanProblem, after: Ragged) -> Iterator[str]:
    """A sentence for each rack whose busiest broker gets more replicas, has 1.5 times its share or more, and most of
    them only because of the even spread over racks. Racks ascend by number.

    The share is the mean of all brokers that can receive replicas, by capacity.
    """
    brokers = problem.brokers
    count = len(brokers)
    before, loads = (np.bincount(lists.values, minlength=count).astype(np.int64) for lists in (problem.original, after))
    receives = brokers.share > 0
    if not receives.any():
        return
    share = np.where(receives, brokers.share, 0.0)
    share *= loads[receives].sum() / share.sum()
    candidates = np.flatnonzero(receives & (loads > before) & (loads >= _OVERLOAD_MIN * share))
    if not len(candidates):
        return
    tied = _tied_replicas(problem, after)
    candidates = candidates[2 * tied[candidates] > loads[candidates]]
    for rack in np.unique(brokers.rack[candidates]).tolist():
        members = candidates[brokers.rack[candidates] == rack]
        index = int(members[np.argmax(loads[members] / share[members])])
        broker_id = int(brokers.ids[index])
        name = problem.racks[broker_id]
        if name is not None:
            receivers = brokers_text(brokers.ids[receives & (brokers.rack == rack)].tolist())
            yield (
                f"broker {broker_id} gets {loads[index] / share[index]:.1f} times its share of replicas"
                f" ({before[index]:,} before, {loads[index]:,} after, share {share[index]:,.0f}), because the rack rule"
                f" spreads partitions over all racks, and only {receivers} in {name} can take replicas"
            )


def _tied_replicas(problem: PlanProblem, lists: Ragged) -> Int64:
    """(b,) replicas of each broker in racks that have at most what their rule demands, of partitions in which no rack
    that receives replicas has fewer: on a broker of another rack, the partition would be spread less evenly."""
    brokers, rules = problem.brokers, problem.rack_rules
    open_racks = brokers.rack_targets > 0
    chosen = lists.keep(open_racks[brokers.rack[lists.values]])
    if problem.one_rack is not None:
        chosen = chosen.keep(problem.one_rack.rack[chosen.owners] < 0)
    rows = np.arange(len(lists))
    spread = rules.spread(rows, chosen, brokers.rack)
    room = np.minimum(rules.bounds, brokers.rack_targets[None, :, None]).sum(axis=1)[rules.rule]
    keys = chosen.owners.astype(np.int64) * len(open_racks) + brokers.rack[chosen.values]
    _, inverse, counts = np.unique(keys, return_inverse=True, return_counts=True)
    need = rules.bounds[rules.rule[chosen.owners], brokers.rack[chosen.values]] >= counts[inverse][:, None]
    tied = chosen.values[(need & (spread >= room)[chosen.owners]).any(axis=1)]
    return np.bincount(tied, minlength=len(brokers)).astype(np.int64)


def _staying(problem: PlanProblem, scope: Int32) -> Ragged:
    lists = problem.original.take(scope)
    return lists.keep(problem.brokers.leaving[lists.values] == 0)


def missing_racks(problem: PlanProblem, scope: Int32, lists: Ragged) -> Int32:
    """How many replicas of each partition of ``scope`` are in other racks than they must, in ``lists`` of all rows."""
    missing = required_spread(problem, scope) - problem.spread(scope, lists.take(scope))
    return np.asarray(np.maximum(missing, 0).max(axis=1, initial=0), np.int32)
