"""Plan a rolling restart: the fewest batches that take no partition offline or under min ISR."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

import numpy as np

from kframe.model.arrays import Bool, Int32
from kframe.plans.restarts.batches import UNLIMITED, RestartProblem, assign_batches
from kframe.plans.restarts.bound import GroupBound, fewest_batches
from kframe.plans.restarts.conflicts import Conflicts
from kframe.plans.restarts.exact import fewer_batches
from kframe.plans.restarts.limits import RestartLimits, limits_of
from kframe.plans.restarts.request import RestartRequest
from kframe.plans.restarts.units import RestartUnits
from kframe.snapshot import Snapshot
from kframe.whatif.engines.choice import engine_of
from kframe.whatif.engines.engine import Engine

#: The group of units in a request where all share batches, and of controllers that are no brokers.
_ANY_GROUP: Final = 0


@dataclass(frozen=True, slots=True, eq=False)
class RestartPlan:
    """The batches of a rolling restart, and what proves that they are few.

    ``limits`` are those of all units, ``problem`` has those of the units that restart. ``batches`` lists unit numbers.
    ``blocked`` (u,) marks units that restart in no batch. ``bounds`` prove the fewest batches; if ``proven`` HiGHS
    has proven that no order has fewer than these batches.
    """

    snapshot: Snapshot
    engine: Engine
    request: RestartRequest
    units: RestartUnits
    limits: RestartLimits
    problem: RestartProblem
    conflicts: Conflicts
    blocked: Bool
    batches: tuple[tuple[int, ...], ...]
    bounds: tuple[GroupBound, ...]
    proven: bool

    @property
    def bound(self) -> int:
        """No order has fewer batches."""
        return len(self.batches) if self.proven else sum(bound.batches for bound in self.bounds)


def plan_restarts(
    snapshot: Snapshot, request: RestartRequest, config: Mapping[str, object] | None = None
) -> RestartPlan:
    """Plan a rolling restart. While a batch is down, each partition keeps a leader and ``min.insync.replicas``.

    Each batch starts from the ISRs of ``snapshot``: the replicas of the batch before have rejoined. Equal input gives
    equal plans. Cost O(n log n) for n partitions. Raises SnapshotError if the snapshot does not say who leads,
    InputError for nodes and racks that it lacks, and with ``exact`` for a problem that is too large.
    """
    engine = engine_of(snapshot, config)
    units = RestartUnits.of(engine, request)
    limits = limits_of(engine, units)
    enforced = limits.raised_to_largest() if request.allow_unavoidable else limits
    exhausted_max = UNLIMITED if request.max_at_min_isr is None else request.max_at_min_isr
    blocked = blocked_units(enforced, len(units.nodes), exhausted_max)
    remaining = enforced.without_units(blocked).relevant(exhausted=exhausted_max != UNLIMITED)
    problem = RestartProblem(
        remaining,
        _groups(units, request),
        np.array([len(nodes) for nodes in units.nodes], np.int32),
        exhausted_max,
        request.max_batch or UNLIMITED,
        np.flatnonzero(~blocked).astype(np.int32),
    )
    conflicts = Conflicts.of(remaining, len(units.nodes))
    bounds = tuple(fewest_batches(problem, conflicts))
    batch = assign_batches(problem, sum(bound.batches for bound in bounds))
    proven = False
    if request.exact:
        batch, proven = _searched(problem, bounds, batch)
    return RestartPlan(
        snapshot,
        engine,
        request,
        units,
        limits,
        problem,
        conflicts,
        blocked,
        _in_order(batch, units, engine.snapshot.controller_id),
        bounds,
        proven,
    )


def blocked_units(limits: RestartLimits, units: int, exhausted_max: int) -> Bool:
    """(u,) units that exceed a limit by themselves, or bring too many partitions down to min ISR."""
    blocked = np.zeros(units, np.bool_)
    blocked[limits.units.values[limits.exceeded_alone()]] = True
    owners = limits.units.owners
    at_min = np.where(limits.members == limits.capacity[owners], limits.exhausted[owners], 0)
    blocked |= np.bincount(limits.units.values, at_min, units) > exhausted_max
    return blocked


def _groups(units: RestartUnits, request: RestartRequest) -> Int32:
    """(u,) units of different groups share no batch: those of different racks, if the request says so."""
    racks = [units.rack(number) for number in range(len(units.nodes))]
    names = {name: number for number, name in enumerate(sorted({rack for rack in racks if rack is not None}), 1)}
    return np.array([names[rack] if request.same_rack and rack is not None else _ANY_GROUP for rack in racks], np.int32)


def _searched(problem: RestartProblem, bounds: tuple[GroupBound, ...], batch: Int32) -> tuple[Int32, bool]:
    """The fewest batches that HiGHS finds, and whether it has proven that there are no fewer."""
    fewest = sum(bound.batches for bound in bounds)
    clique = np.concatenate([bound.units for bound in bounds] or [np.empty(0, np.int32)])
    while (count := int(batch.max(initial=-1)) + 1) > fewest:
        solution, proven = fewer_batches(problem, clique, count - 1)
        if solution is None:
            return batch, proven
        batch = _numbered(solution)
    return batch, False


def _numbered(batch: Int32) -> Int32:
    """The batches numbered without gaps."""
    used = np.unique(batch[batch >= 0])
    numbered: Int32 = np.where(batch >= 0, np.searchsorted(used, batch), -1).astype(np.int32)
    return numbered


def _in_order(batch: Int32, units: RestartUnits, controller_id: int | None) -> tuple[tuple[int, ...], ...]:
    """The batches by their first node; the one with the active controller is the last, so that it fails over once.

    Brokers of a KRaft cluster name any broker as the controller: only a controller of the quorum is one.
    """
    groups: list[list[int]] = [[] for _ in range(int(batch.max(initial=-1)) + 1)]
    for unit in np.flatnonzero(batch >= 0).tolist():
        groups[int(batch[unit])].append(unit)
    is_known = not units.voters or controller_id in units.voters
    groups.sort(key=lambda group: (is_known and any(controller_id in units.nodes[unit] for unit in group), group[0]))
    return tuple(map(tuple, groups))
