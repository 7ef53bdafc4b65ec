"""What every leader selector must hold to, as plain functions: for ``kframe plugins check`` and for plugins' tests.

A selector that passes is safe to choose; whether it chooses well is for its own tests to say. Leaving a partition
without a leader where there could be one breaks no rule.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from kframe.core.selectors.leader_selection import find_faults, run_selector
from kframe.errors import SelectorFault
from kframe.model.columns import Int32, Ragged
from kframe.model.elections import ElectionBatch, LeaderSelector
from kframe.model.ids import NO_LEADER, ElectionKind
from kframe.registry.specs import NAME
from kframe.registry.trials import random_election

#: Makes a fresh selector.
Maker: TypeAlias = Callable[[], LeaderSelector]
#: Gets a maker and the kinds of election that its selectors are for; raises AssertionError with what it found.
Check: TypeAlias = Callable[[Maker, Sequence[ElectionKind]], None]

_SEEDS: Final = range(5)


@dataclass(frozen=True, slots=True)
class Finding:
    """What one check found; ``problem`` is None if the selector passed."""

    check: str
    doc: str
    problem: str | None


def run_checks(make: Maker, kinds: Sequence[ElectionKind], *, row_by_row: bool = False) -> Iterator[Finding]:
    """Run every check, and with ``row_by_row`` that of this promise (``SelectorSpec``); report each as it ends. A
    selector or maker that raises has not passed."""
    for check in checks_of(row_by_row):
        problem = None
        try:
            check(make, kinds)
        except Exception as error:
            problem = str(error) if isinstance(error, AssertionError) else f"{type(error).__name__}: {error}"
        yield Finding(check_name(check), check_doc(check), problem)


def check_name(check: Check) -> str:
    """What a check is called in a report."""
    return check.__name__.removeprefix("check_").replace("_", "-")


def check_doc(check: Check) -> str:
    """What a selector that passes holds to."""
    return (check.__doc__ or "").strip()


def check_is_named(make: Maker, kinds: Sequence[ElectionKind]) -> None:
    """It has an elect, a name in lower case with dashes, and always the same one."""
    selector = make()
    _require(isinstance(selector, LeaderSelector), f"{type(selector).__name__} has no name or no elect")
    _require(bool(NAME.fullmatch(selector.name)), f"its name is {selector.name!r}, expected lower case with dashes")
    _require(make().name == selector.name, "two of it have different names")


def check_keeps_to_its_array(make: Maker, kinds: Sequence[ElectionKind]) -> None:
    """It returns None, raises nothing, and writes into the leader array only, which keeps its shape and dtype."""
    selector = make()
    for batch in _batches(kinds):
        _chosen(selector, batch)


def check_is_safe(make: Maker, kinds: Sequence[ElectionKind]) -> None:
    """It chooses candidates that are eligible, and in sync unless unclean leaders are allowed."""
    selector = make()
    for batch in _batches(kinds):
        _require_safe(selector, batch)


def check_same_batch_same_answer(make: Maker, kinds: Sequence[ElectionKind]) -> None:
    """It answers the same when asked again, after other batches, and when made anew."""
    selector = make()
    batches = list(_batches(kinds))
    first = [_chosen(selector, batch) for batch in batches]
    for batch, answer in zip(reversed(batches), reversed(first), strict=True):
        where = f"in {batch.kind.name} elections it answers otherwise when"
        _require(np.array_equal(_chosen(selector, batch), answer), f"{where} asked again")
        _require(np.array_equal(_chosen(make(), copy.deepcopy(batch)), answer), f"{where} made anew")


def check_leaves_the_batch_alone(make: Maker, kinds: Sequence[ElectionKind]) -> None:
    """It changes nothing in the batch, not even where it could."""
    selector = make()
    for original in _batches(kinds):
        batch = copy.deepcopy(original)
        _chosen(selector, batch)
        for (name, before), (_, after) in zip(_arrays(original), _arrays(batch), strict=True):
            _require(np.array_equal(before, after), f"in {batch.kind.name} elections it changes {name}")


def check_small_and_odd_batches(make: Maker, kinds: Sequence[ElectionKind]) -> None:
    """It copes with one partition, one broker and no racks, and elects nobody where nobody is eligible."""
    selector = make()
    for kind in kinds:
        _require_safe(selector, random_election(1, kind, partitions=1))
        _require_safe(selector, random_election(2, kind, partitions=3, brokers=1))
        batch = random_election(3, kind)
        _require_safe(selector, replace(batch, broker_rack=np.full_like(batch.broker_rack, -1), racks=()))
        elected = _chosen(selector, _nobody_eligible(batch)) != NO_LEADER
        _require(not elected.any(), f"in {kind.name} elections it elects where nobody is eligible")


def check_row_by_row(make: Maker, kinds: Sequence[ElectionKind]) -> None:
    """It chooses for a partition alone as it does in a batch, whatever the seed and the numbers of topics."""
    selector = make()
    for batch in _batches(kinds):
        together = _chosen(selector, batch)
        apart = np.concatenate([_chosen(selector, _only(batch, position)) for position in range(len(batch))])
        wrong = np.flatnonzero(together != apart)
        _require(not len(wrong), f"in {batch.kind.name} elections it answers otherwise for {len(wrong)} partitions")


#: Every check that any selector has to pass, in the order in which they are worth running.
CHECKS: Final[tuple[Check, ...]] = (
    check_is_named,
    check_keeps_to_its_array,
    check_is_safe,
    check_same_batch_same_answer,
    check_leaves_the_batch_alone,
    check_small_and_odd_batches,
)


def checks_of(row_by_row: bool) -> tuple[Check, ...]:
    """The checks of a selector that promises this or not."""
    return (*CHECKS, check_row_by_row) if row_by_row else CHECKS


def _require(holds: bool, problem: str) -> None:
    """An assertion that ``python -O`` keeps."""
    if not holds:
        raise AssertionError(problem)


def _require_safe(selector: LeaderSelector, batch: ElectionBatch) -> None:
    faults = find_faults(batch, _chosen(selector, batch))
    found = "; ".join(f"{fault} ({len(positions)} of {len(batch)} partitions)" for fault, positions in faults.items())
    _require(not faults, f"in {batch.kind.name} elections it {found}")


def _batches(kinds: Sequence[ElectionKind]) -> Iterator[ElectionBatch]:
    return (random_election(seed, kind) for kind in kinds for seed in _SEEDS)


def _chosen(selector: LeaderSelector, batch: ElectionBatch) -> Int32:
    try:
        return run_selector(selector.name, selector, batch)
    except SelectorFault as fault:
        raise AssertionError(f"in {batch.kind.name} elections it {fault.problem}") from fault


def _only(batch: ElectionBatch, position: int) -> ElectionBatch:
    """One partition of a batch, as part of another cluster's batch would have it: with another seed and topic index."""
    row = slice(position, position + 1)
    slots = slice(*batch.candidates.offsets[position : position + 2].tolist())
    names = {"rows", "partition", "leader", "leader_epoch", "unclean_allowed"}
    columns: dict[str, Any] = {name: getattr(batch, name)[row] for name in names}
    return replace(
        batch, **columns, topic=np.ones(1, np.int32), topic_names=("", batch.topic_names[batch.topic[position]]),
        candidates=batch.candidates.take(np.array([position])), isr=batch.isr.take(np.array([position])),
        eligible=batch.eligible[slots], in_sync=batch.in_sync[slots], may_lead=batch.may_lead[slots],
        seed=batch.seed ^ 0x5AFF,
    )  # fmt: skip


def _nobody_eligible(batch: ElectionBatch) -> ElectionBatch:
    nobody = np.zeros_like(batch.eligible)
    initial = batch.kind == ElectionKind.INITIAL
    return replace(
        batch,
        eligible=nobody,
        in_sync=nobody if initial else batch.in_sync,
        may_lead=nobody,
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
