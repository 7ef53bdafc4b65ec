"""The replica lists of a plan while it is made, and the loads of brokers that follow from them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kframe.model.arrays import Int16, Int32, Int64, Ragged, UInt8, offsets_of, ragged_positions
from kframe.plans.generate.problem import PlanProblem


@dataclass(frozen=True, slots=True, eq=False)
class Draft:
    """Slots of replicas, -1 while vacant, and loads (b,): ``load`` by weight, ``count`` in replicas.

    ``before`` are the lists that the draft started from, as broker indexes. ``load`` includes rows outside of the scope
    unless the request balances loads, because then the rows in scope are balanced among themselves.
    """

    offsets: Int32
    replica: Int16
    in_sync: UInt8
    before: Ragged
    before_replica: Int16
    load: Int64
    count: Int64

    @staticmethod
    def of(problem: PlanProblem, lists: Ragged, before: Ragged | None = None) -> Draft:
        """A draft that equals ``lists``, with slots for the replicas before and after the plan.

        It started from ``before``, by default the same lists.
        """
        before = lists if before is None else before
        counts = lists.counts
        offsets = offsets_of(np.maximum(counts, problem.replication_factor))
        slots = ragged_positions(offsets[:-1], counts)
        replica = np.full(int(offsets[-1]), -1, np.int16)
        in_sync = np.ones(len(replica), np.uint8)
        replica[slots] = lists.values
        if lists is problem.original:
            in_sync[slots] = problem.in_sync
        draft = Draft(
            offsets,
            replica,
            in_sync,
            before,
            before.values.astype(np.int16),
            np.zeros(len(problem.brokers), np.int64),
            np.zeros(len(problem.brokers), np.int64),
        )
        draft.recount(problem)
        return draft

    def recount(self, problem: PlanProblem) -> None:
        """Set the loads by the slots."""
        brokers = len(problem.brokers)
        retained = self.replica >= 0
        self.count[:] = np.bincount(self.replica[retained], minlength=brokers)
        weight = problem.weight
        if problem.request.balances:
            weight = np.where(problem.scope, weight, 0)
        elif not problem.weighted:
            self.load[:] = self.count
            return
        self.load[:] = weighted_loads(self.lists(), weight, brokers)

    def copy_from(self, other: Draft) -> None:
        """Take over the slots and loads of another draft of the same problem."""
        self.replica[:], self.load[:], self.count[:] = other.replica, other.load, other.count

    def lists(self) -> Ragged:
        """The replica lists without vacant slots, as broker indexes."""
        retained = self.replica >= 0
        if retained.all():
            return Ragged(self.offsets, self.replica.astype(np.int32))
        ends = np.concatenate([[0], np.cumsum(retained)])
        counts = ends[self.offsets[1:]] - ends[self.offsets[:-1]]
        return Ragged(offsets_of(counts), self.replica[retained].astype(np.int32))

    def without_vacancies(self) -> Draft:
        """The same draft with slots for its replicas only. Loads are shared."""
        retained = self.replica >= 0
        if retained.all():
            return self
        return replace(
            self, offsets=self.lists().offsets, replica=self.replica[retained], in_sync=self.in_sync[retained]
        )

    def copy(self) -> Draft:
        """A draft with slots and loads of its own."""
        return replace(self, replica=self.replica.copy(), load=self.load.copy(), count=self.count.copy())

    def incomplete(self, problem: PlanProblem) -> Int32:
        """The rows in scope that lack a replica, ascending."""
        rows: Int32 = np.flatnonzero(problem.scope & (self.lists().counts != problem.replication_factor)).astype(
            np.int32
        )
        return rows

    def restore(self, problem: PlanProblem, rows: Int32) -> Int32:
        """Give partitions their lists of before back; return ``rows``."""
        if not len(rows):
            return rows
        for row in rows.tolist():
            self.restore_slots(row)
        self.recount(problem)
        return rows

    def restore_slots(self, row: int) -> None:
        """Give a partition its list of before back. Loads stay as they are."""
        start, end, values = int(self.offsets[row]), int(self.offsets[row + 1]), self.before[row]
        self.replica[start:end] = -1
        self.replica[start : start + len(values)] = values

    def vacate(self, vacant: Draft, rows: NDArray[np.integer[Any]]) -> None:
        """Take over the slots of some partitions from another draft of the same problem. Loads stay as they are."""
        slots = np.isin(np.repeat(np.arange(len(self.before)), np.diff(self.offsets)), rows)
        self.replica[slots] = vacant.replica[slots]


def weighted_loads(lists: Ragged, weight: Int64, brokers: int) -> Int64:
    """(b,) sum of the weights of the replicas on each broker. Exact up to 2^53."""
    weights = np.repeat(weight.astype(np.float64), lists.counts)
    return np.bincount(lists.values, weights, minlength=brokers).astype(np.int64)
