"""A proposed plan: its partitions, what it copies, the lower bound, and the brokers before and after."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from kframe.model.arrays import Int32, Int64, Ragged
from kframe.model.lists import members, same_lists
from kframe.model.plan import Plan
from kframe.model.tables import Targets
from kframe.pages.parts import FactsPart, Heading, Part
from kframe.pages.shown import Tabular
from kframe.plans.check.duration import copy_seconds
from kframe.plans.check.rack_rules import span_racks, uneven_replicas
from kframe.plans.generate.bounds import Shortage, lower_bounds
from kframe.plans.generate.draft import weighted_loads
from kframe.plans.generate.limits import LoadLimits
from kframe.plans.generate.load_pictures import load_bars, loads_figure
from kframe.plans.generate.observers import planned_observers
from kframe.plans.generate.problem import PlanProblem
from kframe.plans.generate.racks import missing_racks
from kframe.plans.generate.unmet import UnmetPartitions, unmet_partitions


@dataclass(frozen=True, eq=False, repr=False)
class PlanProposal(Tabular):
    """A plan and its effects. Lists are of broker indexes, a list for each row of the snapshot.

    ``bound`` is the least that any plan copies, in replicas, or in weights where the request has them. ``limits`` are
    the loads that a request for balance asks for; ``reached`` tells whether all loads are within. ``staying`` are the
    rows that stay as they are, ascending, because no broker can take their replicas. The bound is of plans that
    lack no more than this one. ``exact``: the solver has proven the bound, or that no plan reaches
    the limits. ``proven_by`` is the proof of the bound, a key of ``PROOFS``. ``solver_error`` is what failed in a
    solver that was not requested.
    """

    problem: PlanProblem
    after: Ragged
    bound: int
    limits: LoadLimits | None
    reached: bool
    staying: Int32
    exact: bool = False
    proven_by: str = "required"
    solver_error: str | None = None

    @property
    def unassignable(self) -> int:
        """How many partitions stay as they are because no broker can take their replicas."""
        return len(self.staying) + len(self.problem.left_out.impossible)

    @property
    def rows(self) -> Int32:
        """The rows that change, ascending."""
        return np.flatnonzero(~same_lists(self.problem.original, self.after)).astype(np.int32)

    @property
    def copied(self) -> Int64:
        """(n,) replicas that are added to each row."""
        return self._added.counts.astype(np.int64)

    @property
    def moves(self) -> int:
        """Replicas that are copied."""
        return int(self.copied.sum())

    @property
    def cost(self) -> int:
        """What is copied, in the units of the bound, with what cost terms add."""
        return int((self.copied * self.problem.weight).sum()) + self.term_cost

    @property
    def term_cost(self) -> int:
        """What cost terms add to the cost."""
        return 0 if self.problem.costs is None else self.problem.costs.total(self._added)

    @property
    def gap(self) -> float:
        """How far the cost is above the bound: 0.01 is 1 %."""
        return 0.0 if self.cost == self.bound else (self.cost - self.bound) / max(self.bound, 1)

    @property
    def leader_changes(self) -> int:
        """Partitions whose first replica changes."""
        before, after = self.problem.original, self.after
        rows = np.flatnonzero(before.counts > 0)
        return int(np.count_nonzero(before.values[before.offsets[rows]] != after.values[after.offsets[rows]]))

    @property
    def observers(self) -> int:
        """Observers of the partitions that change."""
        observers = self.problem.snapshot.partitions.observers
        return 0 if observers is None else int(observers.counts[self.rows].sum())

    @property
    def plan(self) -> Plan:
        """The partitions that change, with broker ids."""
        topics, rows = self.problem.snapshot.topics, self.rows
        numbers, topic = np.unique(topics.topic_of_rows()[rows], return_inverse=True)
        after = self.after.take(rows)
        targets = Targets(
            tuple(topics.names[number] for number in numbers.tolist()),
            topic.astype(np.int32),
            topics.partition_of_rows()[rows],
            Ragged(after.offsets, self.problem.brokers.ids[after.values]),
            np.zeros(len(rows), np.bool_),
        )
        observers = planned_observers(self.problem.snapshot, rows, targets.replicas)
        return Plan("generated", targets, np.zeros(len(rows), np.bool_), observers)

    def to_arrow(self) -> Any:
        """See ``Plan``."""
        return self.plan.to_arrow()

    def plot(self) -> Any:
        """Replicas and preferred leaders of each broker: see ``loads_figure``."""
        return loads_figure(self.problem.brokers.ids.tolist(), self.loads())

    def heading(self) -> Heading:
        """See ``Shown``."""
        facts = (
            ("partitions", len(self.rows)),
            ("replicas copied", self.moves),
            (f"lower bound in {self.problem.unit}", self.bound),
            ("leaders that change", self.leader_changes),
        )
        return Heading("reassignment plan", FactsPart(facts))

    def parts(self) -> Sequence[Part]:
        """See ``Shown``."""
        return [*load_bars(self.problem.brokers.ids.tolist(), self.loads()), *self.plan.parts()]

    def loads(self) -> dict[str, Int64]:
        """(b,) replicas, preferred leaders and weights of each broker, before and after."""
        brokers, weight = len(self.problem.brokers), self.problem.weight
        columns = {}
        for name, lists in (("before", self.problem.original), ("after", self.after)):
            columns[f"replicas_{name}"] = np.bincount(lists.values, minlength=brokers).astype(np.int64)
            columns[f"leaders_{name}"] = np.bincount(lists.values[lists.first], minlength=brokers).astype(np.int64)
            columns[f"bytes_{name}"] = columns[f"goal_{name}"] = weighted_loads(lists, weight, brokers)
        columns["received"] = np.bincount(self._added.values, minlength=brokers).astype(np.int64)
        return columns

    @property
    def seconds(self) -> float | None:
        """How long the copies of all partitions take at the rate of the request: as long as those of the broker that
        receives most, or as leader sends most. None without a rate."""
        rate, leader = self.problem.request.rate, self.problem.snapshot.partitions.leader
        return None if rate is None else copy_seconds(self._added, leader, self.problem.weight, rate)

    def crowded(self, lists: Ragged) -> int:
        """Partitions whose spread over racks is less even than it could be, or not as placement constraints demand.

        Partitions that are to be in one rack count if they are in more.
        """
        brokers = self.problem.brokers
        hosts = np.bincount(brokers.rack[brokers.leaving == 0], minlength=len(brokers.rack_targets)).astype(np.int32)
        crowded, rules = uneven_replicas(lists, brokers.rack, hosts) > 0, self.problem.rack_rules
        if rules.own is not None:
            rows = np.flatnonzero(rules.own.rule >= 0).astype(np.int32)
            chosen = lists.take(rows)
            possible = np.minimum(rules.possible[rows], chosen.counts[:, None])
            crowded[rows] = (self.problem.spread(rows, chosen) < possible).any(axis=1)
        if (one_rack := self.problem.one_rack) is not None:
            crowded = np.where(one_rack.requested, span_racks(lists, brokers.rack), crowded)
        return int(np.count_nonzero(crowded))

    def lower_bounds(self) -> dict[str, int]:
        """The bounds of loads by their proof, a key of ``PROOFS``."""
        return lower_bounds(self.problem, self.limits, self.shortage)

    @cached_property
    def unmet(self) -> UnmetPartitions:
        """The partitions that the plan leaves otherwise than requested."""
        return unmet_partitions(self.problem, self.after)

    @property
    def meets_request(self) -> bool:
        """Whether the plan does all that is requested: for each partition, and for the loads of brokers."""
        return self.reached and not len(self.unmet)

    @cached_property
    def leaderless(self) -> Int32:
        """The rows that receive replicas and have no live leader, from which these could be copied."""
        leader = self.problem.snapshot.partitions.leader
        if leader is None:
            return np.empty(0, np.int32)
        down = [facts.broker_id for facts in self.problem.snapshot.brokers if facts.registered is False]
        return np.flatnonzero((self.copied > 0) & ((leader < 0) | np.isin(leader, down))).astype(np.int32)

    @property
    def racks_known(self) -> bool:
        """Whether any broker has a rack, so that rack rules apply."""
        return any(rack is not None for rack in self.problem.racks.values())

    @cached_property
    def shortage(self) -> Shortage:
        """What the plan lacks because caps of brokers leave too little room."""
        return Shortage(len(self.staying), int(self._missing_racks.sum()))

    @property
    def rows_without_racks(self) -> Int32:
        """The rows that are planned, and less evenly spread over racks than they must be."""
        rows: Int32 = self.problem.without(self.staying).order[self._missing_racks > 0]
        return rows

    @cached_property
    def _missing_racks(self) -> Int32:
        """How many replicas of each row that is planned are in other racks than they must."""
        return missing_racks(self.problem, self.problem.without(self.staying).order, self.after)

    @property
    def is_spread(self) -> bool:
        """Whether each planned partition has the spread over racks that it must. Caps of brokers can prevent that."""
        return not self.shortage.racks

    @property
    def is_valid(self) -> bool:
        """Whether the loads are within the limits, and each partition is planned with the spread that it must have.

        A replacement receives the replicas of a broker even if that spreads a partition less evenly.
        """
        return self.reached and not len(self.staying) and (bool(self.problem.request.replace) or self.is_spread)

    @cached_property
    def _added(self) -> Ragged:
        return self.after.keep(~members(self.after, self.problem.original))
