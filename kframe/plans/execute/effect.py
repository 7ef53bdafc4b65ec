"""The expected effect of a plan on the cluster that it was checked against."""

from __future__ import annotations

from kframe.plans.check.resolve import CheckedPlan
from kframe.plans.execute.report import ExecutionEffect
from kframe.whatif import WhatIf


def expected_effect(checked: CheckedPlan) -> ExecutionEffect:
    """The effect when all partitions of the plan move at once, as ``kframe whatif reassign`` predicts it."""
    outcome = WhatIf(checked.snapshot).reassign(checked.plan)
    assert outcome.reassignment is not None
    return ExecutionEffect(outcome.rules, outcome.impact, outcome.reassignment.record(), list(outcome.assumptions))
