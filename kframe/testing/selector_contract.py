"""The contract of leader selectors, as tests that a plugin inherits.

In the tests of a plugin::

    from kframe.plugin import ElectionKind
    from kframe.testing.selector_contract import SelectorContract


    class TestRackSpread(SelectorContract):
        kinds = (ElectionKind.OFFLINE,)

        def make_selector(self):
            return RackSpread()

``kframe plugins check`` runs the same checks without pytest. ``random_election`` makes batches for tests of your own.
"""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from kframe.model.elections import LeaderSelector
from kframe.model.ids import ElectionKind
from kframe.testing.random_elections import random_cluster, random_election
from kframe.testing.selector_checks import CHECKS, Check, check_name

__all__ = ["SelectorContract", "random_cluster", "random_election"]


class SelectorContract:
    """A test for each check of ``selector_checks``. The subclass is named ``Test...`` and makes the selector."""

    kinds: Sequence[ElectionKind] = tuple(ElectionKind)
    """The elections that the selector is for."""

    def make_selector(self) -> LeaderSelector:
        """A new selector; a test may call this several times."""
        raise NotImplementedError

    @pytest.mark.parametrize("check", CHECKS, ids=check_name)
    def test_selector(self, check: Check) -> None:
        check(self.make_selector, self.kinds)
