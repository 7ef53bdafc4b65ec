"""What every leader selector must hold to: for the tests of a plugin, and for ``kframe plugins check``.

In the tests of a plugin::

    from kframe.hookspecs import ElectionKind
    from kframe.testing.selector_contract import SelectorContract


    class TestRackSpread(SelectorContract):
        kinds = (ElectionKind.OFFLINE,)

        def make_selector(self):
            return RackSpread()

Each check raises AssertionError with what it found. A selector that passes is safe to choose; whether it chooses well
is for its own tests to say. Leaving a partition without a leader where there could be one breaks no rule.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Sequence
from dataclasses import fields, replace
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from kframe.core.selection import find_faults, run_selector
from kframe.errors import SelectorFault
from kframe.model.columns import Int32, Ragged
from kframe.model.elections import ElectionBatch, LeaderSelector
from kframe.model.ids import NO_LEADER, ElectionKind
from kframe.plug.specs import NAME
from kframe.testing.elections import random_election

#: A check: gets a maker of fresh selectors and the kinds of election that they are for.
Check = Callable[[Callable[[], LeaderSelector], Sequence[ElectionKind]], None]
Maker = Callable[[], LeaderSelector]

_SEEDS: Final = range(5)


def check_is_named(make: Maker, kinds: Sequence[ElectionKind]) -> None:
    """It is a LeaderSelector, its name is lower case with dashes, and two of it are called the same."""
    selector = make()
    assert isinstance(selector, LeaderSelector), f"{type(selector).__name__} has no name or no elect"
    assert NAME.fullmatch(selector.name), f"its name is {selector.name!r}, expected lower case with dashes"
    assert make().name == selector.name, f"two of it are called {selector.name!r} and {make().name!r}"


def check_keeps_to_its_array(make: Maker, kinds: Sequence[ElectionKind]) -> None:
    """It returns None, raises nothing, and writes into the leader array only, keeping its shape and dtype."""
    selector = make()
    for batch in _batches(kinds):
        _chosen(selector, batch)


def check_is_safe(make: Maker, kinds: Sequence[ElectionKind]) -> None:
    """It chooses candidates that are eligible, and in sync unless unclean leaders are allowed."""
    selector = make()
    for batch in _batches(kinds):
        faults = find_faults(batch, _chosen(selector, batch))
        found = "; ".join(f"{fault} ({len(positions)} of {len(batch)})" for fault, positions in faults.items())
        assert not faults, f"in {batch.kind.name} elections it {found}"


def check_same_batch_same_answer(make: Maker, kinds: Sequence[ElectionKind]) -> None:
    """It answers the same when asked again, after other batches, and when made anew."""
    selector = make()
    batches = list(_batches(kinds))
    first = [_chosen(selector, batch) for batch in batches]
    for batch, answer in zip(reversed(batches), reversed(first), strict=True):
        where = f"in {batch.kind.name} elections"
        assert np.array_equal(_chosen(selector, batch), answer), f"{where} it answers otherwise when asked again"
        assert np.array_equal(_chosen(make(), _copied(batch)), answer), f"{where} it answers otherwise when made anew"


def check_leaves_the_batch_alone(make: Maker, kinds: Sequence[ElectionKind]) -> None:
    """It changes nothing in the batch, not even where it could."""
    selector = make()
    for original in _batches(kinds):
        batch = _copied(original)
        _chosen(selector, batch)
        for (name, before), (_, after) in zip(_arrays(original), _arrays(batch), strict=True):
            assert np.array_equal(before, after), f"in {batch.kind.name} elections it changes {name}"


def check_small_and_odd_batches(make: Maker, kinds: Sequence[ElectionKind]) -> None:
    """It copes with one partition, one broker, and partitions that nobody may lead, which it leaves without a leader."""
    selector = make()
    for kind in kinds:
        for batch in (random_election(1, kind, partitions=1), random_election(2, kind, partitions=3, brokers=1)):
            faults = find_faults(batch, _chosen(selector, batch))
            assert not faults, f"in {len(batch)} {kind.name} elections it {', '.join(faults)}"
        dead = _nobody_eligible(random_election(3, kind))
        assert (_chosen(selector, dead) == NO_LEADER).all(), f"in {kind.name} elections it elects where nobody is eligible"


def check_copes_with_unequal_racks(make: Maker, kinds: Sequence[ElectionKind]) -> None:
    """It copes with brokers that name no rack."""
    selector = make()
    for original in _batches(kinds):
        batch = replace(original, broker_rack=np.full_like(original.broker_rack, -1), racks=())
        faults = find_faults(batch, _chosen(selector, batch))
        assert not faults, f"in {batch.kind.name} elections without racks it {', '.join(faults)}"


#: Every check, in the order in which they are worth running.
CHECKS: Final[tuple[Check, ...]] = (
    check_is_named,
    check_keeps_to_its_array,
    check_is_safe,
    check_same_batch_same_answer,
    check_leaves_the_batch_alone,
    check_small_and_odd_batches,
    check_copes_with_unequal_racks,
)


class SelectorContract:
    """The checks as tests: subclass it in a test module, name the subclass ``Test...`` and say how to make yours."""

    kinds: Sequence[ElectionKind] = tuple(ElectionKind)

    def make_selector(self) -> LeaderSelector:
        """A fresh selector; called several times in a test."""
        raise NotImplementedError

    def test_is_named(self) -> None:
        """See check_is_named."""
        check_is_named(self.make_selector, self.kinds)

    def test_keeps_to_its_array(self) -> None:
        """See check_keeps_to_its_array."""
        check_keeps_to_its_array(self.make_selector, self.kinds)

    def test_is_safe(self) -> None:
        """See check_is_safe."""
        check_is_safe(self.make_selector, self.kinds)

    def test_same_batch_same_answer(self) -> None:
        """See check_same_batch_same_answer."""
        check_same_batch_same_answer(self.make_selector, self.kinds)

    def test_leaves_the_batch_alone(self) -> None:
        """See check_leaves_the_batch_alone."""
        check_leaves_the_batch_alone(self.make_selector, self.kinds)

    def test_small_and_odd_batches(self) -> None:
        """See check_small_and_odd_batches."""
        check_small_and_odd_batches(self.make_selector, self.kinds)

    def test_copes_with_unequal_racks(self) -> None:
        """See check_copes_with_unequal_racks."""
        check_copes_with_unequal_racks(self.make_selector, self.kinds)


def _batches(kinds: Sequence[ElectionKind]) -> Iterator[ElectionBatch]:
    return (random_election(seed, kind) for kind in kinds for seed in _SEEDS)


def _chosen(selector: LeaderSelector, batch: ElectionBatch) -> Int32:
    try:
        return run_selector(selector.name, selector, batch)
    except SelectorFault as fault:
        raise AssertionError(f"in {batch.kind.name} elections it {fault.problem}") from fault


def _copied(batch: ElectionBatch) -> ElectionBatch:
    """The batch in fresh arrays that can be written to."""
    return copy.deepcopy(batch)


def _nobody_eligible(batch: ElectionBatch) -> ElectionBatch:
    isr = Ragged.empty(len(batch)) if batch.kind == ElectionKind.INITIAL else batch.isr
    return replace(batch, eligible=np.zeros_like(batch.eligible), broker_live=np.zeros_like(batch.broker_live), isr=isr)


def _arrays(batch: ElectionBatch) -> Iterator[tuple[str, NDArray[Any]]]:
    for field in fields(batch):
        value = getattr(batch, field.name)
        if isinstance(value, Ragged):
            yield f"{field.name}.offsets", value.offsets
            yield f"{field.name}.values", value.values
        elif isinstance(value, np.ndarray):
            yield field.name, value
