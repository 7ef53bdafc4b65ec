"""A proposed plan: its partitions, what it copies, the lower bound, and the brokers before and after."""

from __future__ import annotations

from dataclasses import astuple, dataclass, replace
from functools import cached_property

import numpy as np

from kframe.errors import SolverError
from kframe.model.arrays import Int32, Int64, Ragged
from kframe.model.lists import members, same_lists
from kframe.model.plan import Plan
from kframe.model.tables import Targets
from kframe.plans.check.duration import copy_seconds
from kframe.plans.check.rack_rules import span_racks, uneven_replicas
from kframe.plans.generate.bounds import Shortage, lower_bounds, required_copies
from kframe.plans.generate.caps import cap_limits, is_capped
from kframe.plans.generate.draft import Draft, weighted_loads
from kframe.plans.generate.exact import ExactResult, fewest_staying, is_searched, is_small, solve, solve_relaxed
from kframe.plans.generate.leaders import balance_leaders
from kframe.plans.generate.limits import LoadLimits, replica_limits
from kframe.plans.generate.moves import move_for_balance, move_required
from kframe.plans.generate.observers import observers_last, planned_observers
from kframe.plans.generate.problem import PlanProblem
from kframe.plans.generate.racks import missing_racks
from kframe.plans.generate.relaxation import cheapest_flow
from kframe.plans.generate.unmet import UnmetPartitions, unmet_partitions

#: Each round begins with the result of the last, and the last round changes nothing: a second plan is then empty.
_ROUNDS = 20
#: Gaps that are not worth the search for a better bound.
_SMALL_GAP = 1e-4
#: The limits of loads depend on which partitions stay as they are, and on racks: how often a plan is solved at most.
_LIMIT_ROUNDS = 3
#: Greater gaps are worth the solver where a problem is small.
_SOLVED_GAP = 0.01


@dataclass(frozen=True, eq=False)
class PlanProposal:
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


def propose(problem: PlanProblem) -> PlanProposal:
    """Make a plan. Equal problems give equal plans, and a problem of its result an empty plan.

    Raises SolverError if the request is exact and the solver fails.
    """
    proposal = _of_planned(_best_plan(problem))
    return replace(proposal, after=observers_last(problem, proposal.after))


def _best_plan(problem: PlanProblem) -> PlanProposal:
    """The plan of the heuristics, or that of the solver where it is requested or may be better."""
    proposal = heuristic_plan(problem)
    if problem.request.exact:
        return _solved(proposal)
    if problem.request.orders_only or not is_small(problem, proposal.limits):
        return proposal
    if proposal.is_valid and proposal.gap <= (_SOLVED_GAP if proposal.limits is not None else 0):
        return proposal
    try:
        return _solved(proposal)
    except SolverError as error:
        return replace(proposal, solver_error=str(error))


def _of_planned(proposal: PlanProposal) -> PlanProposal:
    """The proposal with the bound of the partitions that it plans, if it neither plans all nor reaches the limits.

    The bound of plans that reach the limits would be above its cost.
    """
    if proposal.reached or not len(proposal.unmet):
        return proposal
    problem = proposal.problem
    planned = problem.order[~np.isin(problem.order, proposal.unmet.rows)]
    bound = required_copies(replace(problem, order=planned), problem.original.take(planned), problem.weight[planned])
    return replace(proposal, bound=bound, proven_by="required", exact=False)


def heuristic_plan(problem: PlanProblem, begin: Ragged | None = None) -> PlanProposal:
    """The plan of the heuristics, which begin with the lists of the problem or with others."""
    lists = problem.original if begin is None else begin
    limits, staying = None, np.empty(0, np.int32)
    for _ in range(_ROUNDS):
        # Cost terms are of replicas that the plan copies, so each round knows where replicas were before the plan.
        current = problem if lists is problem.original or problem.costs is not None else problem.continued(lists)
        draft = Draft.of(current, lists)
        if not problem.request.orders_only:
            staying = move_required(current, draft)
            draft = draft.without_vacancies()
            if problem.request.balances:
                limits = replica_limits(current, draft)
                move_for_balance(current, draft, limits)
        balance_leaders(current, draft)
        before, lists = lists, draft.lists()
        if same_lists(before, lists).all():
            break
    reached = limits is None or limits.reached(draft.load)
    return _bounded(PlanProposal(problem, lists, 0, limits, reached, staying))


