"""Reassignment plans: the fewest moves that a request needs, with a lower bound for every plan."""

from __future__ import annotations

from typing import Any

from kframe.planning.problem import problem_of
from kframe.planning.proposal import PlanProposal, propose
from kframe.planning.request import PlanRequest
from kframe.snapshot import Snapshot

__all__ = ["PlanProposal", "PlanRequest", "plan"]


def plan(snapshot: Snapshot, request: PlanRequest | None = None, **goals: Any) -> PlanProposal:
    """A plan for a request, or for the fields of a ``PlanRequest`` as keywords: ``plan(snapshot, rebalance=True)``.

    Raises InputError for a request that the snapshot cannot satisfy.
    """
    return propose(problem_of(snapshot, PlanRequest(**goals) if request is None else request))
