"""The contract of cost terms and goals of plans, as tests that a plugin inherits.

In the tests of a plugin::

    from kframe.testing.placement_contract import CostTermContract


    class TestAuditRack(CostTermContract):
        spec = kframe_cost_terms()[0]

``kframe plugins check`` runs the same checks without pytest. ``random_placement`` makes batches for tests of your own.
"""

from __future__ import annotations

import pytest

from kframe.registry.placements import CostTerm, PlanGoal, make_cost_term, make_goal
from kframe.registry.specs import CostTermSpec, GoalSpec
from kframe.testing.placement_checks import PLACEMENT_CHECKS, PlacementCheck, random_placement
from kframe.testing.selector_checks import check_name

__all__ = ["CostTermContract", "GoalContract", "random_placement"]


class _PlacementContract:
    """A test for each check of ``kframe.testing.placement_checks``."""

    def make(self) -> CostTerm | PlanGoal:
        """A new cost term or goal; a test may call this several times."""
        raise NotImplementedError

    @pytest.mark.parametrize("check", PLACEMENT_CHECKS, ids=check_name)
    def test_placement(self, check: PlacementCheck) -> None:
        check(self.make)


class CostTermContract(_PlacementContract):
    """The rules of cost terms. The subclass is named ``Test...`` and has the ``spec``."""

    spec: CostTermSpec

    def make(self) -> CostTerm:
        """A new cost term."""
        return make_cost_term(self.spec)


class GoalContract(_PlacementContract):
    """The rules of goals. The subclass is named ``Test...`` and has the ``spec``."""

    spec: GoalSpec

    def make(self) -> PlanGoal:
        """A new goal."""
        return make_goal(self.spec)
