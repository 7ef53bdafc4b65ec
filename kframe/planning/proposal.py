"""A proposed plan: its partitions, what it copies, the lower bound, and the brokers before and after."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from kframe.model.columns import Int32, Int64, Ragged
from kframe.model.lists import distinct_values, members, same_lists
from kframe.model.tables import Targets
from kframe.planning.bounds import lower_bound, required_copies
from kframe.planning.draft import Draft, weighted_loads
from kframe.planning.exact import is_small, solve
from kframe.planning.leaders import balance_leaders
from kframe.planning.limits import LoadLimits, distinct_racks, replica_limits
from kframe.planning.moves import move_for_balance, move_required
from kframe.planning.observers import observers_last, planned_observers
from kframe.planning.prices import priced_bound
from kframe.planning.problem import PlanProblem
from kframe.planning.racks import required_racks
from kframe.planning.relaxation import cheapest_flow
from kframe.planning.unmet import UnmetPartitions, unmet_partitions
from kframe.whatif.plan import Plan

#: Each round begins with the result of the last, and the last round changes nothing: a second plan is then empty.
_ROUNDS = 20
#: Gaps that are not worth the search for a better bound.
_SMALL_GAP = 1e-4
#: Greater gaps are worth the solver where a problem is small.
_SOLVED_GAP = 0.01


@dataclass(frozen=True, eq=False)
class PlanProposal:
    """A plan and its effects. Lists are of broker indexes, a list for each row of the snapshot.

    ``bound`` is the least that any plan copies, in replicas, or in weights where the request has them; if some
    partitions are not planned as requested, the least for the others. ``limits`` are
    the loads that a request for balance asks for; ``reached`` tells whether all loads are within. ``unassignable``
    partitions are as they were, because no broker can take their replicas. ``exact``: the solver has proven the
    bound, or that no plan reaches the limits. ``proven_by`` is the source of the bound: ``loads`` of brokers and
    partitions, ``prices``, ``flow`` with cost terms, ``solver``, or ``required`` by the planned partitions.
    """

    problem: PlanProblem
    after: Ragged
    bound: int
    limits: LoadLimits | None
    reached: bool
    unassignable: int
    exact: bool = False
    proven_by: str = "loads"

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
    def plan(self) -> Plan:
        """The partitions that change, with broker ids."""
        topics, rows = self.problem.snapshot.topics, self.rows
        numbers, topic = np.unique(topics.topic_of_rows()[rows], return_inverse=True)
        after = self.after.take(rows)
        targets = Targets(
            tuple(topics.names[number] for number in numbers.tolist()), topic.astype(np.int32),
            topics.partition_of_rows()[rows], Ragged(after.offsets, self.problem.brokers.ids[after.values]),
            np.zeros(len(rows), np.bool_),
        )  # fmt: skip
        counts = planned_observers(self.problem.snapshot, self.problem.original, self.after)
        if not counts:
            return Plan("generated", targets, np.zeros(len(rows), np.bool_))
        last = [
            targets.replicas[k].tolist()[-counts[row] :] if row in counts else [] for k, row in enumerate(rows.tolist())
        ]
        return Plan("generated", targets, np.zeros(len(rows), np.bool_), Ragged.of(last))

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

    def crowded(self, lists: Ragged) -> int:
        """Partitions that span fewer racks than they could: fewer than their replicas and than the racks."""
        racks = len(distinct_values(self.problem.brokers.rack[self.problem.brokers.leaving == 0]))
        return int(np.count_nonzero(distinct_racks(lists, self.problem.brokers.rack) < np.minimum(lists.counts, racks)))

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
    def is_spread(self) -> bool:
        """Whether each partition spans as many racks as it must. Caps of brokers can prevent that."""
        scope = self.problem.order
        spanned = distinct_racks(self.after.take(scope), self.problem.brokers.rack)
        return bool((spanned >= required_racks(self.problem, scope)).all())

    @property
    def is_valid(self) -> bool:
        """Whether the loads are within the limits and each partition spans as many racks as the request permits.

        A replacement receives the replicas of a broker even if that leaves a partition in fewer racks.
        """
        return self.reached and (self.limits is None or bool(self.problem.request.replace) or self.is_spread)

    @cached_property
    def _added(self) -> Ragged:
        return self.after.keep(~members(self.after, self.problem.original))


def propose(problem: PlanProblem) -> PlanProposal:
    """Make a plan. Equal problems give equal plans, and a problem of its result an empty plan."""
    proposal = _from(problem, problem.original)
    wide = proposal.gap > _SOLVED_GAP or not proposal.is_valid
    is_solved = problem.request.exact or (proposal.reached and is_small(problem) and wide)
    proposal = _of_planned(_solved(proposal) if is_solved else proposal)
    racks = problem.brokers.rack.tolist()
    return replace(proposal, after=observers_last(problem.snapshot, problem.original, proposal.after, racks))


def _of_planned(proposal: PlanProposal) -> PlanProposal:
    """The proposal with the bound of the partitions that it plans as requested, if it does not plan all."""
    problem = proposal.problem
    impossible = len(problem.left_out.impossible)
    planned = problem.order[~np.isin(problem.order, proposal.unmet.rows)]
    if len(planned) == len(problem.order) and (proposal.reached or not len(proposal.unmet)):
        return replace(proposal, unassignable=proposal.unassignable + impossible)
    bound = required_copies(
        replace(problem, order=planned), problem.original.take(planned), problem.weight[planned]
    )  # fmt: skip
    return replace(
        proposal, bound=bound, proven_by="required", exact=False, unassignable=proposal.unassignable + impossible
    )


def _from(problem: PlanProblem, lists: Ragged) -> PlanProposal:
    """The plan of the heuristics that begin with ``lists``."""
    limits, unassignable = None, 0
    prices = np.zeros(len(problem.brokers), np.int64)
    for _ in range(_ROUNDS):
        # Cost terms are of replicas that the plan copies, so each round knows where replicas were before the plan.
        current = problem if lists is problem.original or problem.costs is not None else problem.continued(lists)
        draft = Draft.of(current, lists)
        if not problem.request.leaders_only:
            unassignable = move_required(current, draft)
            draft = draft.without_vacancies()
            if problem.request.balances:
                limits = replica_limits(current, draft)
                prices = move_for_balance(current, draft, limits, prices)
        balance_leaders(current, draft)
        before, lists = lists, draft.lists()
        if same_lists(before, lists).all():
            break
    reached = limits is None or limits.reached(draft.load)
    bound = 0 if problem.request.leaders_only else lower_bound(problem, limits)
    return _bounded(PlanProposal(problem, lists, bound, limits, reached, unassignable), prices)


def _bounded(proposal: PlanProposal, prices: Int64) -> PlanProposal:
    """The proposal with the bound of prices, or of a flow with cost terms, if its other bounds leave a gap.

    These bounds are of plans that span the racks that they must.
    """
    if proposal.limits is None or not proposal.reached or proposal.unassignable or proposal.gap <= _SMALL_GAP:
        return proposal
    if not proposal.is_spread:
        return proposal
    if proposal.problem.costs is None:
        bound, source = priced_bound(proposal.problem, proposal.limits, prices, proposal.cost), "prices"
    else:
        bound, source = cheapest_flow(proposal.problem, proposal.after, proposal.limits) or 0, "flow"
    return proposal if bound <= proposal.bound else replace(proposal, bound=bound, proven_by=source)


def _solved(proposal: PlanProposal) -> PlanProposal:
    """The optimum instead of a proposal that costs more than its bound, or that is not within limits and racks."""
    problem = proposal.problem
    if proposal.unassignable or (proposal.is_valid and proposal.cost == proposal.bound):
        return replace(proposal, exact=not proposal.unassignable)
    result = solve(problem, proposal.limits)
    if not result.feasible:
        return replace(proposal, exact=not proposal.reached)
    bound, optimal = max(proposal.bound, result.bound), result.optimal
    proven = replace(proposal, bound=bound, proven_by="solver" if bound > proposal.bound else proposal.proven_by)
    # The solver's bound is of plans that span the racks that they must, and within the first limits.
    fallback = proven if proposal.is_spread else proposal
    if result.lists is None:
        return replace(fallback, exact=optimal and proposal.is_spread)
    solved = _from(problem, result.lists)
    # The limits depend on what offline brokers retain.
    equal = _have_equal_limits(solved, proposal)
    if not solved.is_valid or (proposal.is_valid and solved.cost >= proposal.cost):
        return replace(fallback, exact=optimal and solved.reached and equal and proposal.is_spread)
    return replace(solved, bound=bound, proven_by=proven.proven_by, exact=optimal) if equal else solved


def _have_equal_limits(left: PlanProposal, right: PlanProposal) -> bool:
    if left.limits is None or right.limits is None:
        return left.limits is right.limits
    return left.limits.equals(right.limits)
