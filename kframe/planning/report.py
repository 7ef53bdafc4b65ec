"""The report of a proposed plan: what it copies, what any plan must copy, and the brokers before and after."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict
from typing import Any, Final

import numpy as np

from kframe.planning.bounds import PROOFS, TERMS_PROOF, lower_bounds
from kframe.planning.limits import distinct_racks
from kframe.planning.proposal import PlanProposal
from kframe.snapshot.controllers import controller_assumption
from kframe.whatif.health import Skew

SCHEMA: Final = "kframe.plan-generated/v1"


def report_document(proposal: PlanProposal) -> dict[str, Any]:
    """The fields of ``GeneratedPlanDocument``, without the schema."""
    problem, snapshot = proposal.problem, proposal.problem.snapshot
    kinds = ("replicas", "leaders", *(("bytes",) if problem.request.weights is not None else ()))
    loads, goal = proposal.loads(), problem.request.goal
    targets = problem.brokers.share > 0
    return {
        "snapshot": {
            "format": snapshot.source.format,
            "name": snapshot.source.name,
            "brokers": len(snapshot.brokers),
            "topics": len(snapshot.topics),
            "partitions": len(snapshot),
        },
        "summary": summary(proposal),
        "proof": proof(proposal),
        "partitions": {
            "scope": len(problem.order),
            "changed": len(proposal.rows),
            "reassigning": problem.reassigning,
            "unassignable": proposal.unassignable,
        },
        "moves": {
            "replicas": proposal.moves,
            "unit": problem.unit,
            "cost": proposal.cost,
            "term_cost": proposal.term_cost,
            "bound": proposal.bound,
            "gap": proposal.gap if proposal.reached else None,
            "exact": proposal.exact,
            "leaders": proposal.leader_changes,
        },
        "goal": None if goal is None else goal.name,
        "cost_terms": [] if problem.costs is None else list(problem.costs.names),
        "limits_reached": proposal.reached,
        "racks": {
            "crowded_before": proposal.crowded(problem.original),
            "crowded_after": proposal.crowded(proposal.after),
        },
        "skew": {
            name: asdict(Skew.of(loads[name][targets]))
            for kind in (*kinds, *(() if goal is None else ("goal",)))
            for name in (f"{kind}_before", f"{kind}_after")
        },
        "brokers": list(broker_rows(proposal)),
        "notes": list(notes(proposal)),
    }


def summary(proposal: PlanProposal) -> str:
    """The moves and their lower bound in a sentence."""
    moves, cost, bound = proposal.moves, proposal.cost, proposal.bound
    text = f"{moves:,} {'move' if moves == 1 else 'moves'}"
    if proposal.problem.request.leaders_only:
        return f"{text}; {proposal.leader_changes:,} preferred leaders change"
    problem = proposal.problem
    if problem.weighted:
        text += f" of {cost - proposal.term_cost:,} {problem.unit}"
    if problem.costs is not None:
        text += f" that cost {cost:,} with {', '.join(problem.costs.names)}"
    if not proposal.reached and proposal.exact:
        return f"{text}; no plan reaches the limits"
    if not proposal.reached:
        return f"{text}; the limits are not reached, and a plan that reaches them needs at least {bound:,}"
    gap = "" if cost == bound else f" (gap {proposal.gap:.2%})"
    cheaper = "costs less" if problem.costs is not None else "can do with fewer"
    return f"{text}; no plan {cheaper} than {bound:,}{gap}"


def proof(proposal: PlanProposal) -> str:
    """Why no plan copies less than the bound, in a sentence."""
    if proposal.problem.request.leaders_only:
        return "The order of replicas changes; nothing is copied."
    if proposal.exact and not proposal.reached:
        return "The solver HiGHS has proven that no plan reaches the limits."
    bounds = {} if proposal.proven_by in PROOFS else lower_bounds(proposal.problem, proposal.limits)
    text = PROOFS[proposal.proven_by if not bounds else max(bounds, key=bounds.__getitem__)]
    return text if proposal.problem.costs is None else f"{text} {TERMS_PROOF}"


def broker_rows(proposal: PlanProposal) -> Iterator[dict[str, Any]]:
    """A row for each broker, ascending by id. Bytes are null without weights, the weights of a goal without a goal."""
    problem, loads = proposal.problem, proposal.loads()
    brokers = problem.brokers
    known = {"bytes": problem.request.weights is not None, "goal": problem.request.goal is not None}
    names = ("replicas_before", "received", "replicas_after", "leaders_before", "leaders_after")
    for index, broker_id in enumerate(brokers.ids.tolist()):
        yield {
            "broker_id": broker_id,
            "rack": problem.racks[broker_id],
            "receives": bool(brokers.share[index] > 0),
            **{name: int(loads[name][index]) for name in names},
            **{
                name: int(loads[name][index]) if known[kind] else None
                for kind in known
                for name in (f"{kind}_before", f"{kind}_after")
            },
        }


def notes(proposal: PlanProposal) -> Iterator[str]:
    """Notes on the proposal, a sentence each."""
    problem = proposal.problem
    if not problem.weighted and not problem.request.leaders_only:
        yield "no weights: a move is a replica, whatever its size (--weights FILE gives sizes)"
    if (assumption := controller_assumption(problem.snapshot)) is not None:
        yield assumption
    unlabelled = [broker_id for broker_id, rack in problem.racks.items() if rack is None]
    if unlabelled and len(unlabelled) < len(problem.racks):
        yield f"{len(unlabelled):,} brokers have no rack; each counts as a rack of its own"
    if problem.reassigning:
        yield f"{problem.reassigning:,} partitions are being reassigned; the plan leaves them as they are"
    if proposal.unassignable:
        yield f"{proposal.unassignable:,} partitions stay as they are, because no allowed broker can take a replica"
    remaining = int(problem.brokers.leaving[proposal.after.values].sum())
    if remaining and problem.brokers.leaving[problem.original.values].any():
        yield f"{remaining:,} replicas outside of the scope stay on the brokers that the others leave"
    lost = distinct_racks(proposal.after, problem.brokers.rack) < distinct_racks(problem.original, problem.brokers.rack)
    shrunk = proposal.after.counts < problem.original.counts
    if (lost & ~shrunk).any():
        yield f"{np.count_nonzero(lost & ~shrunk):,} partitions span fewer racks, because a rack is evacuated"
