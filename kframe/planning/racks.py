"""How many racks the partitions of a plan must span, and how many they can."""

from __future__ import annotations

import numpy as np

from kframe.model.columns import Int32, Ragged
from kframe.planning.limits import distinct_racks
from kframe.planning.problem import PlanProblem


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


def _staying(problem: PlanProblem, scope: Int32) -> Ragged:
    lists = problem.original.take(scope)
    return lists.keep(problem.brokers.leaving[lists.values] == 0)
