"""Reassignments in progress are cancelled: those of a plan, or all."""

from __future__ import annotations

from kframe.errors import ErrorCode
from kframe.model.plan import Plan
from kframe.model.tables import Targets
from kframe.plans.execute.cancellation import cancel, ongoing
from kframe.ports.administration import Administration
from tests.plans.embedded_admin import EmbeddedAdmin

PLAN = Plan.of([(("t", 0), (3, 4)), (("u", 0), (2,)), (("t", 2), (3, 4))])


def test_reassignments_of_a_plan_are_cancelled_and_others_continue() -> None:
    embedded = EmbeddedAdmin()
    admin: Administration = embedded
    admin.reassign(PLAN.targets)
    admin.reassign(Targets.of([(("t", 1), (1, 4))]))
    assert ongoing(admin) == [("t", 0), ("t", 1), ("t", 2), ("u", 0)]
    planned = ongoing(admin, PLAN)
    assert planned == [("t", 0), ("t", 2), ("u", 0)]
    assert cancel(admin, planned) == dict.fromkeys(planned, ErrorCode.NONE)
    assert ongoing(admin) == [("t", 1)]
    assert [embedded.replicas(*name) for name in planned] == [(1, 2), (3, 1), (1,)]


def test_partition_that_is_not_reassigned_has_a_code_of_its_own() -> None:
    admin = EmbeddedAdmin()
    admin.reassign(PLAN.targets)
    assert cancel(admin, [("t", 0), ("t", 1)]) == {
        ("t", 0): ErrorCode.NONE,
        ("t", 1): ErrorCode.NO_REASSIGNMENT_IN_PROGRESS,
    }