def _bounded(proposal: PlanProposal) -> PlanProposal:
    """The proposal with its bound: that of loads, or of the cheapest flow, if the first leaves a gap.

    The flow is of plans within the limits that have the spread over racks that they must, in the chosen racks.
    """
    problem = proposal.problem
    if problem.request.orders_only:
        return proposal
    bounds = proposal.lower_bounds()
    proven_by = max(bounds, key=bounds.__getitem__)
    bounded = replace(proposal, bound=bounds[proven_by], proven_by=proven_by)
    if problem.one_rack is not None:
        return bounded
    if not (proposal.reached and proposal.is_spread) or len(proposal.staying) or bounded.gap <= _SMALL_GAP:
        return bounded
    if proposal.limits is None:
        if problem.weighted or problem.costs is not None or not is_capped(problem):
            return bounded
        bound = cheapest_flow(problem.counting, proposal.after, cap_limits(problem.counting))
    else:
        bound = cheapest_flow(problem, proposal.after, proposal.limits)
    return bounded if bound is None or bound <= bounded.bound else replace(bounded, bound=bound, proven_by="flow")


def _solved(proposal: PlanProposal, rounds: int = _LIMIT_ROUNDS) -> PlanProposal:
    """The optimum instead of a proposal that costs more than its bound, or that is not within limits and racks.

    A plan whose racks or offline brokers give it other limits is solved again, at most ``rounds`` times in all.
    """
    problem, limits = proposal.problem, proposal.limits
    if proposal.is_valid and proposal.cost == proposal.bound:
        return replace(proposal, exact=True)
    result = solve(problem, limits)
    is_full = proposal.shortage == Shortage()
    if not result.feasible and not is_full:
        # Caps leave too little room, or a full plan is not within limits.
        return _solved_within_caps(proposal)
    if not result.feasible:
        return replace(proposal, exact=not proposal.reached and problem.one_rack is None)
    bound = _solver_bound(proposal, result)
    source = "solver" if bound > proposal.bound else proposal.proven_by
    # The solver's bound is of plans that have the spread that they must, and within the first limits.
    fallback = replace(proposal, bound=bound, proven_by=source) if is_full else proposal
    if result.lists is None:
        return fallback
    solved = _from_solution(problem, result.lists, result.staying, limits)
    equal = _have_limits(solved, limits)
    if not (equal or solved.is_valid or proposal.is_valid) and rounds > 1:
        again = _solved(solved, rounds - 1)
        return again if again.is_valid else fallback
    if not solved.is_valid or (proposal.is_valid and solved.cost >= proposal.cost):
        return replace(fallback, exact=is_full and proposal.is_valid and proposal.cost == bound)
    if equal and problem.one_rack is None:
        solved = replace(solved, bound=bound, proven_by=source)
    return replace(solved, exact=equal and solved.cost == solved.bound)


def _solved_within_caps(proposal: PlanProposal) -> PlanProposal:
    """The plan in which the fewest partitions stay and the fewest racks are missing, where caps allow no full plan.

    A large problem is not searched without a request if every plan leaves at least as many partitions.
    """
    if not is_searched(proposal.problem) and proposal.shortage.staying == fewest_staying(proposal.problem):
        return proposal
    best = proposal
    for _ in range(_LIMIT_ROUNDS):
        limits = best.limits
        result = solve_relaxed(proposal.problem, limits)
        if result.lists is None:
            return best
        solved = _from_solution(proposal.problem, result.lists, result.staying, limits)
        best = min(best, solved, key=_rating)
        if _have_limits(best, limits):
            break
    if not (best.reached and best.shortage == solved.shortage and _have_limits(best, limits)):
        return best
    bound = _solver_bound(best, result)
    source = "solver" if bound > best.bound else best.proven_by
    return replace(best, bound=bound, proven_by=source, exact=result.optimal and best.cost == bound)


def _solver_bound(proposal: PlanProposal, result: ExactResult) -> int:
    """The greater of both bounds; that of the proposal if the solver's is only of the chosen racks."""
    return proposal.bound if proposal.problem.one_rack is not None else max(proposal.bound, result.bound)


def _rating(proposal: PlanProposal) -> tuple[int, int, bool, int]:
    """What the plan lacks, whether its limits are not reached, and its cost: of two plans the lesser is better."""
    return *astuple(proposal.shortage), not proposal.reached, proposal.cost


def _from_solution(problem: PlanProblem, lists: Ragged, staying: Int32, limits: LoadLimits | None) -> PlanProposal:
    """The plan of the solver's lists, as the heuristics continue it if loads have limits and each row is planned."""
    if limits is not None and not len(staying):
        return heuristic_plan(problem, lists)
    draft = Draft.of(problem, lists, problem.original)
    limits = None if limits is None else replica_limits(problem, draft)
    balance_leaders(problem, draft)
    reached = limits is None or limits.reached(draft.load)
    proposal = PlanProposal(problem, draft.lists(), 0, limits, reached, staying)
    return _bounded(proposal)


def _have_limits(proposal: PlanProposal, limits: LoadLimits | None) -> bool:
    if proposal.limits is None or limits is None:
        return proposal.limits is limits
    return proposal.limits.equals(limits)
