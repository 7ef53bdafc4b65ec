"""Fill vacant slots, and transfer replicas between two brokers to bring loads nearer to their limits."""

from __future__ import annotations

from typing import Final

import numpy as np

from kframe import kernels
from kframe.plans.generate.draft import Draft
from kframe.plans.generate.limits import LoadLimits
from kframe.plans.generate.problem import PlanProblem

#: Stages of a rebalance: only from brokers above their limit, only to brokers below it, and only replicas that fit.
#: The first stages move what every plan must move; a later stage begins when no earlier one can.
_STAGES: Final = (
    (True, True, True),
    (True, True, False),
    (True, False, True),
    (True, False, False),
    (False, True, True),
    (False, True, False),
)


def fill(problem: PlanProblem, draft: Draft) -> None:
    """Give partitions with too few replicas the emptiest brokers that have room; the draft is updated."""
    brokers = problem.brokers
    kernels.fill_vacancies(
        problem.order,
        draft.offsets,
        problem.replication_factor,
        *problem.spread_columns,
        brokers.share,
        brokers.cap,
        problem.weight,
        draft.replica,
        draft.load,
        draft.count,
    )


def transfer(problem: PlanProblem, draft: Draft, limits: LoadLimits) -> None:
    """Move replicas until no move brings a load nearer to its limits; the draft is updated."""
    brokers = problem.brokers
    smallest_first = np.ascontiguousarray(problem.order[::-1])
    for over_only, under_only, fitting in _STAGES:
        for first_slots in (False, True):
            kernels.transfer_replicas(
                problem.order if fitting else smallest_first,
                draft.offsets,
                *problem.spread_columns,
                brokers.share,
                brokers.cap,
                problem.weight,
                limits.lower,
                limits.upper,
                over_only,
                under_only,
                fitting,
                first_slots,
                draft.replica,
                draft.load,
                draft.count,
            )
