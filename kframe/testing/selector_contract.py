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

from kframe.model.elections import LeaderSelector
from kframe.model.ids import ElectionKind
from kframe.registry import checks
from kframe.registry.random_elections import random_cluster, random_election

__all__ = ["SelectorContract", "random_cluster", "random_election"]


class SelectorContract:
    """A test for each check of ``kframe.registry.checks``. The subclass is named ``Test...`` and makes the selector."""

    kinds: Sequence[ElectionKind] = tuple(ElectionKind)
    """The elections that the selector is for."""

    def make_selector(self) -> LeaderSelector:
        """A new selector; a test may call this several times."""
        raise NotImplementedError

    def test_is_named(self) -> None:
        checks.check_is_named(self.make_selector, self.kinds)

    def test_keeps_to_its_array(self) -> None:
        checks.check_keeps_to_its_array(self.make_selector, self.kinds)

    def test_is_safe(self) -> None:
        checks.check_is_safe(self.make_selector, self.kinds)

    def test_same_batch_same_answer(self) -> None:
        checks.check_same_batch_same_answer(self.make_selector, self.kinds)

    def test_leaves_the_batch_alone(self) -> None:
        checks.check_leaves_the_batch_alone(self.make_selector, self.kinds)

    def test_single_broker_batches(self) -> None:
        checks.check_single_broker_batches(self.make_selector, self.kinds)
