"""Keep Confluent's observers in a plan: as many as before, the last of a partition's replicas."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from kframe.errors import ParameterError
from kframe.model.arrays import Int32, Ragged, positions_within
from kframe.model.lists import same_lists
from kframe.plans.check.placement_constraints import constraints_of
from kframe.plans.generate.problem import PlanProblem
from kframe.snapshot import Snapshot


def observers_last(problem: PlanProblem, after: Ragged) -> Ragged:
    """The replicas ``after`` a plan. Where it changes a partition with observers, these are its last replicas.

    Where its topic has placement constraints, they are in the racks of these, if the replicas are.

    Lists are of broker indexes, a list for each row of the snapshot. Raises InputError for another replication factor
    of such a partition, whose placement constraints determine it.
    """
    observers = problem.snapshot.partitions.observers
    if observers is None:
        return after
    lists, constraints = after.values.copy(), constraints_of(problem.snapshot)
    topic = problem.snapshot.topics.topic_of_rows()
    for row in np.flatnonzero((observers.counts > 0) & ~same_lists(problem.original, after)).tolist():
        racks = constraints[int(topic[row])].observers if int(topic[row]) in constraints else {}
        ordered = _observers_last(problem, observers[row], after[row], row, racks)
        lists[after.offsets[row] : after.offsets[row + 1]] = ordered
    return Ragged(after.offsets, lists)


def planned_observers(snapshot: Snapshot, rows: Int32, replicas: Ragged) -> Ragged | None:
    """The observers of each of ``rows``, the last of the planned ``replicas``; None if none has any."""
    observers = snapshot.partitions.observers
    if observers is None or not observers.counts[rows].any():
        return None
    full = replicas.counts - observers.counts[rows]
    return replicas.keep(positions_within(replicas.counts) >= np.repeat(full, replicas.counts))


def _observers_last(
    problem: PlanProblem, observers: Int32, after: Int32, row: int, demanded: Mapping[str, int]
) -> list[int]:
    """The full replicas and then the observers of a row after the plan. ``observers`` are the broker ids before it.

    A new replica succeeds a removed observer of its rack, or else one without a successor. The others are full. If the
    racks of the list allow it, there are as many observers of each rack as ``demanded``.
    """
    original, target, racks = problem.original[row].tolist(), after.tolist(), problem.brokers.rack
    before = np.searchsorted(problem.brokers.ids, observers).tolist()
    if len(target) != len(original):
        actual = f"{len(target)} for {problem.snapshot.topics.name_of_row(row)} with observers"
        raise ParameterError("replication_factors", actual, f"{len(original)}, as it is")
    added = [index for index in target if index not in original]
    removed = [index for index in before if index not in target]
    successors: dict[int, int] = {}
    for same_rack in (True, False):
        for index in removed:
            candidates = [new for new in reversed(added) if not same_rack or racks[new] == racks[index]]
            if index not in successors and candidates:
                successors[index] = candidates[0]
                added.remove(candidates[0])
    planned = [successors.get(index, index) for index in before]
    if planned_in_racks := _observers_in_racks(problem, planned, target, demanded):
        planned = planned_in_racks
    return [index for index in target if index not in planned] + planned


def _observers_in_racks(
    problem: PlanProblem, planned: list[int], target: list[int], demanded: Mapping[str, int]
) -> list[int]:
    """As many observers of each rack as demanded, the planned ones first; none if there are too few, or too many."""
    chosen: list[int] = []
    for rack, count in demanded.items():
        inside = [index for index in target if problem.racks[int(problem.brokers.ids[index])] == rack]
        inside.sort(key=lambda index: planned.index(index) if index in planned else len(planned) + target.index(index))
        chosen += inside[:count]
    return chosen if len(chosen) == len(planned) == sum(demanded.values()) else []
