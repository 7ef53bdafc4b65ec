"""The report of a proposed plan: what it copies, what any plan must copy, and the brokers before and after."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import Any, Final

import numpy as np

from kframe.model.texts import counted
from kframe.plans.check.document import PlanSnapshot
from kframe.plans.check.placement_constraints import constraints_note
from kframe.plans.check.report import RACKS_UNKNOWN
from kframe.plans.generate.bounds import PROOFS, TERMS_PROOF
from kframe.plans.generate.document import (
    CrowdedPartitions,
    GeneratedBroker,
    GeneratedMoves,
    GeneratedPartitions,
    GeneratedPlanDocument,
)
from kframe.plans.generate.draft import weighted_loads
from kframe.plans.generate.eligibility import assumed_racks
from kframe.plans.generate.proposal import PlanProposal
from kframe.plans.generate.racks import rack_overloads
from kframe.plans.generate.replacements import diverted_replicas
from kframe.plans.generate.unmet import describe, settled_lists, unmet_rows
from kframe.snapshot.content import brokers_text
from kframe.snapshot.controllers import controller_assumption
from kframe.whatif.results.health import Skew

SCHEMA: Final = "kframe.plan-generated/v1"
#: Partitions or brokers that a sentence names.
_NAMED: Final = 3
#: The loads of brokers that not every request knows.
_UNKNOWN_LOADS: Final = dict.fromkeys(("bytes_before", "bytes_after", "goal_before", "goal_after"))


def report_document(proposal: PlanProposal) -> GeneratedPlanDocument:
    """The report of a proposal."""
    problem = proposal.problem
    kinds = ("replicas", "leaders", *(("bytes",) if problem.request.weights is not None else ()))
    loads, goal = proposal.loads(), problem.request.goal
    targets = problem.brokers.share > 0
    return GeneratedPlanDocument(
        snapshot=PlanSnapshot.of(problem.snapshot),
        summary=summary(proposal),
        proof=proof(proposal),
        partitions=GeneratedPartitions(
            scope=len(problem.order) + len(problem.left_out.impossible),
            changed=len(proposal.rows),
            reassigning=len(problem.left_out.reassigning),
            unassignable=proposal.unassignable,
            unmet=len(proposal.unmet),
            leaderless=len(proposal.leaderless),
            observers=proposal.observers,
        ),
        moves=GeneratedMoves(
            replicas=proposal.moves,
            unit=problem.unit,
            cost=proposal.cost,
            term_cost=proposal.term_cost,
            bound=proposal.bound,
            gap=proposal.gap if proposal.meets_request else None,
            exact=proposal.exact,
            leaders=proposal.leader_changes,
            seconds=None if proposal.seconds is None else round(proposal.seconds, 1),
        ),
        goal=None if goal is None else goal.name,
        cost_terms=[] if problem.costs is None else list(problem.costs.names),
        targets_met=proposal.meets_request,
        racks=CrowdedPartitions(
            *(proposal.crowded(lists) if proposal.racks_known else None for lists in (problem.original, proposal.after))
        ),
        skew={
            name: Skew.of(loads[name][targets])
            for kind in (*kinds, *(() if goal is None else ("goal",)))
            for name in (f"{kind}_before", f"{kind}_after")
        },
        brokers=list(broker_rows(proposal)),
        unmet=list(unmet_rows(problem, proposal.after, proposal.unmet)),
        diverted=list(diverted_replicas(problem, proposal.after)),
        warnings=list(warnings(proposal)),
        notes=list(notes(proposal)),
    )


def summary(proposal: PlanProposal) -> str:
    """The moves and their lower bound in a sentence."""
    moves, cost, bound = proposal.moves, proposal.cost, proposal.bound
    text = counted(moves, "move")
    if proposal.problem.request.orders_only:
        verb = "changes" if proposal.leader_changes == 1 else "change"
        text += f"; {counted(proposal.leader_changes, 'preferred leader')} {verb}"
        return f"{text}; the request is not met: {_unmet_text(proposal)}" if len(proposal.unmet) else text
    problem = proposal.problem
    if problem.weighted:
        text += f" of {cost - proposal.term_cost:,} {problem.unit}"
    if problem.costs is not None:
        text += f" that cost {cost:,} with {', '.join(problem.costs.names)}"
    if len(proposal.unmet):
        limits = "" if proposal.reached else "; the targets are not met"
        return f"{text}; the request is not met: {_unmet_text(proposal)}{limits}"
    if not proposal.reached and proposal.exact:
        return f"{text}; no plan meets the targets"
    if not proposal.reached:
        return f"{text}; the targets are not met, and a plan that meets them needs at least {bound:,}"
    gap = "" if cost == bound else f" (gap {proposal.gap:.2%})"
    least = f"costs at least {bound:,}" if problem.costs is not None else f"needs at least {bound:,}"
    return f"{text}; every plan {least}{gap}"


def proof(proposal: PlanProposal) -> str:
    """Why no plan copies less than the bound, in a sentence."""
    if proposal.problem.request.orders_only:
        return "The order of replicas changes; nothing is copied."
    if proposal.exact and not proposal.reached:
        return "The solver HiGHS has proven that no plan meets the targets."
    text = PROOFS[proposal.proven_by]
    return text if proposal.problem.costs is None else f"{text} {TERMS_PROOF}"


def _unmet_text(proposal: PlanProposal) -> str:
    """What the plan lacks of the request, and the first of the partitions with their reasons."""
    rows = list(islice(unmet_rows(proposal.problem, proposal.after, proposal.unmet), _NAMED))
    named = [f"{row.topic}-{row.partition} ({row.reason})" for row in rows]
    more = len(proposal.unmet) - len(named)
    suffix = f" and {more:,} more" if more else ""
    return f"{describe(proposal.problem, proposal.unmet)}: {', '.join(named)}{suffix}"


def broker_rows(proposal: PlanProposal) -> Iterator[GeneratedBroker]:
    """A row for each broker, ascending by id. Bytes are null without weights, the weights of a goal without a goal."""
    problem, loads = proposal.problem, proposal.loads()
    brokers = problem.brokers
    names = ["replicas_before", "received", "replicas_after", "leaders_before", "leaders_after"]
    names += ["bytes_before", "bytes_after"] if problem.request.weights is not None else []
    names += ["goal_before", "goal_after"] if problem.request.goal is not None else []
    for index, broker_id in enumerate(brokers.ids.tolist()):
        known: dict[str, Any] = {**_UNKNOWN_LOADS, **{name: int(loads[name][index]) for name in names}}
        yield GeneratedBroker(broker_id, problem.racks[broker_id], bool(brokers.share[index] > 0), **known)


def warnings(proposal: PlanProposal) -> Iterator[str]:
    """What the reader must know before the plan is executed, a sentence each."""
    problem = proposal.problem
    known = {facts.broker_id for facts in problem.snapshot.brokers}
    received = problem.brokers.ids[proposal.loads()["received"] > 0].tolist()
    if missing := [broker_id for broker_id in received if broker_id not in known]:
        verb, pronoun = ("are", "them") if len(missing) > 1 else ("is", "it")
        yield f"{brokers_text(missing)} {verb} not in the snapshot: start {pronoun} before the plan is executed"
    if len(proposal.leaderless):
        count = len(proposal.leaderless)
        topics = problem.snapshot.topics
        named = [topics.name_of_row(row) for row in proposal.leaderless[:_NAMED].tolist()]
        suffix = f" and {count - _NAMED:,} more" if count > _NAMED else ""
        yield (
            f"{counted(count, 'partition')} without a leader: nothing can be copied before they have one"
            f" ({', '.join(named)}{suffix})"
        )
    if (count := sum(1 for _ in diverted_replicas(problem, proposal.after))) > 0:
        verb = "goes" if count == 1 else "go"
        yield f"{counted(count, 'replica')} of replaced brokers cannot go to the replacement and {verb} elsewhere"
    if not proposal.reached:
        yield from _outside_limits(proposal)
    if not proposal.racks_known:
        yield RACKS_UNKNOWN
    changed_topics = problem.snapshot.topics.topic_of_rows()[proposal.rows].tolist()
    if (constraints := constraints_note(problem.snapshot, changed_topics)) is not None:
        yield constraints


def _outside_limits(proposal: PlanProposal) -> Iterator[str]:
    """The brokers whose loads are outside of the limits."""
    problem, limits = proposal.problem, proposal.limits
    if limits is None:
        return
    lists = proposal.after.take(problem.order)
    load = weighted_loads(lists, problem.weight[problem.order], len(problem.brokers))
    outside = np.flatnonzero(
        (problem.brokers.share > 0) & ((limits.excess(load) > 0) | (limits.deficit(load) > 0))
    ).tolist()
    named = [
        f"broker {problem.brokers.ids[index]} has {load[index]:,}, expected {limits.lower[index]:,} to"
        f" {limits.upper[index]:,}"
        for index in outside[:_NAMED]
    ]
    if named:
        suffix = f"; and {len(outside) - _NAMED:,} more" if len(outside) > _NAMED else ""
        yield f"outside of the limits, in {problem.unit}: {'; '.join(named)}{suffix}"


def notes(proposal: PlanProposal) -> Iterator[str]:
    """Notes on the proposal, a sentence each."""
    problem = proposal.problem
    if not problem.weighted and not problem.request.orders_only:
        yield "no weights: a move is a replica, whatever its size (--weights FILE gives sizes)"
    if (assumption := controller_assumption(problem.snapshot)) is not None:
        yield assumption
    if problem.request.leader_selector is not None:
        name = problem.request.leader_selector.name
        yield f"leaders are those that {name} elects while all brokers are alive and all replicas in sync"
    unlabelled = [broker_id for broker_id, rack in problem.racks.items() if rack is None]
    if unlabelled and len(unlabelled) < len(problem.racks):
        yield f"{brokers_text(unlabelled)} without a known rack: each counts as a rack of its own"
    for old, new in assumed_racks(problem.snapshot, problem.request).items():
        yield f"broker {new} is taken to be in {problem.racks[new]}, the rack of broker {old}"
    if len(problem.left_out.reassigning):
        count = len(problem.left_out.reassigning)
        verb = "is" if count == 1 else "are"
        yield f"{counted(count, 'partition')} {verb} being reassigned; the plan leaves them as they are"
    if proposal.unassignable:
        count = proposal.unassignable
        verb = "stays as it is" if count == 1 else "stay as they are"
        yield f"{counted(count, 'partition')} {verb}, because no allowed broker can take a replica"
    if proposal.racks_known:
        yield from rack_overloads(problem, proposal.after)
    if proposal.solver_error is not None:
        yield f"the plan is not solved to the optimum, because the solver failed: {proposal.solver_error}"
    leaving = problem.brokers.leaving
    retained = int(leaving[settled_lists(problem, proposal.after).values].sum())
    if departing := int(leaving[proposal.after.values].sum()) - retained:
        verb = "leaves" if departing == 1 else "leave"
        yield f"{counted(departing, 'replica')} {verb} when reassignments in progress complete"
    if outside := retained - int(proposal.unmet.retained.sum()):
        verb = "stays" if outside == 1 else "stay"
        yield f"{counted(outside, 'replica')} outside of the scope {verb} on the brokers that the others leave"
    rows = np.arange(len(proposal.after), dtype=np.int32)
    before, after = (problem.spread(rows, lists) for lists in (problem.original, proposal.after))
    lost = (after < before).any(axis=1)
    lost &= proposal.after.counts >= problem.original.counts
    if by_caps := int(np.count_nonzero(lost[proposal.rows_without_racks])):
        verb, reason = "is" if by_caps == 1 else "are", "no broker of another rack has room within its cap"
        yield f"{counted(by_caps, 'partition')} {verb} less evenly spread over racks, because {reason}"
    if by_racks := int(np.count_nonzero(lost)) - by_caps:
        verb = "is" if by_racks == 1 else "are"
        yield f"{counted(by_racks, 'partition')} {verb} less evenly spread over racks, because a rack is evacuated"
