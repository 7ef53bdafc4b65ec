"""The rules of every leader selector, as functions for ``kframe plugins check`` and for plugins' tests.

A selector that passes is safe to configure. Its own tests check whether it prefers the right leaders: no rule obliges a
selector to elect a leader wherever one is eligible.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from kframe.core.selectors.leader_selection import find_faults, run_selector
from kframe.errors import SelectorFault
from kframe.model.arrays import Int32, Ragged
from kframe.model.elections import ElectionBatch, LeaderSelector
from kframe.model.ids import NO_LEADER, ElectionKind
from kframe.model.texts import counted
from kframe.registry.specs import NAME
from kframe.testing.random_elections import random_election

#: Makes a new selector.
Maker: TypeAlias = Callable[[], LeaderSelector]
#: Checks the selectors of a maker in elections of these kinds; raises AssertionError with the violation.
Check: TypeAlias = Callable[[Maker, Sequence[ElectionKind]], None]

_SEEDS: Final = range(5)


@dataclass(frozen=True, slots=True)
class Finding:
    """The result of a check; ``problem`` is None if the selector passed."""

    check: str
    doc: str
    problem: str | None


def run_checks(make: Maker, kinds: Sequence[ElectionKind]) -> Iterator[Finding]:
    """Run every check; yield each result. A check fails if the selector or its maker raises."""
    return findings(CHECKS, make, kinds)


def findings(
    checks: Iterable[Callable[..., None]], *arguments: object, expected: tuple[type[Exception], ...] = (AssertionError,)
) -> Iterator[Finding]:
    """Call checks; yield the result of each. The text of an ``expected`` exception is the problem."""
    for check in checks:
        problem = None
        try:
            check(*arguments)
        except Exception as error:
            problem = str(error) if isinstance(error, expected) else f"{type(error).__name__}: {error}"
        yield Finding(check_name(check), check_doc(check), problem)


def check_name(check: Callable[..., None]) -> str:
    """The name of a check in reports."""
    return check.__name__.removeprefix("check_").replace("_", "-")


def check_doc(check: Callable[..., None]) -> str:
    """The rule that a check verifies, in a sentence."""
    return (check.__doc__ or "").strip()


def check_is_named(make: Maker, kinds: Sequence[ElectionKind]) -> None:
    """It has ``elect``, and a name in lower case with dashes that never changes."""
    selector = make()
    _require(isinstance(selector, LeaderSelector), f"{type(selector).__name__} has no name or no elect")
    _require(bool(NAME.fullmatch(selector.name)), f"its name is {selector.name!r}, expected lower case with dashes")
    _require(make().name == selector.name, "two of it have different names")


def check_keeps_to_its_array(make: Maker, kinds: Sequence[ElectionKind]) -> None:
    """It returns None, raises nothing, and writes into the leader array only, which keeps its shape and dtype."""
    selector = make()
    for batch in _batches(kinds):
        _choices(selector, batch)


def check_is_safe(make: Maker, kinds: Sequence[ElectionKind]) -> None:
    """It chooses candidates that are eligible, and in sync unless unclean leaders are allowed."""
    selector = make()
    for batch in _batches(kinds):
        _require_safe(selector, batch)


def check_same_batch_same_answer(make: Maker, kinds: Sequence[ElectionKind]) -> None:
    """It makes the same choice when called again, after other batches, and as a new instance."""
    selector = make()
    batches = list(_batches(kinds))
    first = [_choices(selector, batch) for batch in batches]
    for batch, choices in zip(reversed(batches), reversed(first), strict=True):
        where = f"in {batch.kind.name} elections it chooses differently when"
        _require(np.array_equal(_choices(selector, batch), choices), f"{where} called again")
        _require(np.array_equal(_choices(make(), copy.deepcopy(batch)), choices), f"{where} made anew")


def check_leaves_the_batch_alone(make: Maker, kinds: Sequence[ElectionKind]) -> None:
    """It changes nothing in the batch, not even where it could."""
    selector = make()
    for original in _batches(kinds):
        batch = copy.deepcopy(original)
        _choices(selector, batch)
        for (name, before), (_, after) in zip(_arrays(original), _arrays(batch), strict=True):
            _require(np.array_equal(before, after), f"in {batch.kind.name} elections it changes {name}")


def check_single_broker_batches(make: Maker, kinds: Sequence[ElectionKind]) -> None:
    """It handles one partition, one broker and no racks, and elects no leader where no replica is eligible."""
    selector = make()
    for kind in kinds:
        _require_safe(selector, random_election(1, kind, partitions=1))
        _require_safe(selector, random_election(2, kind, partitions=3, brokers=1))
        batch = random_election(3, kind)
        _require_safe(selector, replace(batch, broker_rack=np.full_like(batch.broker_rack, -1), racks=()))
        elected = _choices(selector, _without_eligible(batch)) != NO_LEADER
        _require(not elected.any(), f"in {kind.name} elections it elects a leader where no replica is eligible")


#: The checks of every selector, in the order in which they run.
CHECKS: Final[tuple[Check, ...]] = (
    check_is_named,
    check_keeps_to_its_array,
    check_is_safe,
    check_same_batch_same_answer,
    check_leaves_the_batch_alone,
    check_single_broker_batches,
)


def _require(holds: bool, problem: str) -> None:
    """Assert, also under ``python -O``."""
    if not holds:
        raise AssertionError(problem)


def _require_safe(selector: LeaderSelector, batch: ElectionBatch) -> None:
    faults = find_faults(batch, _choices(selector, batch))
    problem = "; ".join(
        f"{fault} ({len(positions)} of {counted(len(batch), 'partition')})" for fault, positions in faults.items()
    )
    _require(not faults, f"in {batch.kind.name} elections it {problem}")


def _batches(kinds: Sequence[ElectionKind]) -> Iterator[ElectionBatch]:
    return (random_election(seed, kind) for kind in kinds for seed in _SEEDS)


def _choices(selector: LeaderSelector, batch: ElectionBatch) -> Int32:
    try:
        return run_selector(selector.name, selector, batch)
    except SelectorFault as fault:
        raise AssertionError(f"in {batch.kind.name} elections it {fault.problem}") from fault


def _without_eligible(batch: ElectionBatch) -> ElectionBatch:
    none = np.zeros_like(batch.eligible)
    initial = batch.kind == ElectionKind.INITIAL
    return replace(
        batch,
        eligible=none,
        in_sync=none if initial else batch.in_sync,
        may_lead=none,
        isr=Ragged.empty(len(batch)) if initial else batch.isr,
        broker_live=np.zeros_like(batch.broker_live),
    )


def _arrays(batch: ElectionBatch) -> Iterator[tuple[str, NDArray[Any]]]:
    for field in fields(batch):
        value = getattr(batch, field.name)
        if isinstance(value, Ragged):
            yield f"{field.name}.offsets", value.offsets
            yield f"{field.name}.values", value.values
        elif isinstance(value, np.ndarray):
            yield field.name, value
