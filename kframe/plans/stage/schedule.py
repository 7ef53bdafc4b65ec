"""The stage of each reassignment, a lower bound on the number of stages, and what disks lack without an order."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kframe import kernels
from kframe.model.arrays import Bool, Int32, Int64, offsets_of, positions_within
from kframe.plans.stage.problem import ALONE, StageProblem

#: Numbers that ``schedule_stages`` sorts groups by, and one.
_SORT_KEYS = 129


@dataclass(frozen=True, slots=True, eq=False)
class StageSchedule:
    """``stage`` (k,): from 0, -1 where no stage has room on the disks. ``bound``: see ``fewest_stages``. ``free`` (b,)
    is what is left on the disks after the last stage."""

    problem: StageProblem
    stage: Int32
    count: int
    bound: int
    free: Int64

    @property
    def gap(self) -> float:
        """The part of the bound by which the stages exceed it."""
        return (self.count - self.bound) / self.bound if self.bound else 0.0

    def lacking(self, row: int) -> list[tuple[int, int]]:
        """Broker ids and bytes that the disks lack for reassignment ``row`` after the last stage."""
        problem, size = self.problem, int(self.problem.size[row])
        return [
            (int(problem.brokers[target]), size - int(self.free[target]))
            for target in problem.adding[row].tolist()
            if size > self.free[target]
        ]

    def overfull(self) -> list[tuple[int, int]]:
        """Broker ids and bytes by which the plan itself exceeds the capacity of a broker that it adds replicas to.

        No order of such a plan exists: after its last reassignment the disk holds more than its capacity.
        """
        problem = self.problem
        after = problem.free.copy()
        np.subtract.at(after, problem.adding.values, np.repeat(problem.size, problem.adding.counts))
        np.add.at(after, problem.removing.values, np.repeat(problem.size, problem.removing.counts))
        receives = np.zeros(len(after), np.bool_)
        receives[problem.adding.values[np.repeat(problem.size, problem.adding.counts) > 0]] = True
        exceeded = np.flatnonzero(receives & (after < 0))
        return [(int(problem.brokers[broker]), -int(after[broker])) for broker in exceeded.tolist()]


def schedule(problem: StageProblem) -> StageSchedule:
    """Schedule the reassignments greedily. Equal problems give equal schedules. Cost O(k log k + stages · groups)."""
    members, group_offsets = _groups(problem)
    groups, brokers, rows = len(group_offsets) - 1, len(problem.brokers), len(problem)
    stage, free = np.full(rows, -1, np.int32), problem.free.copy()
    count = kernels.schedule_stages(
        group_offsets,
        problem.rank[members[group_offsets[:-1]]],
        problem.adding.offsets,
        problem.adding.values,
        problem.removing.offsets,
        problem.removing.values,
        problem.source,
        problem.size,
        problem.limits,
        members,
        group_offsets[:-1].copy(),
        np.arange(groups, dtype=np.int32),
        np.empty((2, groups), np.int32),
        np.empty(_SORT_KEYS, np.int32),
        np.empty(rows, np.int32),
        np.empty(2, np.int64),
        np.empty((4, brokers), np.int64),
        problem.loads(),
        np.empty(brokers, np.float64),
        free,
        stage,
    )
    return StageSchedule(problem, stage, count, fewest_stages(problem, stage >= 0), free)


def fewest_stages(problem: StageProblem, staged: Bool) -> int:
    """A lower bound: no order of the ``staged`` reassignments (k,) within the limits has fewer stages.

    Proof. A reassignment that alone exceeds a limit has a stage of its own, so these need as many stages as they
    are, and no stage of theirs has any other. Let the others need ``s`` stages. A broker receives at most ``limit``
    replicas in each of them, and each replica is received in exactly one. So ``s`` is at least the replicas that the
    broker receives divided by ``limit``, rounded up. The same holds for replicas that leave it, for its bytes in either
    direction, and for the replicas and bytes of all brokers together. Any reassignment at all needs one stage.
    """
    shared = problem.take(np.flatnonzero(staged & (problem.rank != ALONE)).astype(np.int32))
    loads = shared.loads()
    total = int(shared.moves.sum()), int((shared.moves * shared.size).sum())
    needs = int(loads[:2].max(initial=0)), int(loads[2:].max(initial=0)), *total
    stages = max(-(-need // limit) for need, limit in zip(needs, problem.limits.tolist(), strict=True))
    alone = int(np.count_nonzero(staged & (problem.rank == ALONE)))
    return alone + max(int(stages), int(len(shared) > 0))


def _groups(problem: StageProblem) -> tuple[Int32, Int32]:
    """Reassignments by group, and (g + 1,) the offsets of groups.

    Those of a group have the same rank, source and added brokers, and sizes within a factor of two, the largest first.
    Where the first of a group does not fit a stage, a group of smaller ones may.
    """
    adding, count = problem.adding, len(problem)
    width = int(adding.counts.max(initial=0))
    targets = np.full((width, count), -1, np.int32)
    ordered = adding.values[np.lexsort((adding.values, adding.owners))]
    targets[positions_within(adding.counts), adding.owners] = ordered
    copies = adding.counts > 0
    scale = np.where(copies, np.frexp(problem.size.astype(np.float64))[1], 0)
    keys: list[NDArray[np.int32]] = [
        problem.rank.astype(np.int32),
        np.where(copies, problem.source, -1).astype(np.int32),
        scale.astype(np.int32),
        *targets,
    ]
    sort_keys: Any = (-problem.size, *reversed(keys))
    order = np.lexsort(sort_keys).astype(np.int32)
    begins = np.zeros(count, np.bool_)
    begins[:1] = True
    for key in keys:
        begins[1:] |= key[order[1:]] != key[order[:-1]]
    first = np.flatnonzero(begins)
    return order, offsets_of(np.diff(np.append(first, count)))
