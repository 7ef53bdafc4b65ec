"""Makes a plan: by heuristics, and by the solver where it is requested or may be better."""

from __future__ import annotations

from dataclasses import astuple, replace

import numpy as np

from kframe.errors import SolverError
from kframe.model.arrays import Int32, Ragged
from kframe.model.lists import same_lists
from kframe.plans.generate.bounds import Shortage, required_copies
from kframe.plans.generate.caps import cap_limits, is_capped
from kframe.plans.generate.draft import Draft
from kframe.plans.generate.exact import ExactResult, fewest_staying, is_searched, is_small, solve, solve_relaxed
from kframe.plans.generate.leaders import balance_leaders
from kframe.plans.generate.limits import LoadLimits, replica_limits
from kframe.plans.generate.moves import move_for_balance, move_required
from kframe.plans.generate.observers import observers_last
from kframe.plans.generate.problem import PlanProblem
from kframe.plans.generate.proposal import PlanProposal
from kframe.plans.generate.relaxation import cheapest_flow
from kframe.ports.progress import Progress, ignore_progress

#: Each round begins with the result of the last, and the last round changes nothing: a second plan is then empty.
_ROUNDS = 20
#: Gaps that are not worth the search for a better bound.
_SMALL_GAP = 1e-4
#: The limits of loads depend on which partitions stay as they are, and on racks: how often a plan is solved at most.
_LIMIT_ROUNDS = 3
#: Greater gaps are worth the solver where a problem is small.
_SOLVED_GAP = 0.01


class Steps:
    """Counts the steps that have ended."""

    def __init__(self, progress: Progress) -> None:
        self._progress = progress
        self._count = 0

    def end(self) -> None:
        """Count a step. Raises what the progress raises."""
        self._count += 1
        self._progress(self._count, 0)


def propose(problem: PlanProblem, progress: Progress = ignore_progress) -> PlanProposal:
    """Make a plan. Equal problems give equal plans, and a problem of its result an empty plan. ``progress`` counts
    steps, of an unknown number.

    Raises SolverError if the request is exact and the solver fails.
    """
    proposal = _of_planned(_best_plan(problem, Steps(progress)))
    return replace(proposal, after=observers_last(problem, proposal.after))


def _best_plan(problem: PlanProblem, steps: Steps) -> PlanProposal:
    """The plan of the heuristics, or that of the solver where it is requested or may be better."""
    proposal = heuristic_plan(problem, steps=steps)
    steps.end()
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


def heuristic_plan(problem: PlanProblem, begin: Ragged | None = None, steps: Steps | None = None) -> PlanProposal:
    """The plan of the heuristics, which begin with the lists of the problem or with others."""
    steps = steps or Steps(ignore_progress)
    lists = problem.original if begin is None else begin
    limits, staying = None, np.empty(0, np.int32)
    for _ in range(_ROUNDS):
        # Cost terms are of replicas that the plan copies, so each round knows where replicas were before the plan.
        current = problem if lists is problem.original or problem.costs is not None else problem.continued(lists)
        draft = Draft.of(current, lists)
        if not problem.request.orders_only:
            staying = move_required(current, draft)
            steps.end()
            draft = draft.without_vacancies()
            if problem.request.balances:
                limits = replica_limits(current, draft)
                move_for_balance(current, draft, limits)
                steps.end()
        balance_leaders(current, draft)
        steps.end()
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
