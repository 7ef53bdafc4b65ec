"""Lower bounds of the copies of any plan for a request, with their proofs: what partitions and brokers need.

They cost one pass, and are what many plans copy: 13 of the 32 plans of ``benchmarks/plans`` up to 100,000 partitions.
Where they leave a gap, the flow of ``relaxation.py`` closes most of it: it respects racks and brokers together. Where
that leaves one, the solver of ``exact.py`` has the optimum of small problems.

Let a plan copy ``A`` in total: the sum over partitions of the weight of each replica on a broker that has none now.
Let ``R`` be the weight that it deletes. Without weights each replica weighs 1. Each bound below holds for every plan
that meets the hard rules and brings the loads within the printed limits; the greatest of them is reported.

With cost terms a plan costs ``A`` plus their costs. Proof of the addition to each bound: a copied replica costs at
least the least term of its partition, among the brokers that may receive it and have none. A unit of weight that a
broker receives costs at least the least term of a unit among the partitions that may be copied to it. A unit that any
broker receives costs at least the least of these. Terms forbid placements, so they only exclude plans.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np

from kframe.model.arrays import Bool, Float64, Int64, Ragged
from kframe.plans.generate.draft import weighted_loads
from kframe.plans.generate.limits import LoadLimits
from kframe.plans.generate.problem import PlanProblem
from kframe.plans.generate.racks import demanded_spread

#: The proof of each lower bound in a sentence.
PROOFS: Final = {
    "required": "Each partition copies at least the requested replicas that no remaining broker has, and a replica for"
    " each that must leave its rack for an even spread, or for the partition's one rack; the bound is the sum over the"
    " partitions.",
    "deficit": "Only a copied replica raises the load of a broker; the bound is the sum of what brokers lack to their"
    " lower limits.",
    "excess": "Only a deleted replica reduces the load of a broker, and what is deleted must be copied to another"
    " broker unless the total shrinks; the bound is the sum of what brokers exceed their upper limits by, plus the"
    " growth of the total.",
    "flow": "Every plan is a flow of load between racks and brokers within their limits; the bound is the cost of the"
    " cheapest flow, in which partitions are divisible.",
    "solver": "The solver HiGHS has proven the bound by branch and bound.",
}
#: What the proofs add with cost terms.
TERMS_PROOF: Final = (
    "Each copied replica costs at least the least of its cost terms on the brokers that may receive it."
)


def lower_bound(problem: PlanProblem, limits: LoadLimits | None) -> int:
    """The greatest of the lower bounds. ``limits`` are those of the plan, None for a plan without."""
    return max(lower_bounds(problem, limits).values())


@dataclass(frozen=True, slots=True)
class Shortage:
    """What a plan lacks where caps leave too little room: partitions that stay as they are, and replicas of
    the others that are in other racks than they must."""

    staying: int = 0
    racks: int = 0


def lower_bounds(problem: PlanProblem, limits: LoadLimits | None, shortage: Shortage = Shortage()) -> dict[str, int]:
    """The lower bounds by their proof, a key of ``PROOFS``, of plans that lack at most ``shortage``."""
    lists, weight = problem.original.take(problem.order), problem.weight[problem.order]
    bounds = {"required": required_copies(problem, lists, weight, shortage)}
    if limits is not None:
        deficit, excess = broker_bounds(problem, lists, weight, limits)
        bounds["deficit"], bounds["excess"] = deficit, 0 if shortage.staying else excess
    return bounds


def required_copies(problem: PlanProblem, lists: Ragged, weight: Int64, shortage: Shortage = Shortage()) -> int:
    """The least that the partitions copy, without a goal of balance.

    Proof. Let a partition have ``s`` replicas that do not leave their brokers, with a column ``d`` of the spread, and
    want ``w`` replicas. Any plan retains at most ``s``, so it adds at least ``w - s``. A retained set has at most the
    spread ``d``, and each added replica adds at most 1. So a list of spread ``r`` needs at least ``r - d`` additions.
    Partitions are independent, so the sum over them is a bound. A partition that stays saves what it needs, and a
    replica in the wrong rack saves an addition that is needed for racks only. The shortage saves the most expensive of
    both. A partition that is to be in one rack needs what its cheapest rack needs, or only ``w - s`` if any replica is
    in a wrong rack.
    """
    brokers = problem.brokers
    staying = lists.keep(brokers.leaving[lists.values] == 0)
    replication_factor = problem.replication_factor[problem.order]
    missing = np.maximum(replication_factor - staying.counts, 0)
    needed = missing
    if problem.request.fix_racks or problem.one_rack is not None:
        for_racks = demanded_spread(problem, problem.order) - problem.spread(problem.order, staying)
        needed = np.maximum(missing, for_racks.max(axis=1, initial=0))
    if problem.one_rack is not None:
        cheapest = missing if shortage.racks else np.minimum(needed, problem.one_rack.fewest[problem.order])
        needed = np.where(problem.one_rack.rack[problem.order] >= 0, cheapest, needed)
    if problem.costs is not None:
        weight = weight + problem.costs.min_costs(problem.order, copy_targets(problem, lists))
    bound = int((needed * weight).sum())
    if shortage.staying:
        bound -= _greatest(needed * weight, shortage.staying)
    if shortage.racks:
        bound -= _greatest(np.repeat(weight, needed - missing), shortage.racks)
    return max(bound, 0)


def _greatest(values: Int64, count: int) -> int:
    """The sum of the greatest ``count`` values."""
    return int(np.sort(values)[::-1][:count].sum())


def copy_targets(problem: PlanProblem, lists: Ragged) -> Bool:
    """(k, b) brokers that receive replicas, and have none of the partition; ``lists`` are of the rows in scope."""
    targets = np.repeat(problem.brokers.share[None, :] > 0, len(lists), axis=0)
    targets[lists.owners, lists.values] = False
    return targets


def unit_costs(problem: PlanProblem, lists: Ragged, weight: Int64) -> Float64:
    """(b,) the least that a unit of weight costs on each broker beside copying it; 0 without cost terms."""
    if problem.costs is None:
        return np.zeros(len(problem.brokers))
    ratios = problem.costs.ratios(problem.order, weight, copy_targets(problem, lists))
    return np.where(np.isfinite(ratios), ratios, 0.0)


def broker_bounds(problem: PlanProblem, lists: Ragged, weight: Int64, limits: LoadLimits) -> tuple[int, int]:
    """What the loads of brokers need: deficits, and excesses with the growth of the total.

    Proof. Only additions raise a broker's load, so ``A`` is at least the sum of deficits below the lower limits. Only
    deletions reduce it, so ``R`` is at least the sum of excesses above the upper limits. A broker that all replicas
    leave has the limit 0, and a broker that merely receives nothing has none. The total changes by ``A - R``, which the
    requested replication factors determine.
    """
    load = weighted_loads(lists, weight, len(problem.brokers))
    excess = _excess(problem, load, limits)
    growth = int(((problem.replication_factor[problem.order] - lists.counts) * weight).sum())
    unit = unit_costs(problem, lists, weight)
    deficit, copied = limits.deficit(load), int(excess.sum()) + growth
    min_unit_cost = float(unit[problem.brokers.share > 0].min(initial=np.inf)) if problem.costs is not None else 0.0
    added_cost = max(copied, 0) * (min_unit_cost if np.isfinite(min_unit_cost) else 0.0)
    return int(deficit.sum()) + int((deficit * unit).sum()), copied + int(added_cost)


def _excess(problem: PlanProblem, load: Int64, limits: LoadLimits) -> Int64:
    """(b,) what every plan takes from each broker."""
    brokers = problem.brokers
    return np.where(brokers.leaving != 0, load, np.where(brokers.share > 0, limits.excess(load), 0))
