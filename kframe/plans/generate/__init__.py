"""Reassignment plans: the fewest moves that a request needs, with a lower bound for every plan."""

from __future__ import annotations

from typing import Any

from kframe.plans.generate.problem import problem_of
from kframe.plans.generate.proposal import PlanProposal
from kframe.plans.generate.propose import propose
from kframe.plans.generate.request import PlanRequest
from kframe.ports.progress import Progress, ignore_progress
from kframe.snapshot import Snapshot

__all__ = ["PlanProposal", "PlanRequest", "plan"]


def plan(
    snapshot: Snapshot,
    request: PlanRequest | None = None,
    *,
    progress: Progress = ignore_progress,
    **goals: Any,
) -> PlanProposal:
    """A plan for a request, or for the fields of a ``PlanRequest`` as keywords.

    Raises InputError for a request that the snapshot cannot satisfy. A plan that empties broker 0::

        >>> from kframe import plan
        >>> from kframe.snapshot import generate
        >>> proposal = plan(generate(brokers=4, partitions=100, seed=7), remove_brokers=(0,))
        >>> proposal.moves == proposal.bound
        True
        >>> int(proposal.loads()["replicas_after"][0])
        0
        >>> len(proposal.plan) == len(proposal.rows)
        True

    ``kframe.load_plan`` reads the file of a plan, and ``WhatIf.reassign`` plays it.
    """
    return propose(problem_of(snapshot, PlanRequest(**goals) if request is None else request), progress)
