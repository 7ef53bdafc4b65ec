"""How many racks the partitions of a plan must span, and how many they can."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import numpy as np

from kframe.model.arrays import Int32, Int64, Ragged
from kframe.plans.generate.limits import distinct_racks
from kframe.plans.generate.problem import PlanProblem
from kframe.snapshot.content import brokers_text

#: How many times its share of the replicas a broker has that is named.
_OVERLOAD_MIN: Final = 1.5


def required_racks(problem: PlanProblem, scope: Int32) -> Int32:
    """How many racks each partition of ``scope`` must span: as many as it can without a further move, or at all."""
    factor, staying = problem.replication_factor[scope], _staying(problem, scope)
    possible = np.minimum(factor, reachable_racks(problem, scope))
    if problem.request.fix_racks:
        return np.asarray(possible, np.int32)
    added = np.maximum(factor - staying.counts, 0)
    return np.asarray(np.minimum(possible, distinct_racks(staying, problem.brokers.rack) + added), np.int32)


def reachable_racks(problem: PlanProblem, scope: Int32) -> Int32:
    """In how many racks each partition of ``scope`` can have replicas: where it stays, or brokers receive any."""
    brokers, staying = problem.brokers, _staying(problem, scope)
    if problem.costs is not None:
        usable = problem.costs.allowed(scope) & (brokers.share > 0)
        usable[staying.owners, staying.values] = True
        racks = [usable[:, brokers.rack == rack].any(axis=1) for rack in range(len(brokers.rack_targets))]
        return np.asarray(np.sum(racks, axis=0), np.int32)
    closed = staying.keep(brokers.rack_targets[brokers.rack[staying.values]] == 0)
    reachable = np.count_nonzero(brokers.rack_targets) + distinct_racks(closed, brokers.rack)
    return np.asarray(reachable, np.int32)


def rack_overloads(problem: PlanProblem, after: Ragged) -> Iterator[str]:
    """A sentence for each rack whose busiest broker gets more replicas, has 1.5 times its share or more, and most of
    them only because each partition has a replica in every rack. Racks ascend by number.

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
    """(b,) replicas of each broker that are alone in their rack, of partitions that span every rack that receives
    replicas: on a broker of another rack, the partition would span fewer."""
    brokers = problem.brokers
    open_racks = brokers.rack_targets > 0
    spanning = distinct_racks(lists.keep(open_racks[brokers.rack[lists.values]]), brokers.rack)
    rows = np.flatnonzero(spanning == np.count_nonzero(open_racks))
    chosen = lists.take(rows)
    keys = chosen.owners.astype(np.int64) * len(open_racks) + brokers.rack[chosen.values]
    _, inverse, counts = np.unique(keys, return_inverse=True, return_counts=True)
    alone = chosen.values[counts[inverse] == 1]
    return np.bincount(alone, minlength=len(brokers)).astype(np.int64)


def _staying(problem: PlanProblem, scope: Int32) -> Ragged:
    lists = problem.original.take(scope)
    return lists.keep(problem.brokers.leaving[lists.values] == 0)


def missing_racks(problem: PlanProblem, scope: Int32, lists: Ragged) -> Int32:
    """How many racks fewer each partition of ``scope`` spans in ``lists`` of all rows than it must."""
    spanned = distinct_racks(lists.take(scope), problem.brokers.rack)
    return np.asarray(np.maximum(required_racks(problem, scope) - spanned, 0), np.int32)
